"""How a backbone is run: by onnxruntime, twice as fast on CPUs as torch, or by torch where it is not installed.

Results of the two differ in the fifth digit, so features are stored with the name of their backend: "torch", or
"onnxruntime" with its version, as "onnxruntime 1.31". A graph is computed by one thread. Callers that have more run
several graphs side by side: nothing then waits for the slowest thread, and results do not depend on their number.

The network is traced (`dynamo=False`): that takes a second, the other exporter of torch ten, and needs the package onnx
only. A trace is one path through the code, so its results are compared with those of torch before they are used.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

AUTO, TORCH, RUNTIME = "auto", "torch", "onnxruntime"
OPSET = 17  # of the graph: the same whatever torch's default is
TOLERANCE = 1e-4  # of the largest feature
INSTALL = "pip install 'balent[vision]'"

Run = Callable[[np.ndarray], np.ndarray]  # images [batch, …] to features [batch, width]


def backend(wanted: str = AUTO, device: str = "cpu") -> str:
    """The name to store with features, of auto, torch, onnxruntime, or a name that was stored.

    auto is onnxruntime where it is installed. A stored name is refused if this version is not installed.
    """
    if wanted == TORCH or (wanted == AUTO and (device != "cpu" or version() is None)):
        return TORCH
    if wanted.split(" ")[0] not in (AUTO, RUNTIME):
        raise ValueError(f"backend must be {AUTO}, {RUNTIME} or {TORCH}, but is {wanted!r}")
    if device != "cpu":
        raise ValueError(f"{RUNTIME} computes on CPUs, but the device is {device!r}; use backend {TORCH!r}")
    found = version()
    if found is None:
        raise ImportError(f"{wanted} was asked for, but is not installed with the package onnx; {_advice(wanted)}")
    if wanted not in (AUTO, RUNTIME, f"{RUNTIME} {found}"):
        raise ImportError(
            f"these features were begun with {wanted}, but {RUNTIME} {found} is installed, and rounds differently; "
            f"{_advice(wanted)}, or compute all of them again"
        )
    return f"{RUNTIME} {found}"


def _advice(wanted: str) -> str:
    _, _, pinned = wanted.partition(" ")
    return f"install it with: pip install onnx '{RUNTIME}=={pinned}.*'" if pinned else f"install them with: {INSTALL}"


def version() -> str | None:
    """The version of onnxruntime, as 1.31; None if it or onnx, which the export needs, is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        return None
    return ".".join(onnxruntime.__version__.split(".")[:2])


def run_by(name: str, network: nn.Module, example: Tensor) -> Run:
    """The network as a function of arrays, by a backend. Its batches have at most the size of the example."""
    return Eager(network) if name == TORCH else Exported(network, example)


class Eager:
    """A network as torch runs it."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def __call__(self, images: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return self.network(torch.from_numpy(images)).float().numpy()


class Exported:
    """A network as onnxruntime runs it. Several threads may call it."""

    def __init__(self, network: nn.Module, example: Tensor) -> None:
        self.batch = len(example)
        self.session = session(network.eval(), example)
        self.input = self.session.get_inputs()[0].name
        self._check(network, example)

    def __call__(self, images: np.ndarray) -> np.ndarray:
        missing = self.batch - len(images)
        if missing > 0:  # the graph has one batch size: the last image fills it up
            images = np.concatenate([images, images[-1:].repeat(missing, 0)])
        [features] = self.session.run(None, {self.input: images})
        return features[: self.batch - missing]

    def _check(self, network: nn.Module, example: Tensor) -> None:
        with torch.inference_mode():
            expected = network(example).float().numpy()
        if not np.isfinite(expected).all():
            raise ValueError(
                "features must be finite, but those of a random image are not; look for NaN in the weights"
            )
        found = self(example.numpy())
        most = TOLERANCE * np.abs(expected).max()
        if found.shape != expected.shape or not np.allclose(found, expected, rtol=0, atol=most):
            raise ValueError(f"the exported network does not compute what torch computes; use backend {TORCH!r}")


def session(network: nn.Module, example: Tensor) -> Any:
    """The network in onnxruntime. It lies in a file until it is loaded: graphs above 2 GB need files beside them."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # With all optimisations convolutions work on blocks of channels, which makes them almost three times as fast.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    with TemporaryDirectory(prefix="balent-") as place:
        file = Path(place) / "network.onnx"
        try:
            _export(network, example, file)
            return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except RuntimeError as error:
            raise ValueError(
                f"this network cannot be exported to ONNX: {str(error).strip().splitlines()[0]}; use backend {TORCH!r}"
            ) from error


def _export(network: nn.Module, example: Tensor, file: Path) -> None:
    with warnings.catch_warnings():
        # Warnings that a trace may be wrong, which is checked; and that this exporter is an old one.
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (example,), str(file), dynamo=False, opset_version=OPSET)


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch computes with one thread: results then do not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
