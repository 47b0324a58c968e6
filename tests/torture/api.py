"""Fuzzed calls of the API of arrays: each ends in a clear error, or in an answer that plain float64 numpy gives too.

    python -m torture.api [tries] [seed]      from tests/

A case is drawn together with what is wrong with it, if anything. An input that is not wrong must be accepted; one that
is must be refused with a ValueError or TypeError that says something. Everything else is a traceback, or silent.
"""

import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import balent

COLUMNS = ("tried", "clear error", "right", "traceback", "silent")
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-3, "float32": 2e-5, "float64": 1e-8}


@dataclass(frozen=True)
class Case:
    """A call, what is right about its answer, and why it must be refused instead ("" if it must not)."""

    call: Callable[[], Any]
    right: Callable[[Any], bool]
    wrong: str
    text: str


def run(tries: int = 3000, seed: int = 0) -> dict[str, Counter]:
    """Rows of the table: for each entry point, how its calls ended."""
    rng = np.random.default_rng(seed)
    found = {name: Counter(dict.fromkeys(COLUMNS, 0)) for name in ENTRIES}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(tries):
            name = list(ENTRIES)[i % len(ENTRIES)]
            case = ENTRIES[name](rng, Path(folder) / "draws.npy")
            how = verdict(case)
            found[name].update(["tried", how])
            if how in ("traceback", "silent"):
                print(f"{name}: {how}: {case.text} (wrong: {case.wrong or 'nothing'})", file=sys.stderr)
    return found


def verdict(case: Case) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            answer = case.call()
        except (ValueError, TypeError) as error:
            if case.wrong and len(str(error)) > 20 and " " in str(error):
                return "clear error"
            print(f"  {type(error).__name__}: {error}", file=sys.stderr)
            return "traceback"  # refused though nothing is wrong, or in no words
        except Exception as error:
            print(f"  {type(error).__name__}: {error}", file=sys.stderr)
            return "traceback"
    return "right" if not case.wrong and case.right(answer) else "silent"


# ── the same, slowly ─────────────────────────────────────────────────────────────────────────────


