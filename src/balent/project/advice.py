"""Advice on when to stop: three rules, each a sentence. Nothing happens by itself. No torch here."""

from typing import TYPE_CHECKING, Any

from balent.project import audit, rounds

if TYPE_CHECKING:
    from balent.project.project import Project

FIRST_LOOK = 50  # random checks; then 100, 200, 400, …: looking after each label would break the bound
AGREE, ROUNDS = 0.99, 3  # κ of consecutive models, over so many rounds


def advice(project: "Project", found: dict[str, Any]) -> list[str]:
    """Sentences for the person who labels."""
    said = [goal(project.settings.goal, found["answers"]), stable(rounds.agreements(project)), gain(found["gain"])]
    return [sentence for sentence in [starting(project, found), *said] if sentence]


def starting(project: "Project", found: dict[str, Any]) -> str | None:
    """What lacks before there is a model."""
    given = project.state.labels()
    if len(project.state.classes) < 2:
        return "a model needs at least two classes: add " + ("another one" if len(project.state.classes) else "them")
    if len(set(given.values())) < 2:
        return "label items of at least two classes: then there is a model"
    if project.settings.audit and found["answered"] < audit.FEWEST:
        return f"accuracy is shown from {audit.FEWEST} random checks on; {found['answered']} are answered"
    return None


def goal(wanted: float, answers: list[int]) -> str | None:
    """Whether the accuracy to reach is reached: the lower end of a 99 % interval at 50, 100, 200, … checks."""
    look = looked_at(len(answers))
    if not wanted or not look:
        return None
    low = audit.wilson(sum(answers[:look]), look, audit.Z99)[0]
    if low >= wanted:
        return f"the goal of {wanted:.0%} is reached: above {low:.1%} with 99 % confidence, at {look} random checks"
    return (
        f"the goal of {wanted:.0%} is not shown yet: above {low:.1%}, at {look} random checks; next look at {2 * look}"
    )


def looked_at(answers: int) -> int:
    """The last number of random checks at which one may look: 50, 100, 200, …

    >>> [looked_at(n) for n in (49, 50, 199, 200)]
    [0, 50, 100, 200]
    """
    look = 0
    while (look * 2 or FIRST_LOOK) <= answers:
        look = look * 2 or FIRST_LOOK
    return look


def stable(agreements: list[float]) -> str | None:
    """Whether new labels still change the model."""
    last = agreements[-ROUNDS:]
    if len(last) < ROUNDS or sum(last) / ROUNDS < AGREE:
        return None
    return f"the last {ROUNDS} models agree on the reserve (mean κ {sum(last) / ROUNDS:.3f}): new labels change little"


def gain(found: dict[str, Any] | None) -> str | None:
    """What the last labels gained."""
    if found is None:
        return None
    low, high = 100 * found["low"], 100 * found["high"]
    return f"the last {found['labels']} labels gained {low:+.0f} to {high:+.0f} points"
