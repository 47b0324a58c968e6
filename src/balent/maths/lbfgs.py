"""L-BFGS on several problems at once: the smooth, convex ones of a bootstrap, which differ in their weights alone.

Every tensor has the problems first. A problem has its own curvature, step and end; what is shared is the call that
computes all values and gradients (Liu & Nocedal, 1989).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

MEMORY = 10  # steps that the curvature is known from
STEPS = 1000
HALVINGS = 30  # of a step that does not lower the value enough
DECREASE = 1e-4  # of what the slope promises: Armijo's rule

Points = Float[Tensor, "problems n"]
Values = Float[Tensor, " problems"]
Objective = Callable[[Points], tuple[Values, Points]]  # values and gradients


def minimise(objective: Objective, start: Points, tolerance: float, steps: int = STEPS) -> Points:
    """The minima: each gradient is `tolerance` times what it was at the start, or no step lowers the value any more."""
    w, curvature = start, Curvature()
    value, gradient = objective(w)
    small = tolerance * gradient.norm(dim=1)
    active = gradient.norm(dim=1) > small
    for _ in range(steps):
        if not active.any():
            break
        direction = curvature.newton(gradient) * active[:, None]
        step, moved = searched(objective, w, value, gradient, direction)
        curvature.add(step, moved[1] - gradient)
        w, (value, gradient) = w + step, moved
        active = active & (gradient.norm(dim=1) > small) & (step != 0).any(1)
    return w


def searched(
    objective: Objective, w: Points, value: Values, gradient: Points, direction: Points
) -> tuple[Points, tuple[Values, Points]]:
    """Each problem's step along its direction, halved until it lowers the value enough; 0 where it never does."""
    slope, length = (gradient * direction).sum(1), torch.ones_like(value)
    rounding = 4 * torch.finfo(value.dtype).eps * value.abs()
    for _ in range(HALVINGS):
        step = direction * length[:, None]
        moved = objective(w + step)
        short = moved[0] > value + DECREASE * length * slope + rounding
        if not short.any():
            return step, moved
        length = torch.where(short, length / 2, length)
    step = direction * (length * ~short)[:, None]
    return step, objective(w + step)


@dataclass
class Curvature:
    """The last steps, and how the gradients changed along them."""

    steps: list[Points] = field(default_factory=list)
    changes: list[Points] = field(default_factory=list)

    def add(self, step: Points, change: Points) -> None:
        self.steps, self.changes = [*self.steps, step][-MEMORY:], [*self.changes, change][-MEMORY:]

    def newton(self, gradient: Points) -> Points:
        """-H⁻¹ gradient, by the two loops of Nocedal (1980). A step without curvature counts for nothing."""
        along = [(s * y).sum(1, keepdim=True) for s, y in zip(self.steps, self.changes, strict=True)]
        inverse = [torch.where(sy > 0, 1 / sy, 0) for sy in along]
        q, parts = -gradient, []
        for s, y, rho in zip(reversed(self.steps), reversed(self.changes), reversed(inverse), strict=True):
            parts.append(rho * (s * q).sum(1, keepdim=True))
            q = q - parts[-1] * y
        q = q * self._scale(gradient)
        for s, y, rho, part in zip(self.steps, self.changes, inverse, reversed(parts), strict=True):
            q = q + s * (part - rho * (y * q).sum(1, keepdim=True))
        return q

    def _scale(self, gradient: Points) -> Float[Tensor, "problems 1"]:
        """The size of H⁻¹, from the last step; before any, steps have a length of 1 at most."""
        if not self.steps:
            return 1 / gradient.norm(dim=1, keepdim=True).clamp(min=1)
        sy = (self.steps[-1] * self.changes[-1]).sum(1, keepdim=True)
        yy = self.changes[-1].square().sum(1, keepdim=True)
        return torch.where(sy > 0, sy / yy.clamp(min=torch.finfo(yy.dtype).tiny), 1.0)
