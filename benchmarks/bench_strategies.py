"""What do strategies that compare points cost, in time and memory, and how do they grow with N and K?

Nine questions, each run in a process of its own, so that its peak of memory is its own (Linux: read from /proc):

  peers   BADGE from probabilities and features to picks, beside scikit-activeml and decile-distil, in turn;
          peer_skactiveml.py says how to make their environment, --peers where it is
  large   BADGE at a size where dense gradients would take 123 GB
  grid    badge, core_set and diverse from probabilities and features to picks, over N, K, C and D
  figure  the paper's timing figure: a network (Linear, dropout, ReLU, Linear on fixed features) with M draws, from
          functions to picks, for balentacq and badge; --plot says where the PNG goes
  auto    which asks the model at some thousand points only, by N, K and L (the number of labels), beside balentacq and
          badge on the same network by N: CPU seconds
  images  the same with the paper's CNN, whose pass over the pool is what costs: CPU seconds of one batch
  cap     does it lose if it looks at 20,000 references at most?  Covered weight of the whole pool with and without that
          limit, with 10,000 labels; --data NAME-features.npz takes its rows instead of random ones
  wide    is its memory bounded with 10,000 classes?
  huge    100,000 of a million points by cluster_margin, beside the top k; seals with 1,000 labels: CPU seconds

Each time is the best of several, that of a peer a single one, with ours before and after it; memory is the peak above
what the process had with its data in place. Numbers are random: logits 3·N(0, 1), features max(0, N(0, 1)).
Joint methods: bench_joint.py.
"""

import argparse
import gc
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peak import Anonymous, memory

from balent import Draws, Logistic, MCDropout, acquire
from balent.acquisition.engines.local import Local
from balent.acquisition.view import View
from balent.data.pool import Indexed
from balent.geometry.coverage import Coverage, nearest_random
from balent.geometry.distances import Points, unit
from balent.maths.measures import margin
from balent.paper.networks import CNNBNN, bayesian_head
from balent.strategies import herding
from balent.strategies.herding import MOST, References

PEERS = {"points": 10_000, "classes": 100, "features": 512, "k": 100}
LARGE = {"points": 150_000, "classes": 100, "features": 2048, "k": 500}
POINTS, KS = (10_000, 50_000, 150_000), (25, 100, 500)
CLASSES, FEATURES = (10, 100), (512, 2048)
STRATEGIES = ("badge", "core_set", "diverse:balentacq")
FIGURE = {"features": 512, "draws": 100, "strategies": ("balentacq", "badge")}
AUTO = {"features": 128, "classes": 10}
AUTO_POINTS, LABELS = (10_000, 50_000, 150_000, 1_000_000), (100, 1000, 10_000)
BESIDE = ("auto", "herding", "balentacq", "badge")
IMAGES = {"points": 60_000, "labels": 100, "k": 20, "draws": 20}
CAP = {"points": 40_000, "labels": 10_000, "k": 100, "features": 256, "classes": 10}
HUGE = {"points": 1_000_000, "classes": 10, "features": 128, "labels": 1000}
BATCHES = (("margin", 100_000), ("cluster_margin", 100_000), ("seals:margin", 1000))
WIDE = (1000, 10_000)  # classes
MIDDLE = 50_000, 100  # N where K varies, K where N varies
REPEATS = 3
QUESTIONS = ("peers", "large", "grid", "figure", "auto", "images", "cap", "wide", "huge")
MB, GB = 1e3, 1e9


