"""A network with dropout as many fixed networks: which part of it must run once for each draw?

`Network` copies a module, finds its dropout, and runs it under given masks in the fastest way (`ways`) that
gives the same numbers as the plain one: a trial on the first points makes sure of it. Later data may reach
parts of the network that the first points do not reach. These parts are guarded: when one runs, or a
dropout call comes that the plan does not know, the plan is changed and the batch runs again.
"""

import copy
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any

import torch
from torch import Tensor, nn

from balent.batches import size, take
from balent.predictors.dropout.calls import UNSEEN, Calls, Survey, Unplanned, Unreached, guarded, sited, survey
from balent.predictors.dropout.chain import Stage
from balent.predictors.dropout.control import controlled
from balent.predictors.dropout.masks import Masks
from balent.predictors.dropout.ways import Fast, Plain, Replay, Split, Way, drops
from balent.predictors.inputs import Batch, arrange, arranged, copied, example, logits_of
from balent.predictors.last_layer import frozen
from balent.types import Indices

TRIAL = Masks(0, 2)
EACH = Masks(0, 1, per_point=True)  # of a trial in which every point has a mask of its own
UNPLANNED = "not planned yet: the first batch decides"
SOME = 8  # points that are tried one by one
DROPOUT = (nn.modules.dropout._DropoutNd, nn.MultiheadAttention)  # do nothing else in training mode
Shapes = tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]  # of one point, for each input


@dataclass
class Plan:
    """How draws are computed for inputs of one shape: it holds for other weights as well."""

    way: type[Way]
    leaves: bool
    words: str
    laid_out: Callable[[Any], Any]
    images: bool  # inputs whose layout matters
    calls: Calls


@dataclass
class Known:
    """What was found out about a network of this structure.

    `on`: the parts in training mode, whose dropout calls follow it. `unreached`: the parts that no data have reached.
    `alone`: why points must come one at a time, where they must.
    """

    structure: tuple[Any, ...]
    unreached: set[str]
    on: set[str] = field(default_factory=set)
    alone: str = ""
    plans: dict[Shapes, Plan] = field(default_factory=dict)


