"""The dropout calls of a network: who makes them, where they have the points, and which masks they take.

A call belongs to a site: the module that makes it, and how many calls that module has made before in the
same pass. The mask follows from the site, so it does not depend on the calls that other points of a batch
cause. Sites are numbered in the order in which a batch of zeros reaches them; the number of a site that only
other data reach is a hash of its name. So the numbers do not depend on which data come first.
"""

import copy
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from balent.predictors.dropout.control import CHANNELS, ELEMENTS, controlled, mask_sizes, masked
from balent.predictors.dropout.masks import Masks
from balent.predictors.inputs import copied
from balent.types import Indices

RANDOM = ("rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "normal",
          "multinomial", "poisson", "uniform", "exponential", "random", "geometric", "cauchy",
          "gumbel_softmax")  # fmt: skip
UNSEEN = (*ELEMENTS, *CHANNELS, "feature_dropout", "native_dropout")  # when called past torch.nn.functional

Site = tuple[str, int]  # the name of the module that calls, and how many calls it has made before


class Unplanned(Exception):
    """A dropout call that the plan does not know: other data reach it, or its rows are not those of all points."""


class Unreached(Unplanned):
    """A part of the network runs that no planned data have reached; its dropout may still be switched off."""

    def __init__(self, part: str) -> None:
        super().__init__(f"only some data reach {part}")
        self.part = part


@dataclass(frozen=True)
class Call:
    """One call of a dropout function: what kind, how likely, switched on or not, by which module, on what shape."""

    kind: str
    p: float
    on: bool
    owner: str
    shape: tuple[int, ...]


class Survey(NamedTuple):
    """What a forward pass did: its dropout calls, other random functions, and the modules that ran."""

    calls: list[Call]
    random: list[str]
    ran: set[str]


@torch.no_grad()
def survey(
    module: nn.Module, call: Callable[[nn.Module, Any], Any], batch: Any, training: bool | None = None
) -> Survey:
    """The forward pass of a batch in this mode (None: as the module is), without dropping anything."""
    probe = module if training is None else _in_mode(module, training)
    found, random = list[Call](), list[str]()

    with running(probe) as stack:

        def record(kind: str, x: Tensor, p: float, on: bool) -> Tensor:
            found.append(Call(kind, p, on and p > 0, stack[-1], tuple(x.shape)))
            return x

        with torch.random.fork_rng(devices=[]), controlled(record), _Randomness(random):
            call(probe, copied(batch))
    return Survey(found, random, stack.seen)


def _in_mode(module: nn.Module, training: bool) -> nn.Module:
    """A copy in this mode; batch norm is in evaluation mode in both."""
    probe = copy.deepcopy(module).train(training)
    for part in probe.modules():
        if isinstance(part, nn.modules.batchnorm._NormBase):
            part.eval()
    return probe


class Running(list[str]):
    """The names of the modules whose forward is running, the innermost last; and of all that ran."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = set[str]()

    def enter(self, name: str) -> None:
        self.append(name)
        self.seen.add(name)

    def leave(self, name: str) -> None:
        """Modules within it that ended by an error, which it caught, are left as well."""
        while self.pop() != name:
            pass


@contextmanager
def running(module: nn.Module) -> Iterator[Running]:
    """Within, the list follows the forward passes of the module."""
    stack = Running()
    with ExitStack() as hooks:
        for name, part in module.named_modules():
            hooks.enter_context(part.register_forward_pre_hook(lambda *_, name=name: stack.enter(name)))
            hooks.enter_context(part.register_forward_hook(lambda *_, name=name: stack.leave(name)))
        yield stack


@contextmanager
def guarded(module: nn.Module, unreached: set[str]) -> Iterator[None]:
    """Within, a part of this name that runs raises `Unreached`."""

    def refuse(name: str) -> None:
        raise Unreached(name)

    with ExitStack() as hooks:
        for name in unreached:
            part = module.get_submodule(name)
            hooks.enter_context(part.register_forward_pre_hook(lambda *_, name=name: refuse(name)))
        yield


class _Randomness(torch.overrides.TorchFunctionMode):
    """Notes calls of random functions that are no dropout."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name.rstrip("_") in (*RANDOM, *UNSEEN):
            self.found.append(f"torch.{name}")
        return func(*args, **(kwargs or {}))


# ── the plan of the calls ────────────────────────────────────────────────────────────────────────


class Place(NamedTuple):
    """Where a call has the points: on which axis, and how many rows of it for each."""

    axis: int
    rows: int


