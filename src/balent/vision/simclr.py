"""SimCLR (Chen et al., 2020): a backbone learns, without labels, which two views come from one image.

Two random views of each image of a batch go through the backbone and a small head. The loss asks of each view to
find the other one among all views of the batch; the head is discarded at the end. Random numbers of a step are a
function of the seed and the number of the step, so a killed process continues from its last checkpoint to
the same weights, bit for bit (on the same machine with as many threads).
"""

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from balent.loop import journal
from balent.loop.learner import agree
from balent.loop.seeds import seed_of
from balent.predictors.augment import Views
from balent.predictors.inputs import channels_last, fitting
from balent.predictors.training import Training, adam, placed, reproducible

SECONDS = 10.0  # of work that a kill may cost,
SHARE = 0.02  # unless checkpoints would take more of the time than this


@dataclass(frozen=True)
class SimCLR:
    """Everything that decides a training. Defaults are those of the paper where it states them (appendix, "More
    experimental details": 224 × 224 pixels, batches of 192, 500 epochs, Adam with a learning rate of 0.0003)."""

    epochs: int = 500
    batch_size: int = 192
    learning_rate: float = 0.0003
    image_size: int = 224
    # Not in the paper: the middle one of those that Chen et al. try on CIFAR-10 (B.9).
    temperature: float = 0.5
    projection: int = 128  # numbers that two views are compared by: not in the paper; Chen et al., section 2.1
    steps: int | None = None  # an end before that of the epochs
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "learning_rate", "image_size", "temperature", "projection", "steps"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, but is {value}")
        if self.batch_size < 2:
            raise ValueError("batch_size must be 2 or more: views are contrasted with those of other images")


@dataclass(frozen=True)
class Step:
    """Progress of the training."""

    done: int
    steps: int
    losses: list[float]  # of all steps done


def nt_xent(z: Float[Tensor, "views width"], temperature: float) -> Float[Tensor, ""]:
    """Normalised temperature-scaled cross entropy; rows i and i + n are the two views of image i.

        ℓ_i = -log exp(s_ij / τ) / Σ_{k ≠ i} exp(s_ik / τ),   s = cosines,  j the other view of the image of i

    The mean over all 2n views.

    >>> same = torch.eye(2).repeat(2, 1)  # two images, both views alike: log(1 + 2 exp(-1/τ))
    >>> round(float(nt_xent(same, 1.0)), 4), round(math.log(1 + 2 / math.e), 4)
    (0.5514, 0.5514)
    """
    z = normalize(z, dim=1)
    similar = (z @ z.T / temperature).fill_diagonal_(-math.inf)
    n = len(z) // 2
    return cross_entropy(similar, torch.arange(2 * n, device=z.device).roll(n))


def train(
    backbone: nn.Module,
    width: int,
    images: Any,
    settings: SimCLR,
    *,
    directory: Path | None = None,
    about: dict[str, Any] | None = None,
    device: str = "cpu",
    every: float = SECONDS,
) -> Iterator[Step]:
    """Trains the backbone in place, and yields after each step. It continues from a checkpoint, if there is one.

    backbone   a module from images to features [batch, width]
    width      the number of features
    images     `images[positions]` are [batch, 1 or 3, height, width] in [0, 1]
    settings   of the training
    directory  for the checkpoint, written every few seconds and after the last step; None: no checkpoint
    about      what else decides the weights; a checkpoint with another `about` is refused
    device     where it is trained
    every      seconds between checkpoints
    """
    steps = _steps(images, settings)
    run = Run.of(placed(backbone, device), width, settings, about or {})
    with contextlib.nullcontext() if directory is None else journal.locked(directory):
        checkpoint = None if directory is None else directory / "checkpoint.safetensors"
        if checkpoint is not None and checkpoint.exists():
            run.restore(checkpoint)
        yield Step(len(run.losses), steps, run.losses)
        due = monotonic() + every
        while len(run.losses) < steps:
            run.step(images[positions(len(images), len(run.losses), settings)])
            start = monotonic()
            if checkpoint is not None and (start >= due or len(run.losses) == steps):
                run.save(checkpoint)
                due = monotonic() + max(every, (monotonic() - start) / SHARE if every else 0.0)
            yield Step(len(run.losses), steps, run.losses)
    backbone.eval()


