"""Slow and obviously right: what fast code is compared with."""
