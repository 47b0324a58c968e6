"""How likely is what was seen?"""

from mpmath import mp


def p_value(counts, shares):
    """Pearson's test: how likely are counts as far from the shares, or farther?"""
    expected = [share * sum(counts) for share in shares]
    statistic = sum((came - e) ** 2 / e for came, e in zip(counts, expected, strict=True))
    return float(mp.gammainc((len(counts) - 1) / mp.mpf(2), statistic / 2, regularized=True))
