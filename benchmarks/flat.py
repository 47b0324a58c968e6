"""A measure that knows nothing: all points weigh the same. For bench_gain.py, to see what coverage gives by itself.

python benchmarks/bench_gain.py --start auto --strategies "herding:benchmarks/flat.py:flat(balance=0)"
"""

import torch

from balent import Moments


def flat(m: Moments) -> torch.Tensor:
    return torch.ones(len(m.mean), dtype=torch.float64)