class Network:
    """A private copy of a module whose every dropout follows `Masks`; all else is in evaluation mode.

    `known` is what another network found out: it is used where the structure is the same, and not changed.
    """

    def __init__(self, module: nn.Module, *, fast: bool = True, known: Known | None = None) -> None:
        self.module = frozen(module)
        self.like = example(self.module)
        structure = (fast, *_structure(self.module))
        same = known is not None and known.structure == structure
        names = {name for name, _ in self.module.named_modules()}
        self.fast, self.known = fast, copy.deepcopy(known) if known and same else Known(structure, names)
        self._turn_on(self.known.on)
        self._forwards: dict[Shapes, Way] = {}
        self.plan = UNPLANNED  # in words: what runs once for each draw, and why

    def to(self, device: str) -> "Network":
        """The same network on another device."""
        moved = copy.copy(self)
        moved.module, moved.known = copy.deepcopy(self.module).to(device), copy.deepcopy(self.known)
        moved.like, moved._forwards, moved.plan = example(moved.module), {}, UNPLANNED
        return moved

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_forwards": {}, "plan": UNPLANNED}  # graphs are made anew, wherever it is loaded

    def __call__(self, batch: Batch, masks: Masks, positions: Indices | None = None) -> Tensor:
        """Logits [draws, batch, …, classes] of a batch that is `fitted` to the network."""
        logits: Tensor = self._run(batch, lambda forward, x: forward(x, masks, positions))
        if logits.ndim < 3 or logits.shape[1] != (len(batch) if isinstance(batch, Tensor) else size(batch)):
            raise _wrong_output(logits, size(batch))
        return logits

    def last_layer(self, batch: Batch) -> tuple[Tensor, Stage] | None:
        """What the only dropout sees of a batch, and its stage: None where dropout is not in the last layer alone."""

        def seen(forward: Way, x: Batch) -> tuple[Tensor, Stage] | None:
            if isinstance(forward, Fast) and forward.chain.last_alone:
                return forward.hidden(x), forward.chain.stages[0]
            return None

        found: tuple[Tensor, Stage] | None = self._run(batch, seen)
        return found

    # ── the plan changes with what the data reach ────────────────────────────────────────────────

    def _run(self, batch: Batch, use: Callable[[Way, Any], Any]) -> Any:
        """use(forward, batch) under a plan that knows all that the batch reaches."""
        while True:
            try:
                forward, plan = self._ready(batch)
                with guarded(self.module, self.known.unreached) if self.known.unreached else nullcontext():
                    return use(forward, plan.laid_out(batch) if plan.images else batch)
            except Unplanned as why:
                self._reconsider(batch, why)

    def _ready(self, batch: Batch) -> tuple[Way, Plan]:
        """The plan for batches of this shape: the first of them decides."""
        shapes = _shapes(batch)
        if shapes not in self.known.plans:
            self.known.plans[shapes], self._forwards[shapes] = self._planned(batch)
        plan = self.known.plans[shapes]
        self.plan = plan.words
        if shapes not in self._forwards:
            arrange(self.module, plan.laid_out)
            few = plan.laid_out(take(batch, slice(0, 2)))
            self._forwards[shapes] = plan.way.of(self.module, plan.calls, few, plan.leaves)
        return self._forwards[shapes], plan

    def _reconsider(self, batch: Batch, why: Unplanned) -> None:
        """Change the plan after a batch that does what the plan does not know.

        Switch on what it reaches, learn its calls, or take points one at a time: at each step less is unknown.
        """
        part = {why.part} if isinstance(why, Unreached) else set[str]()
        if self._switch_on([batch], part) or part:
            return
        self._check_neighbours(batch)
        if self._learned(batch, str(why)):
            return
        if self.known.alone:
            raise ValueError(f"{why}, and only under some masks; such dropout cannot be kept fixed") from why
        self.known.alone = str(why)
        self._forget()

    def _learned(self, batch: Batch, why: str) -> bool:
        """Does the plan know more calls, now that it has seen this batch?"""
        plan = self.known.plans.get(_shapes(batch))
        try:
            new = plan is not None and self._learn(plan.calls, batch)
        except Unplanned:
            return False
        if plan and new:
            plan.words += f"; {why}"
        return new

    def _forget(self) -> None:
        self.known.plans.clear()
        self._forwards.clear()

    def _switch_on(self, batches: list[Batch], reached: set[str]) -> bool:
        """Set the parts to training mode that make dropout calls following it; are there any new ones?"""
        training = [survey(self.module, logits_of, batch, True) for batch in batches]
        evaluation = survey(self.module, logits_of, take(batches[0], slice(0, 2)), False)
        _check_randomness(self.module, training, evaluation)
        on = {call.owner for seen in training for call in seen.calls if call.on}
        on |= {name for name in reached if isinstance(self.module.get_submodule(name), DROPOUT)}
        new = on - self.known.on
        self.known.on |= on
        self.known.unreached -= reached.union(*(seen.ran for seen in training))
        self._turn_on(new)
        if new:
            self._forget()
        return bool(new)

    def _turn_on(self, names: set[str]) -> None:
        for name in names:
            self.module.get_submodule(name).training = True

    # ── the first plan ───────────────────────────────────────────────────────────────────────────

    def _planned(self, batch: Batch) -> tuple[Plan, Way]:
        """The fastest way that gives on two points what the plain way gives."""
        few, some, zeros = take(batch, slice(0, 2)), take(batch, slice(0, SOME)), self._zeros(batch)
        self._switch_on([some, zeros], set())
        if not self.known.on and not self._switch_on([batch], set()):
            raise ValueError(_no_dropout(self.module, some))
        calls = self._calls(some, zeros)
        plain = Plain(self.module, calls)
        laid_out = arranged(self.module, lambda x: plain(x, TRIAL, None), few)
        few, some = laid_out(few), laid_out(some)
        expected = plain(few, TRIAL, None)
        if expected.ndim < 3 or expected.shape[1] != size(few):
            raise _wrong_output(expected, size(few))
        if _differ(plain(few, TRIAL, None), expected):
            raise ValueError("the model is random for another reason than dropout: equal masks give unequal outputs")
        self._check_alone(plain, some)
        way, leaves, reason = self._fastest(calls, few, expected)
        words, images = way.words.format(reason=reason), isinstance(batch, Tensor) and batch.ndim == 4
        return Plan(type(way), leaves, words, laid_out, images, calls), way

    def _zeros(self, batch: Batch) -> Batch:
        """A point of zeros: what it reaches does not depend on the data. The first point instead, if zeros fail."""
        one = take(batch, slice(0, 1))
        zeros = {k: torch.zeros_like(v) for k, v in one.items()} if isinstance(one, Mapping) else torch.zeros_like(one)
        try:
            survey(self.module, logits_of, zeros)
        except Exception:  # whatever a network makes of zeros, such as a text without words
            return one
        return zeros

    def _calls(self, some: Batch, zeros: Batch) -> Calls:
        """The dropout calls of the first points."""
        reached = sited(survey(self.module, logits_of, zeros).calls)
        calls = Calls({site: i for i, (site, _) in enumerate(reached)}, alone=bool(self.known.alone))
        self._learn(calls, some)
        return calls

    def _learn(self, calls: Calls, batch: Batch) -> bool:
        """Add the calls of this batch; are there any new ones?"""
        twice = take(batch, torch.arange(size(batch)).repeat(2))
        once, two = (survey(self.module, logits_of, x) for x in (batch, twice))
        _check_other_randomness(once.random)
        return calls.learn(once.calls, two.calls, size(batch))

    def _check_alone(self, plain: Plain, some: Batch) -> None:
        """Each point must have the same output alone as in the batch."""
        alone = Plain(self.module, replace(plain.calls, alone=True))
        if plain.calls.alone:
            self._check_neighbours(some)
        elif _differ(*(way(some, EACH, torch.arange(size(some))) for way in (plain, alone))):
            raise Unplanned("in a batch, rows of one point would take the masks of another")

    def _check_neighbours(self, batch: Batch) -> None:
        """The same with nothing dropped: masks cannot be the reason for a difference then."""
        alone = [self._undropped(take(batch, slice(i, i + 1))) for i in range(size(batch))]
        if _differ(self._undropped(batch), torch.cat(alone)):
            raise ValueError(
                "the model's output for a point depends on the other points of its batch, so it is not a function of "
                "the point; look for batch statistics, or for branches that depend on all points of a batch"
            )

    def _undropped(self, batch: Batch) -> Tensor:
        with controlled(lambda kind, x, p, on: x):
            logits: Tensor = logits_of(self.module, copied(batch))
        return logits

    def _fastest(self, calls: Calls, few: Batch, expected: Tensor) -> tuple[Way, bool, str]:
        """The first of the ways that gives what is expected, and why those before did not."""
        if self.known.alone:
            return Plain(self.module, calls), True, self.known.alone
        if not self.fast:
            return Plain(self.module, calls), True, "as asked"
        reason = ""
        for way, leaves in ((Fast, True), (Fast, False), (Split, True), (Split, False), (Replay, True)):
            try:
                forward = way.of(self.module, calls, few, leaves)
                with redirect_stderr(StringIO()):  # torch.fx prints what it raises
                    found = forward(few, TRIAL, None)
            except Exception as error:  # whatever a tracer meets in someone's forward: the next way needs less
                reason = _first_line(error)
                continue
            if not _differ(found, expected):
                return forward, leaves, reason
            reason = "its graph gives other numbers than the network"
        return Plain(self.module, calls), True, reason


