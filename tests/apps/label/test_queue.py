"""The queue: proposals in their order, each once, on disk."""

import json
import os

import pytest
from helpers.labelling_page import proposal

from balent.apps.label.queue import Queue
from balent.project.questions import Proposal


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path / "queue.json")


def message(*numbers, marks=None, round=1):
    return {"proposals": [proposal(n, guess="cat") for n in numbers], "round": round, "marks": marks or {}}


def order(queue):
    found = []
    while (head := queue.first(lambda _: True)) is not None:
        queue.drop(head.number)
        found.append(head.number)
    return found


def test_new_proposals_replace_old_ones_and_a_tail_is_added(queue):
    queue.replace(message(1, 2))
    queue.replace(message(3, 4, round=2))
    queue.extend(message(5, 3))
    assert (len(queue), queue.round) == (3, 2)
    assert order(queue) == [3, 4, 5]


def test_what_somebody_has_seen_already_comes_first(queue):
    queue.replace(message(1, 2))
    queue.put([Proposal(2), Proposal(7)])
    assert order(queue) == [2, 7, 1]


def test_items_that_may_not_be_asked_are_passed_over(queue):
    queue.replace(message(1, 2, 3))
    assert queue.first(lambda number: number == 3).number == 3
    assert queue.first(lambda number: number == 3).number == 3
    assert queue.first(lambda number: False) is None


def test_a_server_that_starts_again_goes_on_with_the_file(queue):
    queue.replace(message(1, 2, marks={"1": [[0, 3]]}, round=4))
    queue.extend(message(3, round=4))
    again = Queue(queue.path)
    assert again.round == 4
    assert again.marks == {1: [[0, 3]]}
    assert again.get(2) == Proposal(**proposal(2, guess="cat"))
    assert order(again) == [1, 2, 3]


def test_the_file_does_not_wait_for_the_disk(queue, monkeypatch):
    """Answers wait meanwhile: the queue is changed under the lock of the desk."""
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    queue.replace(message(1, 2))
    assert order(Queue(queue.path)) == [1, 2]
    assert synced == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"round": 1}',
        b'{"round": "x", "proposals": [], "marks": {}}',
        b'{"round": 1, "proposals": [{"number": 1, "colour": 2}], "marks": {}}',
        b'{"round": 1, "proposals": [{}], "marks": {}}',
        b'{"round": 1, "proposals": [], "marks": []}',
        b'{"round": 1e999, "proposals": [], "marks": {}}',
    ],
)
def test_a_damaged_file_is_as_good_as_none(queue, content):
    """It can be lost without harm: the worker proposes again."""
    queue.path.write_bytes(content)
    assert len(Queue(queue.path)) == 0


def test_the_file_is_plain_json_whatever_the_names(queue):
    """Class names may hold half characters, which no file can hold as they are."""
    queue.replace({"proposals": [proposal(1, guess="\ud800")], "round": 1, "marks": {}})
    assert json.loads(queue.path.read_text(encoding="utf-8"))["proposals"][0]["guess"] == "\ud800"
    assert Queue(queue.path).get(1).guess == "\ud800"
