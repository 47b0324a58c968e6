"""Which items to ask next: the strategy's picks, and every fifth time a random check."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from balent.project import audit, questions, rounds
from balent.project.model import Model, Pool, near_labelled, whys
from balent.project.questions import FIRST, Item, Proposal
from balent.project.state import Event

if TYPE_CHECKING:
    from balent.project.project import Project

TRIES = 5  # while other processes ask the same items
SMALL = 10_000  # items


def ask(project: "Project", k: int) -> list[Item]:
    """k items, written to the journal."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be a whole number of 1 or more, but is {k!r}")
    for _ in range(TRIES):
        project.look()
        view = View(project)
        proposals = view.proposals(k)
        if not proposals:
            raise ValueError(
                "no item is left to ask: every item is labelled, pending or skipped"
                + (f"; {len(bad)} cannot be read" if (bad := project.unreadable()) else "")
            )
        if project.happen(lambda: asked(project, proposals, view.rule())):  # noqa: B023 - called at once
            if len(proposals) < k:
                project.say(f"{k} items were requested, but only {len(proposals)} are left: these are asked")
            if view.model is not None and view.model.trained:
                rounds.note(project, view)
                view.keep()
            return [project.question(proposal.number) for proposal in proposals]
    raise BlockingIOError("other processes ask the same items all the time; try again")


def asked(project: "Project", proposals: list[Proposal], rule: dict[str, str] | None = None) -> Event | None:
    """The event; None if another process was faster with one of the items. `rule` is what chose them."""
    closed = {*project.state.last, *project.state.pending, *project.state.skipped}
    if any(proposal.number in closed for proposal in proposals):
        return None
    ids = [project.items[proposal.number].id for proposal in proposals]
    return project.event("ask", ids, None, **questions.columns(proposals), **(rule or {}))


