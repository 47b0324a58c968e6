"""Ids and fingerprints of rows: by hand, and what must not change them."""

import hashlib
from pathlib import Path

import pytest

from balent.data.identities import fingerprints, identities
from balent.data.table_rows import TableRows


def table(**columns):
    size = len(next(iter(columns.values())))
    return TableRows(Path("t.csv"), columns, range(2, 2 + size))


def test_a_fingerprint_is_the_hash_of_canonical_json():
    found = fingerprints(table(b=["ä", None], a=[1.0, 2.5], y=["cat", "dog"]), "y")
    assert found == [hashlib.sha256(text).hexdigest() for text in (b'{"a":1,"b":"\\u00e4"}', b'{"a":2.5}')]


def test_what_is_not_content_changes_no_fingerprint():
    before = fingerprints(table(a=[1, 2], b=["x", "y"], target=[None, None]), "target")
    assert fingerprints(table(b=["x", "y"], target=["cat", None], new=[None, None], a=[1.0, 2]), "target") == before
    assert fingerprints(table(key=["p", "q"], a=[1, 2], b=["x", "y"]), None, "key") == before
    assert fingerprints(table(a=[1, 2], b=["x", "z"]))[0] == before[0]
    assert fingerprints(table(a=[1, 2], b=["x", "z"]))[1] != before[1]


def test_equal_rows_are_numbered():
    names = identities(table(a=["x", "y", "x", "x"], y=["1", "2", "3", None]), None, "y")
    first = hashlib.sha256(b'{"a":"x"}').hexdigest()[:16]
    assert [names[0], names[2], names[3]] == [first, f"{first}-2", f"{first}-3"]
    assert len(set(names)) == 4


def test_ids_do_not_change_when_the_table_grows():
    before = identities(table(a=["x", "y", "x"]))
    assert identities(table(a=["x", "y", "x", "z", "x"], late=[None] * 4 + ["new"]))[:3] == before


def test_the_id_column_gives_the_ids():
    assert identities(table(key=["p", "q"], a=[1, 1]), "key") == ["p", "q"]
    assert identities(table(key=[7.0, 8], a=[1, 1]), "key") == ["7", "8"]


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (["p", None, " "], r"t\.csv, line 3, has none in column 'key' \(and 1 more\)"),
        (["p", "q", "p"], r"t\.csv, line 2, and line 4 have 'p' in column 'key'; a label belongs to one id"),
        ([1, 2, 1.0], "line 2, and line 4 have '1'"),
    ],
)
def test_ids_must_be_there_and_differ(key, why):
    with pytest.raises(ValueError, match=why):
        identities(table(key=key, a=[1, 2, 3]), "key")


def test_columns_must_exist():
    with pytest.raises(ValueError, match="no column 'churn'; its columns are a"):
        fingerprints(table(a=[1]), "churn")
    with pytest.raises(ValueError, match="no column 'key'"):
        identities(table(a=[1]), "key")
    with pytest.raises(ValueError, match="must have columns besides 'y', but has none"):
        fingerprints(table(y=[1]), "y")


def test_half_a_character_has_a_fingerprint():
    """JSON can hold "\\ud800", for which UTF-8 has no bytes."""
    assert len(fingerprints(table(a=["\ud800"]))[0]) == 64