def made(points: int, classes: int, features: int, draws: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [points, draws, classes] and features, a block at a time: no more memory than they take."""
    p, h = np.empty((points, draws, classes), np.float32), np.empty((points, features), np.float32)
    rng = np.random.default_rng(0)
    for i in range(0, points, 1000):
        z = torch.from_numpy(3 * rng.standard_normal((len(p[i : i + 1000]), draws, classes), dtype=np.float32))
        p[i : i + 1000] = z.softmax(-1).numpy()
        h[i : i + 1000] = rng.standard_normal(h[i : i + 1000].shape, dtype=np.float32).clip(min=0)
    return p, h


def timed(sampled: Any, pool: Any, strategy: str, ks: Iterable[int], repeats: int) -> dict[str, Any]:
    """Seconds for each K, best of several, and the peak of memory over all of it."""
    gc.collect()
    before, best = memory("VmRSS"), dict.fromkeys(ks, math.inf)
    for _ in range(repeats):
        for k in best:
            start = time.perf_counter()
            acquire(sampled, pool, k, strategy)
            best[k] = min(best[k], time.perf_counter() - start)
    return {"seconds": list(best.values()), "memory": memory("VmHWM") - before}


def selection(strategy: str, points: int, classes: int, features: int, ks: list[int], repeats: int) -> dict[str, Any]:
    """From probabilities and features to picks."""
    p, h = made(points, classes, features)
    return timed(Draws(p, features=h), np.arange(points), strategy, ks, repeats)


def network(strategy: str, points: int, classes: int, features: int, ks: list[int], repeats: int) -> dict[str, Any]:
    """From a network's functions to picks."""
    torch.manual_seed(0)
    sampled = MCDropout(bayesian_head(features, classes)).sample(FIGURE["draws"])
    return timed(sampled, torch.randn(points, features), strategy, ks, repeats)


def with_labels(
    strategy: str, points: int, classes: int, features: int, labels: int, ks: list[int], repeats: int
) -> dict[str, Any]:
    """From a network's functions to picks, with points that have labels already: CPU seconds for each K."""
    torch.manual_seed(0)
    sampled = MCDropout(bayesian_head(features, classes)).sample(FIGURE["draws"])
    return asked(sampled, torch.randn(points, features), torch.randn(labels, features), strategy, ks, repeats)


def of_images(strategy: str, points: int, labels: int, k: int, draws: int) -> dict[str, Any]:
    """The same with the paper's CNN; masks per point, as in its experiments, where the strategy gains by them."""
    torch.manual_seed(0)
    masks = "per-point" if strategy == "balentacq" else "shared"
    sampled = MCDropout(CNNBNN()).sample(draws, masks=masks)
    return asked(sampled, torch.randn(points, 1, 28, 28), torch.randn(labels, 1, 28, 28), strategy, [k], 1)


def asked(sampled: Any, pool: Any, known: Any, strategy: str, ks: list[int], repeats: int) -> dict[str, Any]:
    """CPU seconds for each K, best of several, and the peak of memory: other work on the machine counts less so."""
    gc.collect()
    before, best = memory("VmRSS"), dict.fromkeys(ks, math.inf)
    for _ in range(repeats):
        for k in best:
            start = time.process_time()
            acquire(sampled, pool, k, strategy, labelled=known)
            best[k] = min(best[k], time.process_time() - start)
    return {"seconds": list(best.values()), "memory": memory("VmHWM") - before}


def of_large_batches(strategy: str, points: int, classes: int, features: int, labels: int, k: int) -> dict[str, Any]:
    """From probabilities and features to a large batch, the first points being labelled."""
    p, h = made(points, classes, features)
    return asked(Draws(p, features=h), np.arange(labels, points), np.arange(labels), strategy, [k], 1)


def of_many_classes(classes: int, points: int, labels: int) -> dict[str, Any]:
    """Peak of memory without pages of files, and with them."""
    torch.manual_seed(0)
    sampled = MCDropout(bayesian_head(AUTO["features"], classes)).sample(20)
    pool, known = torch.randn(points, AUTO["features"]), torch.randn(labels, AUTO["features"])
    gc.collect()
    before = memory("VmRSS")
    with Anonymous() as seen:
        floor = seen.peak
        acquire(sampled, pool, 100, "auto", labelled=known)
    return {"memory": seen.peak - floor, "all": memory("VmHWM") - before}


def one_peer(folder: str, k: int) -> dict[str, Any]:
    """BADGE on the same files as the peers."""
    p, h = np.load(Path(folder) / "probabilities.npy"), np.load(Path(folder) / "features.npy")
    return timed(Draws(p[:, None], features=h), np.arange(len(p)), "badge", [k], 1)


WORKS = {
    work.__name__: work
    for work in (selection, network, with_labels, of_images, of_many_classes, of_large_batches, one_peer)
}


def apart(work: str, threads: int, **arguments: Any) -> dict[str, Any]:
    """The work in a process of its own."""
    words = [sys.executable, __file__, "--threads", str(threads), "--work", work, "--given", json.dumps(arguments)]
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)


