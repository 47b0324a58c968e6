"""Experiments on data whose labels are known."""
