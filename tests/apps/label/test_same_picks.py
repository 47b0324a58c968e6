"""The same labels give the same next questions, whether they came through the page, through files or through Python."""

import csv
import time

from helpers.labelling import clusters
from helpers.labelling_page import label, named, of_rows, shown

from balent import Project
from balent.apps.label.serving import desk_with_worker
from balent.project import exchange, telling
from balent.project.asking import View

ITEMS, LABELS = 300, 60


def made(folder):
    folder.mkdir()
    return of_rows(folder, ITEMS)


def labels(project):
    state = Project(project.path).state
    return {project.items[n].id: state.classes.name(label) for n, label in state.labels().items()}


def picks(project):
    """What would be asked next."""
    again = Project(project.path)
    assert not again.state.pending
    again.compute_features()
    return [(proposal.number, proposal.audit, proposal.guess) for proposal in View(again).proposals(20)]


def through_the_page(project, truth):
    """A person labels what the page shows, while the worker trains; the next items wait in the tab all the time."""
    end = time.monotonic() + 60
    with desk_with_worker(project) as desk:
        for number in range(LABELS):
            while number % 15 == 0 and desk.trainer.is_busy() and time.monotonic() < end:
                time.sleep(0.02)
            item = shown(desk)[0]
            label(desk, item, truth[project.items[item].id])
    assert (project.path / "rounds.ndjson").exists(), "it was trained meanwhile"


def through_files(project, given, file):
    with open(file, "w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("id", "label"), *given.items()])
    told = telling.apply(project, exchange.read_answers(file))
    assert told.labelled == LABELS


def test_60_labels_by_three_roads_give_the_same_next_questions(tmp_path):
    page, files, python = (made(tmp_path / name) for name in ("page", "files", "python"))
    through_the_page(page, clusters(tmp_path, ITEMS))
    given = labels(page)
    assert len(given) == LABELS
    assert sorted(named(page, "ask")) == sorted(given)  # what was only shown left no trace
    through_files(files, given, tmp_path / "answers.csv")
    python.tell(given)
    assert labels(files) == labels(python) == given
    expected = picks(python)
    assert len(expected) == 20
    assert picks(page) == picks(files) == expected
    asked = [(python.id_number(item.id), item.guess) for item in python.ask(20)]
    assert asked == [(number, guess) for number, _, guess in expected]
