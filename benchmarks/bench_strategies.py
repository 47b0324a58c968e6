"""What do strategies that compare points cost, in time and memory, and how do they grow with N and K?

Five questions, each run in a process of its own, so that its peak of memory is its own (Linux: read from /proc):

  peers   BADGE from probabilities and features to picks, beside scikit-activeml and decile-distil, in turn;
          peer_skactiveml.py says how to make their environment, --peers where it is
  large   BADGE at a size where dense gradients would take 123 GB
  grid    badge, core_set and diverse from probabilities and features to picks, over N, K, C and D
  figure  the paper's timing figure: a network (Linear, dropout, ReLU, Linear on fixed features) with M draws, from
          functions to picks, for balentacq and badge; --plot says where the PNG goes
  auto    herding, which asks the model at some thousand points only, beside balentacq and badge on the same network:
          by N (at K = 100 and 100 labels), by K, and by L, the number of labels

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
from peak import memory

from balent import Draws, MCDropout, acquire
from balent.paper.networks import bayesian_head

PEERS = {"points": 10_000, "classes": 100, "features": 512, "k": 100}
LARGE = {"points": 150_000, "classes": 100, "features": 2048, "k": 500}
POINTS, KS = (10_000, 50_000, 150_000), (25, 100, 500)
CLASSES, FEATURES = (10, 100), (512, 2048)
STRATEGIES = ("badge", "core_set", "diverse:balentacq")
FIGURE = {"features": 512, "draws": 100, "strategies": ("balentacq", "badge")}
AUTO = {
    "features": 128,
    "classes": 10,
    "points": (10_000, 50_000, 150_000, 1_000_000),
    "labels": (100, 1000, 10_000),
    "strategies": ("auto", "balentacq", "badge"),
}
MIDDLE = 50_000, 100  # N where K varies, K where N varies
REPEATS = 3
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
    strategy: str, points: int, classes: int, features: int, labels: int, k: int, repeats: int
) -> dict[str, Any]:
    """From a network's functions to picks, with points that have labels already."""
    torch.manual_seed(0)
    sampled = MCDropout(bayesian_head(features, classes)).sample(FIGURE["draws"])
    pool, known = torch.randn(points, features), torch.randn(labels, features)
    gc.collect()
    before, best = memory("VmRSS"), math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        acquire(sampled, pool, k, strategy, labelled=known)
        best = min(best, time.perf_counter() - start)
    return {"seconds": best, "memory": memory("VmHWM") - before}


def one_peer(folder: str, k: int) -> dict[str, Any]:
    """BADGE on the same files as the peers."""
    p, h = np.load(Path(folder) / "probabilities.npy"), np.load(Path(folder) / "features.npy")
    return timed(Draws(p[:, None], features=h), np.arange(len(p)), "badge", [k], 1)


WORKS = {work.__name__: work for work in (selection, network, with_labels, one_peer)}


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


def auto(threads: int) -> None:
    of = {"features": AUTO["features"], "classes": AUTO["classes"]}
    print(
        f"From a network's functions to picks: D = {of['features']}, C = {of['classes']}, M = {FIGURE['draws']} draws"
    )
    sizes = [
        *((n, 100, 100) for n in AUTO["points"]),
        *((50_000, k, 100) for k in KS),
        *((50_000, 100, labels) for labels in AUTO["labels"]),
    ]
    for points, k, labels in dict.fromkeys(sizes):
        row = f"  N = {points:9,}  K = {k:3d}  L = {labels:6,} "
        for strategy in AUTO["strategies"]:
            found = apart("with_labels", threads, strategy=strategy, points=points, labels=labels, k=k, repeats=2, **of)
            row += f"  {strategy} {found['seconds']:6.2f} s {found['memory'] / MB:5.2f} GB"
        print(row, flush=True)


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
    parser.add_argument("--only", choices=("peers", "large", "grid", "figure", "auto"), help="one question, not all")
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
    }
    for name, ask in questions.items():
        if given.only in (None, name):
            ask()


if __name__ == "__main__":
    main()