def _steps(images: Any, settings: SimCLR) -> int:
    shape = tuple(images[:1].shape)
    if len(shape) != 4 or shape[1] not in (1, 3) or len(images) < 2:
        raise ValueError(
            "SimCLR takes two images or more, [images, 1 or 3 channels, height, width], but they are "
            f"{(len(images), *shape[1:])}"
        )
    whole = settings.epochs * math.ceil(len(images) / settings.batch_size)
    return whole if settings.steps is None else min(settings.steps, whole)


def positions(n: int, step: int, settings: SimCLR) -> Tensor:
    """The images of a step: every epoch has each image once, in its own order, in batches of nearly equal size."""
    epoch, at = divmod(step, math.ceil(n / settings.batch_size))
    generator = Generator().manual_seed(seed_of(settings.seed, "order", epoch))
    return torch.randperm(n, generator=generator).tensor_split(math.ceil(n / settings.batch_size))[at]


@dataclass
class Run:
    """The state of a training: everything that a checkpoint keeps."""

    model: nn.Sequential  # backbone, head
    optimizer: torch.optim.Adam
    settings: SimCLR
    about: dict[str, Any]
    losses: list[float]

    @classmethod
    def of(cls, backbone: nn.Module, width: int, settings: SimCLR, about: dict[str, Any]) -> "Run":
        """The head's first weights are those of the seed."""
        with reproducible(Generator().manual_seed(seed_of(settings.seed, "initial weights", 1))):
            head = nn.Sequential(
                nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, settings.projection, bias=False)
            )
        model = nn.Sequential(backbone, head.to(next(backbone.parameters()).device))
        return cls(model, adam(model, Training(learning_rate=settings.learning_rate)), settings, about, [])

    def step(self, images: Tensor) -> None:
        generator = Generator().manual_seed(seed_of(self.settings.seed, "training", len(self.losses)))
        images = fitting(self.model, images)
        view = Views(size=self.settings.image_size)
        views = torch.cat([view(images, generator), view(images, generator)])
        self.model.train()
        with reproducible(generator, str(views.device)):
            loss = nt_xent(self.model(channels_last(views)), self.settings.temperature)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(float(loss.detach()))
        if not math.isfinite(self.losses[-1]):
            raise ValueError(
                f"the loss must be finite, but is {self.losses[-1]} at step {len(self.losses)}; lower the learning "
                "rate, or raise the temperature"
            )

    def save(self, path: Path) -> None:
        """Weights, the state of Adam and the losses: all of it or nothing."""
        from safetensors.torch import save

        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{name}": value for name, value in state.items()}
        tensors["losses"] = torch.tensor(self.losses, dtype=torch.float64)
        content = save({name: value.contiguous() for name, value in tensors.items()}, {"settings": self._words()})
        journal.write(path, content)

    def restore(self, path: Path) -> None:
        """Back to where a checkpoint was written, by a training with the same settings."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), framework="pt") as file:
                before = json.loads(file.metadata()["settings"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        except (SafetensorError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a checkpoint of SimCLR: {error}; remove it to start again") from error
        agree(path, before, json.loads(self._words()))
        self.model.load_state_dict({name[6:]: value for name, value in tensors.items() if name.startswith("model.")})
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("adam."):
                _, index, key = name.split(".")
                state.setdefault(int(index), {})[key] = value
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.losses = tensors["losses"].tolist()

    def _words(self) -> str:
        return json.dumps({**self.about, **asdict(self.settings)})
