"""Small networks of every shape, with the same weights for the same seed."""

import torch


def seeded(make, *args, seed=0, **kwargs):
    """What make(...) builds, with weights of this seed; the random state of torch stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(*args, **kwargs)
