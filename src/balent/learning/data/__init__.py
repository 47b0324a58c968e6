"""Data sets as they lie on disk: one file a format. `balent.learning.datasets.load` finds the right one."""
