"""Spearman's rank correlation: Pearson's of the ranks, ties at the mean of their ranks."""

import numpy as np


def ranks(x: np.ndarray) -> np.ndarray:
    """1 for the smallest.

    >>> ranks(np.array([30.0, 10.0, 10.0]))
    array([3. , 1.5, 1.5])
    """
    _, group, count = np.unique(x, return_inverse=True, return_counts=True)
    return (count.cumsum() - (count - 1) / 2)[group]


def spearman(columns: np.ndarray) -> np.ndarray:
    """The matrix [k, k] of k columns [n, k].

    >>> spearman(np.array([[1.0, 10.0, 3.0], [2.0, 20.0, 2.0], [3.0, 90.0, 1.0]]))[0]
    array([ 1.,  1., -1.])
    """
    return np.corrcoef(np.stack([ranks(column) for column in columns.T]))
