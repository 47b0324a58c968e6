"""Where points come from: files, folders, data sets by name."""
