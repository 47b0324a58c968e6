"""What do the methods cost that look at draws of several points together: core_mse, core_log and batch_bald?

  core_mse     end to end, from network to picks, on 50,000 points with the whole pool as reference, the paper's head
               2048 → 2048 → 100 with dropout .2, 100 draws, K = 500, random weights and inputs; beside balentacq on the
               same pool. (The paper: "insufficient memory".) Then both from draws that are ready. Memory is the peak
               above that of the process when the pool is made.
  batch_bald   10 points of 10,000, C = 10, M = 100, linear functions of 32 numbers around ten centres; beside
               batchbald_redux and baal on the same draws. Batches are compared by one estimate of their joint
               entropy that none of them uses: plain Monte Carlo, the same functions and uniform numbers for all.
  core_log     its second-order form against the definition, on digits after 50 labels: what do the top 25 share?

All sides run in one go, each its best of several (peers: once). --redux and --baal say where the environments of the
peers are; peer_batchbald.py says how to make them. --part runs one of the three.
"""

import argparse
import math
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch
from bench_mc_dropout import best
from peak import peak
from torch import Generator, Tensor

from balent import Draws, MCDropout, Moments, acquire, kernels
from balent.paper.networks import bayesian_head
from balent.strategies import BatchBALD, CoreLog, CoreMSE

POINTS, FEATURES, CLASSES, DRAWS, K, P = 50_000, 2048, 100, 100, 500, 0.2
READY = 10_000  # points whose draws are made beforehand: 400 MB
REPEATS = 3
MNIST = (10_000, 100, 10)  # points, draws, classes
BATCH = 10
CONFIGURATIONS = {"redux": (1000, 4000), "baal": (1000, 50_000)}  # baal's default: 500 for each draw
CHECKS = 400_000  # configurations that estimate a joint entropy
LABELS, DIGITS, TOP = 50, 500, 25


# ── core_mse ─────────────────────────────────────────────────────────────────────────────────────


def core_mse(points: int) -> None:
    x = torch.randn(points, FEATURES, generator=Generator().manual_seed(0))
    predictor = MCDropout(bayesian_head(FEATURES, CLASSES, P))
    end_to_end(predictor, x)
    few = x[: min(points, READY)]
    sampled = predictor.sample(DRAWS)
    draws = Draws(torch.cat([sampled(part) for part in few.split(256)]))
    pool = np.arange(len(draws))
    scoring, whole, sample = best(
        partial(acquire, draws, pool, K),
        partial(acquire, draws, pool, K, "core_mse"),
        partial(acquire, draws, pool, K, CoreMSE(reference=1000)),
    )
    print(
        f"  from ready draws of {len(draws):,} points: core_mse {whole:.2f} s, with a reference of 1,000 "
        f"{sample:.2f} s; balentacq {scoring:.2f} s"
    )


def end_to_end(predictor: MCDropout, x: Tensor) -> None:
    before, k = peak(), min(K, len(x) // 10)
    acquire(predictor.sample(DRAWS), x, k)
    after = peak()
    ours, balentacq = best(
        lambda: acquire(predictor.sample(DRAWS), x, k, "core_mse"), lambda: acquire(predictor.sample(DRAWS), x, k)
    )
    print(
        f"core_mse: {ours / balentacq:.2f} of balentacq end to end, {ours:.1f} s and {balentacq:.1f} s for {len(x):,} "
        f"points, {DRAWS} draws, {CLASSES} classes, the whole pool as reference\n"
        f"  peak of memory above the pool: {peak() - before:.0f} MB; of balentacq alone {after - before:.0f} MB"
    )


# ── batch_bald ───────────────────────────────────────────────────────────────────────────────────


def mnist_like(points: int, draws: int, classes: int, features: int = 32) -> Tensor:
    """Draws that are functions: linear, around one centre for each class; most points are easy, some are not."""
    g = Generator().manual_seed(0)
    centres = torch.randn(classes, features, generator=g)
    x = centres[torch.randint(classes, (points,), generator=g)] + torch.randn(points, features, generator=g)
    weights = centres + 0.6 * torch.randn(draws, classes, features, generator=g)
    return torch.einsum("nf,mcf->nmc", x, 0.35 * weights).softmax(-1)


def joint_entropy(p: Tensor, batch: list[int]) -> tuple[float, float]:
    """H(Y_1..Y_b) = -E log p(y), and its standard error: labels of a function at random, by uniform numbers."""
    g = Generator().manual_seed(1)
    points = p[batch].double()
    function = torch.randint(p.shape[1], (CHECKS,), generator=g)
    log = torch.zeros(CHECKS, p.shape[1], dtype=torch.float64)
    for point in points:
        u = torch.rand(CHECKS, 1, generator=g, dtype=torch.float64)
        labels = (point.cumsum(1)[function] < u).sum(1).clamp(max=p.shape[2] - 1)
        log += point.clamp(min=1e-300).log().t()[labels]
    surprise = math.log(p.shape[1]) - log.logsumexp(1)
    return float(surprise.mean()), float(surprise.std()) / CHECKS**0.5


def worth(p: Tensor, batch: list[int]) -> str:
    entropy, error = joint_entropy(p, batch)
    information = entropy - float(Moments.of(p[batch]).entropy.sum())
    return f"joint entropy {entropy:.3f} ± {error:.3f} nats, of which {information:.3f} tell of the functions"


def side(who: str, environment: Path | None, path: str, configurations: int, threads: int) -> list[str]:
    """What peer_batchbald.py prints: seconds, MB and picks."""
    if environment is None or not (python := environment / "bin" / "python").exists():
        return []
    words = [python, Path(__file__).with_name("peer_batchbald.py"), who, path, BATCH, configurations, threads]
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
    return run.stdout.strip().split("\t")


def batch_bald(environments: dict[str, Path | None], threads: int) -> None:
    p, strategy = mnist_like(*MNIST), BatchBALD()
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "draws.npy")
        np.save(path, p.numpy())
        runs = [side("balent", Path(sys.prefix), path, strategy.samples, threads) for _ in range(REPEATS)]
        ours = min(float(seconds) for seconds, *_ in runs)
        print(f"batch_bald: {compared(p, [str(ours), *runs[0][1:]], ours)}")
        print(f"  {strategy.plan(BATCH, *MNIST[1:])}")
        by_bald = acquire(Draws(p), np.arange(len(p)), BATCH, "bald").indices.tolist()
        print(f"  top {BATCH} by BALD: {worth(p, by_bald)}", flush=True)
        for who, configurations in ((who, n) for who, counts in CONFIGURATIONS.items() for n in counts):
            found = side(who, environments[who], path, configurations, threads)
            print(f"  {who}, {configurations:,} configurations: {compared(p, found, ours)}", flush=True)