# ── peers ────────────────────────────────────────────────────────────────────────────────────────


def run_peer(python: Path, script: str, folder: str, k: int, threads: int) -> tuple[float, float]:
    """Seconds and MB; infinite where it dies, as it does when memory runs out."""
    words = [str(python), str(Path(__file__).with_name(script)), folder, str(k), "1", str(threads)]
    limits = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    run = subprocess.run(words, capture_output=True, text=True, env=limits)
    if run.returncode:
        print(f"  {script} ended with {run.returncode}: {(run.stderr.splitlines() or ['no word'])[-1]}")
        return math.inf, math.inf
    seconds, peak, *_ = run.stdout.split()
    return float(seconds), float(peak)


def ours(folder: str, k: int, threads: int) -> tuple[float, float]:
    found = apart("one_peer", threads, folder=folder, k=k)
    return found["seconds"][0], found["memory"]


def peers(environment: Path | None, threads: int) -> None:
    points, classes, features, k = PEERS.values()
    print(f"BADGE, N = {points:,}, C = {classes}, D = {features}, K = {k}: from probabilities and features to picks")
    python = environment and environment / "bin" / "python"
    scripts = {"scikit-activeml": "peer_skactiveml.py", "decile-distil": "peer_distil.py"}
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        p, h = made(points, classes, features, 1)
        np.save(Path(folder) / "probabilities.npy", p[:, 0])
        np.save(Path(folder) / "features.npy", h)
        for name, script in scripts.items() if python and python.exists() else ():
            found["balent"] = [*found.get("balent", []), ours(folder, k, threads)]
            found[name] = [run_peer(python, script, folder, k, threads)]  # minutes: one time will do
        found["balent"] = [*found.get("balent", []), ours(folder, k, threads)]
    if len(found) == 1:
        print("  peers are left out; --peers says where their environment is")
    best = {name: tuple(min(column) for column in zip(*runs, strict=True)) for name, runs in found.items()}
    for name, (seconds, peak) in best.items():
        times = "" if name == "balent" else f"   {seconds / best['balent'][0]:6.0f}x the time"
        print(f"  {name:16s} {seconds:8.2f} s {peak:8.0f} MB{times}")


# ── our own ──────────────────────────────────────────────────────────────────────────────────────


def large(threads: int) -> None:
    points, classes, features, k = LARGE.values()
    found = apart("selection", threads, strategy="badge", points=points, classes=classes, features=features,
                  ks=[k], repeats=1)  # fmt: skip
    print(
        f"badge, N = {points:,}, C = {classes}, D = {features}, K = {k}: {found['seconds'][0]:.1f} s, peak "
        f"{found['memory'] / MB:.2f} GB beyond the features, which take {4 * points * features / GB:.2f} GB "
        f"(dense gradients: {4 * points * features * classes / GB:,.0f} GB in float32)"
    )


def grid(threads: int) -> None:
    print("From probabilities and features to picks: seconds for each K, peak of memory over all three")
    print(f"{'strategy':18s} {'N':>8s} {'C':>4s} {'D':>5s} " + " ".join(f"{f'K = {k}':>8s}" for k in KS) + "       MB")
    for features in FEATURES:
        for classes in CLASSES:
            for strategy in STRATEGIES:
                for points in POINTS:
                    found = apart("selection", threads, strategy=strategy, points=points, classes=classes,
                                  features=features, ks=KS, repeats=REPEATS)  # fmt: skip
                    row = " ".join(f"{seconds:8.2f}" for seconds in found["seconds"]) + f" {found['memory']:8.0f}"
                    print(f"{strategy:18s} {points:8,} {classes:4d} {features:5d} {row}", flush=True)