@dataclass
class Calls:
    """What is known of the dropout calls of a network, for inputs of one shape.

    `order`: the sites of the first points, one after the other. `off`: kind and p of calls that never drop. `turns`:
    how many calls a module makes, if it makes any. `alone`: each point comes alone, so that all rows are its own.
    """

    numbers: dict[Site, int] = field(default_factory=dict)
    places: dict[Site, Place] = field(default_factory=dict)
    order: list[Site] = field(default_factory=list)
    off: set[tuple[str, float]] = field(default_factory=set)
    turns: dict[str, int] = field(default_factory=dict)
    alone: bool = False

    def number(self, site: Site) -> int:
        """Of the masks of this site: its layer."""
        named = (1 << 32) + zlib.crc32(f"{site[0]}#{site[1]}".encode())
        return self.numbers.get(site, named)

    @property
    def in_order(self) -> bool:
        """Do all calls have the points first, and the masks of layers 0, 1, …?"""
        places = [(self.numbers.get(site), self.places[site].axis) for site in self.order]
        return places == [(i, 0) for i in range(len(places))]

    def owners(self) -> Callable[[], str]:
        """The modules that call, in the order of the first points: a graph does not know them."""
        owners = iter([owner for owner, _ in self.order])
        return lambda: next(owners, "a graph")

    def axis(self, site: Site, shape: tuple[int, ...], points: int) -> int:
        """Where the points are."""
        if self.alone:
            return 0
        if site not in self.places:
            raise Unplanned(f"only some data reach the dropout in {_named(site[0])}")
        axis, rows = self.places[site]
        if len(shape) <= axis or shape[axis] != rows * points:
            raise Unplanned(f"the dropout in {_named(site[0])} does not work on all points alike")
        return axis

    def passed(self, kind: str, x: Tensor, p: float, on: bool) -> Tensor:
        """A handler for calls that drop nothing: all of them must be known."""
        if p > 0 and (on or (kind, p) not in self.off):
            raise Unplanned(f"only some data reach a dropout of p = {p:g}")
        return x

    def count(self, made: Counter[str]) -> None:
        """A module makes the same number of calls whenever it makes any: else a site could be any of them."""
        for owner, calls in made.items():
            if self.turns.setdefault(owner, calls) != calls:
                raise ValueError(
                    f"{_named(owner)} makes {calls} dropout calls for some data and {self.turns[owner]} for others, "
                    "so their masks cannot be told apart; give each call an nn.Dropout of its own"
                )

    def learn(self, once: list[Call], twice: list[Call], points: int) -> bool:
        """Add the calls of a batch, and of the same batch taken twice; was there anything new?"""
        known = len(self.places), len(self.off)
        self.off |= {(call.kind, call.p) for call in once if not call.on and call.p > 0}
        if not self.alone:
            self._locate(once, twice, points)
        return known != (len(self.places), len(self.off))

    def _locate(self, once: list[Call], twice: list[Call], points: int) -> None:
        """Where the calls have the points."""
        self.order = self.order or [site for site, _ in sited(once)]
        pairs = list(zip(sited(once), sited(twice), strict=False))
        if len(once) != len(twice) or any(a != b for (a, _), (b, _) in pairs):
            raise Unplanned("the number of dropout calls changes with the batch")
        self.places |= {site: _place(a, b, points) for (site, a), (_, b) in pairs}
        self.count(Counter(call.owner for call in once if call.on))


def sited(calls: list[Call]) -> list[tuple[Site, Call]]:
    """The calls that are on, with their sites."""
    made = Counter[str]()
    found = []
    for call in calls:
        if call.on:
            found.append(((call.owner, made[call.owner]), call))
            made[call.owner] += 1
    return found


def _place(one: Call, two: Call, points: int) -> Place:
    """The axis that grows with the batch is that of the points."""
    for axis, (before, after) in enumerate(zip(one.shape, two.shape, strict=True)):
        if after == 2 * before:
            if before % points:
                raise Unplanned(f"the dropout in {_named(one.owner)} does not work on all points alike")
            return Place(axis, before // points)
    raise ValueError(
        f"dropout in {_named(one.owner)} works on shape {one.shape}, in which no axis holds the points; "
        "masks cannot be kept fixed there"
    )


def _named(owner: str) -> str:
    return owner or "the model"


@dataclass
class Masked:
    """A handler: the masks of one draw for the points of a batch. `owner` is the module that makes the next call."""

    masks: Masks
    calls: Calls
    owner: Callable[[], str]
    points: int
    positions: Indices | None = None
    made: Counter[str] = field(default_factory=Counter)

    def __call__(self, kind: str, x: Tensor, p: float, on: bool) -> Tensor:
        if not on or p == 0:
            return self.calls.passed(kind, x, p, on)
        owner = self.owner()
        if p >= 1:
            raise ValueError(f"dropout in {_named(owner)} has p = 1 and drops everything; give it a p below 1")
        site = owner, self.made[owner]
        self.made[owner] += 1
        axis = self.calls.axis(site, x.shape, self.points)
        return self._dropped(kind, x, p, axis, self.calls.number(site)) if x.numel() else x

    def _dropped(self, kind: str, x: Tensor, p: float, axis: int, layer: int) -> Tensor:
        """One axis becomes two: the points, and the rows of each."""
        apart = x.unflatten(axis, (self.points, x.shape[axis] // self.points))
        sizes = mask_sizes(kind, x.shape)
        rows = apart.shape[axis + 1] if sizes[axis] == x.shape[axis] else 1  # or one for all points
        own = (*sizes[:axis], rows, *sizes[axis + 1 :])  # the mask of a point
        kept = self.masks.kept(layer, math.prod(own), p, self.positions)[0].to(x.device, x.dtype)
        return masked(kind, apart, p, kept.view(-1, *own).movedim(0, axis)).flatten(axis, axis + 1)