def compared(p: Tensor, found: list[str], ours: float) -> str:
    if not found:
        return "left out; an option says where its environment is, peer_batchbald.py how to make it"
    if found == ["memory"]:
        return "not enough memory for its table of points, configurations and classes"
    seconds, memory, picks = float(found[0]), float(found[1]), [int(i) for i in found[2].split()]
    return f"{seconds / ours:.0f}x, {seconds:.2f} s, peak {memory:.0f} MB above the draws; {worth(p, picks)}"


# ── core_log ─────────────────────────────────────────────────────────────────────────────────────


def information(p: Tensor) -> Tensor:
    """The definition: the mean over x' of I(Y; Y'), for every x, from the joint tables of all pairs."""
    points, draws, classes = p.shape
    flat, mean = p.double().transpose(1, 2).reshape(points * classes, draws), p.double().mean(1)
    scores = []
    for x in range(points):
        joint = (flat[x * classes : (x + 1) * classes] @ flat.t() / draws).view(classes, points, classes)
        independent = mean[x].view(classes, 1, 1) * mean
        scores.append((torch.xlogy(joint, joint) - torch.xlogy(joint, independent)).sum((0, 2)).mean())
    return torch.stack(scores)


def core_log() -> None:
    from balent.data.sources import load

    data = load("digits")
    x, y = torch.as_tensor(data.x_train), torch.as_tensor(data.y_train)
    shares = {"core_log": 0.0, "core_mse": 0.0, "bald": 0.0}
    for seed in range(REPEATS):
        order = torch.randperm(len(x), generator=Generator().manual_seed(seed))
        model = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, 128), torch.nn.Dropout(), torch.nn.ReLU(), torch.nn.Linear(128, 10)
        )
        predictor = MCDropout(model, epochs=100)
        predictor.fit((x[order[:LABELS]], y[order[:LABELS]]), generator=Generator().manual_seed(seed))
        p = predictor.sample(DRAWS, seed=seed)(x[order[LABELS : LABELS + DIGITS]])
        exact = set(information(p).topk(TOP).indices.tolist())
        for name, chosen in (("core_log", CoreLog()), ("core_mse", CoreMSE()), ("bald", "bald")):
            found = acquire(Draws(p), np.arange(len(p)), TOP, chosen).indices.tolist()
            shares[name] += len(exact & set(found)) / TOP / REPEATS
    words = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    print(f"core_log: of the top {TOP} of {DIGITS} digits by the definition, mean of {REPEATS} seeds: {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redux", type=Path, help="folder of the environment with batchbald_redux")
    parser.add_argument("--baal", type=Path, help="folder of the environment with baal")
    parser.add_argument("--part", choices=["core_mse", "batch_bald", "core_log"])
    parser.add_argument("--points", type=int, default=POINTS, help="of the pool of core_mse")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    print(f"kernel {kernels.active()}, {arguments.threads} threads")
    parts = {
        "core_mse": lambda: core_mse(arguments.points),
        "batch_bald": lambda: batch_bald({"redux": arguments.redux, "baal": arguments.baal}, arguments.threads),
        "core_log": core_log,
    }
    for name, part in parts.items():
        if arguments.part in (None, name):
            part()


if __name__ == "__main__":
    main()