def _shapes(batch: Batch) -> Shapes:
    named = batch if isinstance(batch, Mapping) else {"": batch}
    return tuple((name, x.dtype, tuple(x.shape[1:])) for name, x in named.items())


def _structure(module: nn.Module) -> tuple[Any, ...]:
    """All of a module but the numbers in its tensors: its parts with their settings and hooks, and shapes."""
    parts = [(name, f"{type(part).__module__}.{type(part).__qualname__}", _settings(part))
             for name, part in module.named_modules()]  # fmt: skip
    tensors = [(name, tuple(x.shape), x.dtype, str(x.device))
               for name, x in [*module.named_parameters(), *module.named_buffers()]]  # fmt: skip
    return (*parts, *tensors)


def _settings(part: nn.Module) -> str:
    return repr({k: v for k, v in vars(part).items() if k not in ("_parameters", "_buffers", "_modules")})


def _no_dropout(module: nn.Module, batch: Batch) -> str:
    surveys = [survey(module, logits_of, batch, training) for training in (True, False)]
    off = sorted({call.owner or "forward" for seen in surveys for call in seen.calls if not call.on})
    if off:
        return f"the model's dropout never drops: p = 0 or training=False is written into {', '.join(off)}"
    unreached = [name for name, part in module.named_modules() if isinstance(part, DROPOUT) and drops(part)]
    if unreached:
        return (
            f"no point of the first batch reaches the model's dropout (in {', '.join(unreached)}), so all draws would "
            "be equal; call it in forward, or put points first that reach it"
        )
    return (
        "the model has no dropout, so all draws would be equal; add nn.Dropout, or use an Ensemble or LastLayerLaplace"
    )


