"""One side of the comparison of BatchBALDs in bench_joint.py: a process of its own, by the Python of its environment.

    python -m venv REDUX
    REDUX/bin/pip install torch==2.13.0 numpy toma tqdm
    REDUX/bin/pip install --no-deps batchbald_redux==2.0.5

(batchbald_redux also asks for blackhc.progress_bar, torchvision and ignite, which its BatchBALD does not use; how to
make the environment of baal says peer_baal.py.)

    python peer_batchbald.py (balent | redux | baal) DRAWS.npy K CONFIGURATIONS THREADS

Reads draws [pool, draws, classes], picks K points by BatchBALD from about so many configurations of labels, and prints
the seconds, the peak of memory above that of the draws in MB, and the picks. baal makes a table of all points,
configurations and classes; where that does not fit into LIMIT, "memory" is printed instead.
"""

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from peak import peak

Way = Callable[[np.ndarray, int, int], list[int]]
LIMIT = 12 << 30  # bytes of address space: beyond it a MemoryError, not the end of other processes


def balent() -> Way:
    import torch

    from balent import BatchBALD, Draws

    def picked(draws: np.ndarray, k: int, configurations: int) -> list[int]:
        strategy, pool = BatchBALD(samples=configurations), np.arange(len(draws))
        return strategy(Draws(draws), pool, k, generator=torch.Generator().manual_seed(0)).indices.tolist()

    return picked


def redux() -> Way:
    import torch
    from batchbald_redux.batchbald import get_batchbald_batch

    def picked(draws: np.ndarray, k: int, configurations: int) -> list[int]:
        log = torch.from_numpy(draws).log()
        return get_batchbald_batch(log, k, configurations, dtype=torch.double).indices

    return picked


def baal() -> Way:
    """It begins with the best by BALD, then adds `num_samples`: one less than k. Ranks are not in their order."""
    from baal.active.heuristics import BatchBALD

    def picked(draws: np.ndarray, k: int, configurations: int) -> list[int]:
        heuristic = BatchBALD(num_samples=k - 1, num_draw=max(1, configurations // draws.shape[1]))
        return heuristic(draws.transpose(0, 2, 1))[:k].tolist()

    return picked


def main(who: str, path: str, k: int, configurations: int, threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    way, draws = {"balent": balent, "redux": redux, "baal": baal}[who](), np.load(path)
    before, start = peak(), time.perf_counter()
    try:
        picks = way(draws, k, configurations)
    except (MemoryError, RuntimeError) as error:
        if "memory" not in str(error).lower() and not isinstance(error, MemoryError):
            raise
        print("memory")
        return
    seconds = time.perf_counter() - start
    print(f"{seconds}\t{peak() - before}\t{' '.join(map(str, picks))}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
