"""Overlap: random checks that several people answer, each without seeing what the others said. No torch here."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from balent.project.project import Project


def wants(project: "Project", number: int, who: str | None, looking: Iterable[str | None] = ()) -> bool:
    """Should this person answer a random check that others have answered?

    looking     people who are about to answer it
    """
    state = project.state
    people = {*state.answers.get(number, ()), *state.passed.get(number, ()), *looking}
    more = len(people) < project.settings.overlap and number not in state.skipped and number not in state.decided
    return more and who is not None and who not in people and state.is_audit(number)


def wanted(project: "Project", who: str | None) -> list[int]:
    """Random checks that this person should answer too, the oldest answer first."""
    if project.settings.overlap == 1 or who is None:
        return []
    return [number for number in project.state.answers if wants(project, number, who)]
