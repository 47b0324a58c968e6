"""Distances between points, and choices that depend on them alone."""
