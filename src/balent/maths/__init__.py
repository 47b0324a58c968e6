"""The mathematics of the paper: Beta distributions, moments of draws, measures."""