def _check_randomness(module: nn.Module, training: list[Survey], evaluation: Survey) -> None:
    """What draws random numbers past us: while it evaluates, or as dropout that we do not see."""
    random = {name for seen in training for name in seen.random}
    unseen = {name for name in random if name.removeprefix("torch.").rstrip("_") in UNSEEN}
    if unseen:
        raise ValueError(
            f"the model calls {', '.join(sorted(unseen))} past torch.nn.functional, where it cannot be controlled; "
            "write F.dropout(…) with import torch.nn.functional as F, or use nn.Dropout"
        )
    for name, part in module.named_modules():
        if isinstance(part, nn.RNNBase) and part.dropout and part.num_layers > 1:
            raise ValueError(
                f"dropout between the layers of {name or 'the model'} ({type(part).__name__}) cannot be controlled; "
                "set its dropout to 0, or put nn.Dropout between layers of their own"
            )
    _check_other_randomness(evaluation.random)
    if random:
        warnings.warn(
            f"the model calls {', '.join(sorted(random))} in training mode only; draws leave that out, because nothing "
            "but dropout is random in them; if it is a mask made by hand, use nn.Dropout or F.dropout",
            stacklevel=2,
        )


def _check_other_randomness(random: list[str]) -> None:
    if random:
        raise ValueError(
            f"the model is random for another reason than dropout: it calls {', '.join(sorted(set(random)))}"
        )


def _differ(found: Tensor, expected: Tensor) -> bool:
    """By more than rounding: half of the digits, on the scale of all logits."""
    finite = expected[expected.isfinite()].abs()
    tolerance = torch.finfo(expected.dtype).eps ** 0.5 * float(finite.max() if len(finite) else 0)
    return found.shape != expected.shape or not torch.allclose(found, expected, 0, tolerance, equal_nan=True)


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:120]


def _wrong_output(logits: Tensor, points: int) -> ValueError:
    shape = tuple(logits.shape[1:])
    return ValueError(f"the model must give [batch, classes] for {points} points, but gave shape {shape}")
