"""Datasets of a few points, item by item."""

import torch
from torch.utils.data import Dataset

X = torch.arange(21, dtype=torch.float32).view(7, 3)
Y = torch.arange(7)


class Items(Dataset):
    """A Dataset of whatever `item` makes of x and y."""

    def __init__(self, item):
        self.item = item

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        if not 0 <= i < len(X):
            raise IndexError(i)
        return self.item(X[i], int(Y[i]))
