"""From posterior samples and a pool to picks."""