class View:
    """A project at one moment: rows of the pool by item, the model, the reserve.

    shown       items that people look at right now: as good as asked
    """

    def __init__(self, project: "Project", shown: Iterable[int] = ()) -> None:
        self.project = project
        self.shown = {n for n in shown if n not in project.state.asked}
        settings, items, state = project.settings, project.items, project.state
        present, features = items.present(), project.features
        self.owner = {n: n for n in present} | (items.duplicates() if settings.duplicates == "once" else {})
        self.single = [n for n in present if self.owner[n] == n]
        self.ready = not features.missing([items[n].fingerprint for n in self.single])
        self.usable = [n for n in self.single if items[n].fingerprint not in features.bad]
        self.reserve = audit.reserve(settings.seed, {n: items[n].fingerprint for n in self.usable})
        self._of = {} if settings.duplicates == "keep" else {items[n].fingerprint: n for n in reversed(self.single)}
        self.labels, self.since = self._labels()
        self.split = {self._owner(n) for n in state.disagreements()}  # they wait for a decision, not for an answer
        closed = {*self.labels, *self.split, *state.pending, *state.skipped, *self.shown}
        self.waiting = [n for n in self.reserve if n not in closed]
        self.asked = state.questions + len(self.shown)
        self.classes = [*state.classes.names()]
        self.model = Model(settings, self._pool(), project.path, views=features.directory) if self.ready else None

    def _labels(self) -> tuple[dict[int, int], dict[int, str]]:
        """Class numbers by item, and since when; of equal items the label of any of them, the last one given."""
        state = self.project.state
        given = state.labels()
        ordered = sorted(given, key=lambda n: state.last[n].when)
        labels = {self._owner(n): given[n] for n in ordered}
        return labels, {self._owner(n): state.last[n].when for n in ordered}

    def _owner(self, number: int) -> int:
        """Of equal items, the one that stands for all; a removed item whose content is gone stands for itself."""
        return self._of.get(self.project.items[number].fingerprint, number)

    def checks(self) -> list[int]:
        """Random checks that people have answered, in the order of the answers; imported labels are not answers."""
        state = self.project.state
        answered = [n for n in state.labels() if state.is_audit(n) and not state.last[n].imported]
        answered.sort(key=lambda n: state.last[n].when)
        return [n for n in dict.fromkeys(map(self._owner, answered)) if n in self.row]

    def _pool(self) -> Pool:
        """Present items, and removed ones whose labels are still worth training on."""
        items, state, features = self.project.items, self.project.state, self.project.features
        removed = [n for n in self.labels if items[n].gone and not features.missing([items[n].fingerprint])]
        self.numbers = [*self.usable, *sorted(n for n in removed if items[n].fingerprint not in features.bad)]
        self.row = {n: i for i, n in enumerate(self.numbers)}
        order = {number: i for i, number in enumerate(state.classes.names().values())}
        keep = self.project.settings.duplicates == "keep"
        prints = [items[n].fingerprint for n in self.numbers]
        return Pool(
            [f"{print}-{n}" for n, print in zip(self.numbers, prints, strict=True)] if keep else prints,
            features.rows(prints),
            {self.row[n]: order[label] for n, label in sorted(self.labels.items()) if n in self.row},
            [self.row[n] for n in sorted({*state.skipped, *(self.split - self.labels.keys())}) if n in self.row],
            [self.row[n] for n in sorted({*state.pending, *self.shown}) if n in self.row and n not in self.labels],
            [self.row[n] for n in self.reserve],
            len(order),
        )

    def rule(self) -> dict[str, str]:
        """The strategy as a person named it, and what `auto` stands for."""
        if self.model is None:
            return {}
        return {"strategy": self.project.settings.strategy, "resolved": self.model.learner.resolved}

    def keep(self) -> None:
        """Writes what the next process can use; of large pools only predictions look at everything."""
        if self.model is not None and len(self.numbers) <= SMALL:
            self.model.keep_views()

    def proposals(self, k: int) -> list[Proposal]:
        """What to ask next; nothing is written. Before features are there, random checks only."""
        every = self.project.settings.audit
        checks = questions.checks(self.waiting, every)
        if self.model is None:
            return checks[:k]
        wanted = k - min(questions.checks_among(self.asked, every, k), len(checks))
        chosen = self._chosen(min(wanted, self.model.open()))
        return questions.mixed(chosen, checks, self.asked, every, k)

    def take(self, proposals: list[Proposal]) -> None:
        """These are as good as asked: the next proposals are others. Nothing is written."""
        taken = {proposal.number for proposal in proposals}
        self.waiting = [n for n in self.waiting if n not in taken]
        self.asked += len(proposals)
        if self.model is not None:
            self.model.take([self.row[n] for n in taken])

    def taken_for(self, name: str, most: int, shown: set[int]) -> list[Proposal]:
        """Items that the model takes for a class, the surest first, among `most` random items."""
        state = self.project.state
        closed = {*shown, *state.last, *state.skipped, *state.pending}
        found = [(p, n) for n, c, p in self._guesses(most) if self.classes[c] == name and n not in closed]
        why = f"the model takes it for {name}"
        return [Proposal(n, None, False, name, p, why) for p, n in sorted(found, key=lambda pair: (-pair[0], pair[1]))]

    @cache  # noqa: B019 - a view lives as long as its model
    def _guesses(self, most: int) -> list[tuple[int, int, float]]:
        """Number, class and probability of items that nobody has labelled and that are not in the reserve."""
        if self.model is None or not self.model.trained:
            return []
        open = {*self.usable} - {*self.reserve, *self.labels}
        some = sorted(open, key=lambda n: self.project.items[n].fingerprint)[:most]
        p = self.model.probabilities(self.model.pool.rows[[self.row[n] for n in some]])
        return list(zip(some, p.argmax(1).tolist(), p.max(1).tolist(), strict=True))

    def _chosen(self, k: int) -> list[Proposal]:
        """The strategy's picks, with the model's guess."""
        if self.model is None or k < 1:
            return []
        picks = self.model.propose(k)
        rows = picks.indices.tolist()
        scored = list(zip((self.numbers[row] for row in rows), map(finite, picks.scores.tolist()), strict=True))
        if not self.model.trained:
            return [Proposal(number, score, why=FIRST) for number, score in scored]
        pool = self.model.pool
        p = self.model.probabilities(pool.rows[rows])
        near = near_labelled(pool.rows[rows], pool.rows[[*pool.labels]])
        return [
            Proposal(number, score, False, self.classes[int(row.argmax())], float(row.max()), why)
            for (number, score), row, why in zip(scored, p, whys(p, near, self.classes), strict=True)
        ]


def finite(score: float) -> float | None:
    """JSON has no infinity."""
    return score if abs(score) < float("inf") else None