def figure(threads: int, plot: Path | None) -> None:
    features = FIGURE["features"]
    print(f"From a network's functions to picks: D = {features}, M = {FIGURE['draws']} draws")
    curves: dict[tuple[str, int], tuple[list[float], list[float]]] = {}
    middle, k = MIDDLE
    for classes in CLASSES:
        for strategy in FIGURE["strategies"]:
            of = {"strategy": strategy, "classes": classes, "features": features}
            by_n = [apart("network", threads, points=n, ks=[k], repeats=1, **of) for n in POINTS]
            by_k = apart("network", threads, points=middle, ks=KS, repeats=1, **of)
            seconds = [row["seconds"][0] for row in by_n]
            curves[strategy, classes] = seconds, by_k["seconds"]
            print(f"  {strategy:10s} C = {classes:3d}   {told('N', POINTS, seconds)}   (K = {k})")
            print(
                f"  {strategy:10s} C = {classes:3d}   {told('K', KS, by_k['seconds'])}   (N = {middle:,})", flush=True
            )
    if plot:
        drawn(curves, plot)


# ── auto ─────────────────────────────────────────────────────────────────────────────────────────


def auto(threads: int) -> None:
    """Our own over all sizes; the others by N, since neither K nor L matters to them."""
    print(f"CPU seconds from a network's functions to picks: D = {AUTO['features']}, C = {AUTO['classes']}, 100 draws")
    print(f"{'':10s} {'N':>9s} {'L':>7s} " + " ".join(f"{f'K = {k}':>8s}" for k in KS) + "       MB")
    for points in AUTO_POINTS:
        for labels in LABELS:
            row("auto", points, labels, KS, threads)
    for strategy in BESIDE[1:]:
        for points in AUTO_POINTS:
            row(strategy, points, LABELS[0], (MIDDLE[1],), threads)


def row(strategy: str, points: int, labels: int, ks: tuple[int, ...], threads: int) -> None:
    repeats = REPEATS if strategy == "auto" or points <= POINTS[-1] else 1
    found = apart(
        "with_labels", threads, strategy=strategy, points=points, labels=labels, ks=ks, repeats=repeats, **AUTO
    )
    seconds = dict(zip(ks, found["seconds"], strict=True))
    cells = " ".join(f"{seconds[k]:8.2f}" if k in seconds else " " * 8 for k in KS)
    print(f"{strategy:10s} {points:9,} {labels:7,} {cells} {found['memory']:8.0f}", flush=True)


def images(threads: int) -> None:
    print("CPU seconds of one batch, the paper's CNN: " + ", ".join(f"{n:,} {name}" for name, n in IMAGES.items()))
    for strategy in ("auto", "balentacq", "badge"):
        found = apart("of_images", threads, strategy=strategy, **IMAGES)
        print(f"  {strategy:10s} {found['seconds'][0]:7.2f} s", flush=True)


def wide(threads: int) -> None:
    """20,000 references, whose mean probabilities alone take 800 MB with 10,000 classes."""
    print("auto with 10,000 labels: peak of memory beyond pool and model, without pages of files (and with them)")
    for classes in WIDE:
        found = apart("of_many_classes", threads, classes=classes, points=50_000, labels=10_000)
        peaks, means = f"{found['memory']:5.0f} MB ({found['all']:.0f})", 4 * MOST * classes / 1e6
        print(f"  {classes:6,} classes: {peaks}; mean probabilities alone {means:.0f} MB", flush=True)


def huge(threads: int) -> None:
    print(
        "CPU seconds of a batch, from probabilities and features: " + ", ".join(f"{n:,} {x}" for x, n in HUGE.items())
    )
    for strategy, k in BATCHES:
        found = apart("of_large_batches", threads, strategy=strategy, k=k, **HUGE)
        print(f"  {strategy:16s} K = {k:7,} {found['seconds'][0]:7.2f} s {found['memory']:8.0f} MB", flush=True)