def reference(x: np.ndarray, measure: str, logits: bool) -> np.ndarray | None:
    """Scores by the textbook in float64; None for measures that have no short formula."""
    if logits:
        e = np.exp(x - x.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
    else:
        p = x / x.sum(-1, keepdims=True)
    mean, order = p.mean(1), np.sort(np.pad(p.mean(1), ((0, 0), (1, 0))), -1)
    known = {
        "entropy": lambda: entropy(mean),
        "aleatoric": lambda: entropy(p).mean(1),
        "bald": lambda: entropy(mean) - entropy(p).mean(1),
        "mean_sd": lambda: p.std(1).mean(-1),
        "variation_ratio": lambda: 1 - mean.max(-1),
        "margin": lambda: 1 - (order[:, -1] - order[:, -2]),
    }
    return known[measure]() if measure in known else None


def entropy(p: np.ndarray) -> np.ndarray:
    return -(p * np.log(np.where(p > 0, p, 1))).sum(-1)


def same(came: Any, true: np.ndarray | None, kind: str, size: int) -> bool:
    scores = np.asarray(came)
    if scores.shape != (size,) or np.isnan(scores).any():
        return False
    return true is None or np.allclose(scores, true, rtol=TOLERANCE[kind], atol=TOLERANCE[kind])


# ── what goes in ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Input:
    """An array as it is handed in, its numbers in float64, and what is wrong with it."""

    array: Any
    numbers: np.ndarray
    logits: bool
    kind: str
    wrong: str
    text: str


def pick(rng: np.random.Generator, table: dict[str, Any] | list[Any]) -> Any:
    return list(table)[rng.integers(len(table))]


def draws(rng: np.random.Generator, file: Path) -> Input:
    """Mostly good draws, in a layout of any kind; sometimes damaged, sometimes no draws at all."""
    if rng.random() < 0.06:
        name = pick(rng, NO_ARRAYS)
        return Input(NO_ARRAYS[name](), np.ones((3, 2, 2)) / 2, False, "float64", f"it is {name}", name)
    shape = (int(rng.integers(1, 13)), int(rng.integers(1, 8)), int(pick(rng, [1, 2, 3, 5, 10, 50])))
    logits = bool(rng.random() < 0.4)
    x = rng.standard_normal(shape) * 3 + rng.standard_normal((shape[0], 1, shape[2]))
    kind = pick(rng, ["float64", "float64", "float32", "float32", "float16"])
    x = (x if logits else softmax(x)).astype(kind)
    damage, layout = pick(rng, DAMAGES) if rng.random() < 0.35 else "none", pick(rng, LAYOUTS)
    x, wrong = DAMAGES[damage](x, logits, rng)
    numbers = x.astype(np.float64) if x.ndim == 3 and x.dtype.kind == "f" else np.ones(shape)
    x, refused = LAYOUTS[layout](x, file)
    return Input(x, numbers, logits, kind, wrong or refused, f"{kind} {shape} logits={logits} {damage}, {layout}")


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


NO_ARRAYS = {
    "None": lambda: None, "a list": lambda: [[[0.5, 0.5]]], "a string": lambda: "draws", "a number": lambda: 0.5,
    "a dict": lambda: {"draws": np.ones((2, 2, 2)) / 2}, "integers": lambda: np.ones((3, 2, 1), int),
    "bools": lambda: np.ones((3, 2, 1), bool), "complex": lambda: np.ones((3, 2, 1), complex),
    "objects": lambda: np.ones((3, 2, 1), object), "strings": lambda: np.full((3, 2, 1), "1.0"),
    "long doubles": lambda: np.ones((3, 2, 1), np.longdouble), "no axes": lambda: np.array(1.0),
    "torch integers": lambda: torch.ones(3, 2, 1, dtype=torch.int64),
    "torch complex": lambda: torch.ones(3, 2, 1, dtype=torch.complex64),
    "float8": lambda: torch.ones(3, 2, 1).to(torch.float8_e4m3fn),
    "sparse": lambda: torch.ones(3, 2, 1).to_sparse(), "on no device": lambda: torch.ones(3, 2, 1, device="meta"),
    "a masked array": lambda: np.ma.masked_array(np.full((3, 2, 2), 0.5), mask=np.eye(3, 2)[..., None] * [1, 1] > 0),
    "dates": lambda: np.zeros((3, 2, 1), "datetime64[s]"), "records": lambda: np.zeros((3, 2, 1), [("p", "f4")]),
}  # fmt: skip


def spoilt(value: float, wrong: Callable[[bool, np.ndarray], str]) -> Callable:
    def spoil(x: np.ndarray, logits: bool, rng: np.random.Generator) -> tuple[np.ndarray, str]:
        x = x.copy()
        x[tuple(rng.integers(size) for size in x.shape)] = value
        return x, wrong(logits, x)

    return spoil


def all_masked(logits: bool, x: np.ndarray) -> str:
    return "" if logits and (x.max(-1) > -np.inf).all() else "-inf"


DAMAGES: dict[str, Callable] = {
    "none": lambda x, logits, rng: (x, ""),
    "a NaN": spoilt(np.nan, lambda logits, x: "NaN"),
    "an inf": spoilt(np.inf, lambda logits, x: "inf"),
    "a -inf": spoilt(-np.inf, all_masked),
    "a negative": spoilt(-0.25, lambda logits, x: "" if logits else "negative"),
    "too large a sum": lambda x, logits, rng: (x * x.dtype.type(1.1), "" if logits else "sum"),
    "a sum that is nearly 1": lambda x, logits, rng: (x * x.dtype.type(1 + 2e-6), ""),
    "zeros": lambda x, logits, rng: (x * 0, "" if logits else "sum"),
    "minus zeros": lambda x, logits, rng: (x * 0 - 0.0, "" if logits else "sum"),
    "all -inf": lambda x, logits, rng: (x * 0 - np.inf, "-inf"),
    "one-hot": lambda x, logits, rng: ((x == x.max(-1, keepdims=True)).astype(x.dtype), ""),
    "equal draws": lambda x, logits, rng: (np.repeat(x[:, :1], x.shape[1], 1), ""),
    "no points": lambda x, logits, rng: (x[:0], "empty"),
    "no draws": lambda x, logits, rng: (x[:, :0], "empty"),
    "no classes": lambda x, logits, rng: (x[..., :0], "empty"),
    "two axes": lambda x, logits, rng: (x[:, 0], "axes"),
    "four axes": lambda x, logits, rng: (x[None], "axes"),
}  # fmt: skip


def odd(x: np.ndarray, file: Path) -> tuple[np.ndarray, str]:
    room = bytearray(b" " + x.tobytes())
    return np.frombuffer(room, x.dtype, offset=1, count=x.size).reshape(x.shape) if x.size else x, ""


def packed(x: np.ndarray, file: Path) -> tuple[np.ndarray, str]:
    records = np.zeros(x.shape, [("byte", "i1"), ("p", x.dtype)])
    records["p"] = x
    return records["p"], ""


def mapped(x: np.ndarray, file: Path) -> tuple[np.ndarray, str]:
    np.save(file, x)
    return np.load(file, mmap_mode="r") if x.size else x, ""


def read_only(x: np.ndarray, file: Path) -> tuple[np.ndarray, str]:
    x = x.copy()
    x.flags.writeable = False
    return x, ""


LAYOUTS: dict[str, Callable[[np.ndarray, Path], tuple[Any, str]]] = {
    "as it is": lambda x, file: (x, ""),
    "Fortran": lambda x, file: (np.asfortranarray(x), ""),
    "backwards": lambda x, file: (x[::-1].copy()[::-1], ""),
    "classes backwards": lambda x, file: (x[..., ::-1].copy()[..., ::-1], ""),
    "every other": lambda x, file: (np.repeat(x, 2, 0)[::2], ""),
    "far apart": lambda x, file: (np.repeat(x, 999, -1)[..., ::999], ""),
    "big-endian": lambda x, file: (x.astype(x.dtype.newbyteorder(">")), ""),
    "at an odd address": odd,
    "packed": packed,
    "a memory map": mapped,
    "read-only": read_only,
    "broadcast": lambda x, file: (np.broadcast_to(x, x.shape), ""),
    "without a mask": lambda x, file: (np.ma.masked_array(x), ""),
    "torch": lambda x, file: (torch.tensor(x), ""),
    "torch with gradients": lambda x, file: (torch.tensor(x, requires_grad=True), ""),
    "torch transposed": lambda x, file: (torch.tensor(x.T.copy()).permute(*range(x.ndim)[::-1]), ""),
    "torch negated": lambda x, file: (torch._neg_view(torch.tensor(-x)), ""),
}

MEASURES = ["entropy", "aleatoric", "bald", "mean_sd", "variation_ratio", "margin", "balentacq", "balent", "beta_eig"]
NO_SPREAD = {"entropy", "aleatoric", "variation_ratio", "margin", "random"}
NO_NAMES = [
    "balentaq", "", "power", "power:", "power:nothing", ":bald", "bald(", "bald()x", "bald(k=3)", "bald\0", "b" * 500,
    "balentacq(precision)", "balentacq(precision=)", "balentacq(precision='high')", "balentacq(precision=None)",
    "balentacq(2)", "balentacq(precision=1, precision=2)", "balentacq(**{})", "power:bald(beta='x')",
    "power:bald(beta=[1])",
]  # fmt: skip
NO_MEASURES: list[Any] = [
    *NO_NAMES, None, 3, 2.5, ["bald"], b"bald",
    lambda m: "scores", lambda m: None, lambda m: m.mean.tolist(), lambda m: m.mean.numpy()[:, 0],
    lambda m: m.mean[:, :, None], lambda m: m.mean.sum(), lambda m: torch.zeros(len(m) + 1),
    lambda m: m.entropy * float("nan"), lambda m: m.entropy.to(torch.complex64),
]  # fmt: skip
NO_SEEDS: list[Any] = [None, "seed", 1.5, 2**64, 2**100, -(2**63) - 1, [1], True]
SEEDS: list[Any] = [0, 1, 2**32, 2**63 - 1, np.int64(3), -5]


def measure_of(rng: np.random.Generator) -> tuple[Any, str]:
    if rng.random() < 0.15:
        wrong = NO_MEASURES[rng.integers(len(NO_MEASURES))]
        return wrong, f"measure {wrong!r}"
    return pick(rng, MEASURES), ""


def seed_of(rng: np.random.Generator) -> tuple[Any, str]:
    wrong = rng.random() < 0.08
    seed = (NO_SEEDS if wrong else SEEDS)[rng.integers(len(NO_SEEDS if wrong else SEEDS))]
    return seed, f"seed {seed!r}" if wrong else ""


def k_of(rng: np.random.Generator, size: int) -> tuple[Any, str]:
    if rng.random() < 0.15:
        wrong = pick(rng, [0, -1, size + 1, 2**70, 1.0, float("nan"), True, "2", None, np.float64(1)])
        return wrong, f"k {wrong!r}"
    return pick(rng, [int, np.int64, np.uint8])(rng.integers(1, max(1, size) + 1)), ""


def first(*wrongs: str) -> str:
    return next((wrong for wrong in wrongs if wrong), "")


# ── entry points ─────────────────────────────────────────────────────────────────────────────────


def scored(rng: np.random.Generator, file: Path) -> Case:
    x, (measure, wrong), (seed, no_seed) = draws(rng, file), measure_of(rng), seed_of(rng)
    with_error = bool(rng.random() < 0.2)
    few = "one draw has no error" if with_error and x.numbers.shape[1] < 2 else ""

    def right(answer: Any) -> bool:
        scores, errors = answer if with_error else (answer, answer)
        alike = isinstance(scores, torch.Tensor) == isinstance(x.array, torch.Tensor)
        fine = not with_error or (
            np.asarray(errors).shape == (len(x.numbers),) and not np.isnan(np.asarray(errors)).any()
        )
        return alike and fine and same(scores, reference(x.numbers, measure, x.logits), x.kind, len(x.numbers))

    def call() -> Any:
        return balent.score(x.array, measure, logits=x.logits, with_error=with_error, seed=seed)

    return Case(call, right, first(x.wrong, wrong, no_seed, few), f"score({x.text}, {measure!r}, seed={seed!r})")


def are_best(picks: Any, x: Input, measure: Any, k: Any) -> bool:
    """k different points, best first, none left out that is better."""
    indices, scores = np.asarray(picks.indices), np.asarray(picks.scores)
    if len(indices) != k or len(set(indices.tolist())) != k or (np.diff(scores) > 0).any() or np.isnan(scores).any():
        return False
    true = reference(x.numbers, measure, x.logits)
    if true is None:
        return True
    room = 3 * TOLERANCE[x.kind] * (1 + np.abs(true).max())
    left = np.delete(true, indices)
    return np.allclose(scores, true[indices], atol=room) and (not len(left) or left.max() <= scores.min() + room)


def spreadless(x: Input, measure: Any) -> str:
    one = x.numbers.shape[1] == 1 and isinstance(measure, str) and measure not in NO_SPREAD
    return "one draw shows no spread" if one else ""


def selected(rng: np.random.Generator, file: Path) -> Case:
    x, (measure, wrong), (seed, no_seed) = draws(rng, file), measure_of(rng), seed_of(rng)
    k, no_k = k_of(rng, len(x.numbers))
    why = first(x.wrong, wrong, no_seed, no_k, spreadless(x, measure))
    return Case(
        lambda: balent.select(x.array, measure, k, logits=x.logits, seed=seed),
        lambda picks: are_best(picks, x, measure, k),
        why,
        f"select({x.text}, {measure!r}, k={k!r}, seed={seed!r})",
    )


def moments(rng: np.random.Generator, file: Path) -> Case:
    x = draws(rng, file)

    def right(m: Any) -> bool:
        p = softmax(x.numbers) if x.logits else x.numbers / x.numbers.sum(-1, keepdims=True)
        room = TOLERANCE[x.kind]
        pairs = (
            (m.mean, p.mean(1)),
            (m.var, p.var(1)),
            (m.within, (p * (1 - p)).mean(1)),
            (m.entropy, entropy(p).mean(1)),
        )
        return m.n == p.shape[1] and all(np.allclose(came, true, rtol=room, atol=room) for came, true in pairs)

    return Case(lambda: balent.Moments.of(x.array, logits=x.logits), right, x.wrong, f"Moments.of({x.text})")


STRATEGIES = ["random", "power:bald", "power:entropy(beta=8)", "jitter:bald", "batch_bald", "core_mse", "power_bald"]
POOLS: dict[str, tuple[Callable[[int], Any], str]] = {
    "arange": (np.arange, ""),
    "range": (range, ""),
    "list": (lambda n: list(range(n)), ""),
    "torch": (torch.arange, ""),
    "int32": (lambda n: np.arange(n, dtype=np.int32), ""),
    "too long": (lambda n: np.arange(n + 3), "positions beyond the draws"),
    "negative": (lambda n: np.arange(-n, 0), "negative positions"),
    "floats": (lambda n: np.arange(n) + 0.5, "positions that are no whole numbers"),
    "strings": (lambda n: [str(i) for i in range(n)], "positions that are no numbers"),
    "empty": (lambda n: np.arange(0), "no points"),
    "None": (lambda n: None, "no pool"),
    "a number": (lambda n: 7, "no pool"),
}


def acquired(rng: np.random.Generator, file: Path) -> Case:
    x, (measure, wrong), (seed, no_seed) = draws(rng, file), measure_of(rng), seed_of(rng)
    while not isinstance(measure, str):  # acquire takes strategies, not functions
        measure, wrong = measure_of(rng)
    noisy = not wrong and rng.random() < 0.3
    measure = pick(rng, STRATEGIES[x.wrong != "" :]) if noisy else measure  # random need not see what is wrong
    k, no_k = k_of(rng, len(x.numbers))
    pool = pick(rng, POOLS) if rng.random() < 0.4 else "arange"
    make, no_pool = POOLS[pool]
    one = "one draw" if noisy and x.numbers.shape[1] == 1 and measure not in ("random", "power:entropy(beta=8)") else ""
    why = first(x.wrong, wrong, no_seed, no_k, no_pool, one if noisy else spreadless(x, measure))

    def right(picks: Any) -> bool:
        return len(set(picks.indices.tolist())) == k if noisy else are_best(picks, x, measure, k)

    def call() -> Any:
        source = balent.Draws(x.array, logits=x.logits)
        return balent.acquire(source, make(len(x.numbers)), k, measure, seed=seed)

    return Case(call, right, why, f"acquire(Draws({x.text}), {pool}, k={k!r}, {measure!r}, seed={seed!r})")


def settings(rng: np.random.Generator, file: Path) -> Case:
    """`balent(precision=2)` and the like: the same as the function with that setting."""
    value = pick(
        rng, [2, 2.0, -1, 0, "2", "'2'", "None", "[2]", "nan", "1e400", "2)(", "__import__('os')", "precision", "True"]
    )
    wrong = "" if isinstance(value, int | float) else f"precision={value}"
    name = pick(rng, ["balent", "balentacq"])
    p = softmax(rng.standard_normal((9, 5, 3)))

    def right(picks: Any) -> bool:
        scores = balent.MEASURES[name](balent.Moments.of(p), precision=float(value)).numpy()  # type: ignore[call-arg]
        return np.allclose(scores[picks.indices], picks.scores) and picks.scores.min() >= np.sort(scores)[-4] - 1e-9

    if value == "2":
        wrong, value = "", 2
    text = f"{name}(precision={value})"
    return Case(lambda: balent.select(p, text, 4), right, wrong, f"select(…, {text!r})")


ENTRIES: dict[str, Callable[[np.random.Generator, Path], Case]] = {
    "score": scored,
    "select": selected,
    "Moments.of": moments,
    "acquire over Draws": acquired,
    "settings of names": settings,
}


def main() -> None:
    tries, seed = (int(word) for word in (*sys.argv[1:], *("3000", "0")[len(sys.argv) - 1 :]))
    found = run(tries, seed)
    print(f"{'':20s}" + "".join(f"{column:>20s}" for column in COLUMNS))
    for name, counts in found.items():
        print(f"{name:20s}" + "".join(f"{counts[column]:20d}" for column in COLUMNS))
    sys.exit(any(counts["traceback"] + counts["silent"] for counts in found.values()))


if __name__ == "__main__":
    main()
