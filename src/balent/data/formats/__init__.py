"""One file per format in which data are published."""