def rows_and_labels(data: Path | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of a pool and their classes: of a file, or clusters at random."""
    if data is not None:
        with np.load(data, allow_pickle=False) as file:
            return torch.from_numpy(file["x_train"]).float(), torch.from_numpy(file["y_train"]).long()
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(CAP["classes"], (CAP["points"] + CAP["labels"],), generator=generator)
    centres = torch.randn(CAP["classes"], CAP["features"], generator=generator)
    return centres[y] + 2 * torch.randn(len(y), CAP["features"], generator=generator), y


def cap(data: Path | None, seeds: int = 3) -> None:
    """Weight of the whole pool that 100 more labels cover, and what a random batch covers."""
    x, y = rows_and_labels(data)
    print(f"{CAP['labels']:,} labels, {CAP['k']} more: share of the pool's weight that they cover in addition")
    for seed in range(seeds):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[: CAP["points"] + CAP["labels"]]
        known, pool = order[: CAP["labels"]], x[order[CAP["labels"] :]]
        head = Logistic(int(y.max()) + 1)
        head.fit((x[known], y[known]), generator=torch.Generator().manual_seed(seed))
        judge = Judge.of(head.sample(20, seed=seed), pool, x[known])
        words = [f"random {1e4 * judge(torch.arange(CAP['k'])):.2f}"]
        for most in (MOST, len(pool)):
            herding.MOST = most
            start = time.process_time()
            picks = acquire(head.sample(20, seed=seed), pool, CAP["k"], "auto", labelled=x[known], seed=seed)
            seconds = time.process_time() - start
            words.append(f"{most:,} references {1e4 * judge(picks.indices):.2f} ({seconds:.1f} CPU s)")
        herding.MOST = MOST
        print(f"  seed {seed}, in 1/10,000: " + "   ".join(words), flush=True)


class Judge:
    """Covered weight, with every point of the pool as a reference."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage, self.before = coverage, coverage.covered

    @classmethod
    def of(cls, sampled: Any, pool: torch.Tensor, known: torch.Tensor) -> "Judge":
        view, at = View(Local(), Indexed(pool)), torch.arange(len(pool))
        everything = References.read(sampled, view, at, margin, 1.0, 0)
        scale = herding.Herding.radius * nearest_random(everything.points, len(known) + CAP["k"])
        coverage = Coverage(everything.points, everything.weights, scale)
        coverage.begin(Points.of(unit(known)))
        return cls(coverage)

    def __call__(self, picks: torch.Tensor) -> float:
        self.coverage.covered = self.before
        self.coverage.begin(self.coverage.references[picks])
        return float((self.coverage.covered - self.before).double() @ self.coverage.weights.double())


def told(name: str, sizes: Iterable[int], seconds: Iterable[float]) -> str:
    return "  ".join(f"{name} = {n:,}: {s:.1f} s" for n, s in zip(sizes, seconds, strict=True))


def drawn(curves: Mapping[tuple[str, int], tuple[list[float], list[float]]], path: Path) -> None:
    """Time against N and against K."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
    for (strategy, classes), lines in curves.items():
        style = f"{'C0' if classes == CLASSES[0] else 'C1'}o{'-' if strategy == 'balentacq' else '--'}"
        for axis, sizes, seconds in zip(axes, (POINTS, KS), lines, strict=True):
            axis.plot(sizes, seconds, style, label=f"{strategy}, C = {classes}")
    axes[0].set(xlabel=f"points in the pool (K = {MIDDLE[1]})", ylabel="seconds", ylim=(0, None))
    axes[1].set(xlabel=f"points picked (N = {MIDDLE[0]:,})")
    for axis, sizes in zip(axes, (POINTS, KS), strict=True):
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes[0].legend(frameon=False)
    pyplot.savefig(path, dpi=150)
    print(f"  drawn in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="folder of the environment with the peers")
    parser.add_argument("--plot", type=Path, help="where the timing figure goes, as PNG")
    parser.add_argument("--only", choices=QUESTIONS, help="one question, not all")
    parser.add_argument("--data", type=Path, help="features for `cap`, as an .npz file with x_train and y_train")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--work", choices=WORKS, help=argparse.SUPPRESS)
    parser.add_argument("--given", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    if given.work:
        print(json.dumps(WORKS[given.work](**given.given)))
        return
    print(f"{given.threads} threads; best of {REPEATS}")
    questions = {
        "peers": lambda: peers(given.peers, given.threads),
        "large": lambda: large(given.threads),
        "grid": lambda: grid(given.threads),
        "figure": lambda: figure(given.threads, given.plot),
        "auto": lambda: auto(given.threads),
        "images": lambda: images(given.threads),
        "cap": lambda: cap(given.data),
        "wide": lambda: wide(given.threads),
        "huge": lambda: huge(given.threads),
    }
    for name, ask in questions.items():
        if given.only in (None, name):
            ask()


if __name__ == "__main__":
    main()
