"""The states of several folds as one: names with a number before them."""

from collections.abc import Iterable

from torch import Tensor

State = dict[str, Tensor]


def nested(states: Iterable[State]) -> State:
    """One state of several.

    >>> import torch
    >>> list(nested([{"a": torch.zeros(1)}, {"a": torch.ones(1)}]))
    ['0.a', '1.a']
    """
    return {f"{number}.{name}": x for number, state in enumerate(states) for name, x in state.items()}


def unnested(state: State, count: int) -> list[State]:
    """The states that `nested` joined."""
    found: list[State] = [{} for _ in range(count)]
    for name, x in state.items():
        number, _, own = name.partition(".")
        found[int(number)][own] = x
    return found
