"""The networks, experiments and studies of the paper."""
