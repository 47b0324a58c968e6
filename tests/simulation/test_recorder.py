"""Records of a user's own loop: those of `balent run`, wherever it dies, and a report of them."""

import numpy as np
import pytest
import torch
from helpers.deaths import Deaths, Died
from helpers.labelled import blobs, network
from helpers.runs import lines, timeless

from balent import Learner, MCDropout, Recorder
from balent.report import load, summary

X, Y = blobs(60)
TEST = blobs(30, seed=3)
TOTAL = 18


def learner(directory=None, **settings):
    predictor = MCDropout(network(), epochs=3, warm_start=settings.pop("warm_start", False))
    return Learner(predictor, X, "bald", draws=6, directory=directory, say=lambda word: None, **settings)


def loop(directory=None, **settings):
    """A loop as the documentation has it; returns the records."""
    with learner(directory, **settings) as driven:
        recorder = Recorder(driven, TEST, "blobs", truth=Y, draws=6)
        while len(driven.told) < TOTAL:
            picks = recorder.ask(4)
            driven.tell(picks.indices, Y[picks.indices])
        if not recorder.finished:
            recorder.finish()
        return timeless(recorder.records)


def test_every_round_with_a_model_is_one_record():
    """18 labels, 4 at a time: 4 to begin with, which no model chose."""
    found = loop()
    assert [record["labels"] for record in found] == [4, 8, 12, 16, 20]
    assert [record["round"] for record in found] == [0, 1, 2, 3, 4]
    assert [len(record["picks"]) for record in found] == [4, 4, 4, 4, 0]
    assert all(Y[record["picks"]].tolist() == record["pick_labels"] for record in found)
    assert found[0]["strategy"] == "bald"
    assert found[0]["spec"] == {"draws": 6}


def test_accuracy_is_that_of_the_model_on_the_test_set():
    driven = learner()
    recorder = Recorder(driven, TEST, "blobs", draws=500)
    driven.tell(range(12), Y[:12])
    recorder.finish()
    right = driven.predict(TEST[0]).argmax(1) == TEST[1]
    assert recorder.records[0]["accuracy"] == pytest.approx(float(right.double().mean()), abs=0.07)


@pytest.mark.parametrize(("torn", "warm_start"), [(0.0, True), (0.5, True), (1.0, False)])
def test_wherever_a_loop_dies_it_goes_on_to_the_same_records(tmp_path, monkeypatch, torn, warm_start):
    """Every line of journal and records in turn is the last one: no round is missing, none is there twice."""
    whole = loop(warm_start=warm_start)
    deaths = Deaths(monkeypatch, torn)
    for line in range(1, 2 * len(whole) + len(whole) + 1):
        deaths.at(line)
        with pytest.raises(Died):
            loop(tmp_path / str(line), warm_start=warm_start)
        loop(tmp_path / str(line), warm_start=warm_start)
        assert timeless(lines(tmp_path / str(line) / "records.jsonl")) == whole


def test_a_report_reads_them(tmp_path):
    for seed in (0, 1):
        loop(tmp_path / f"seed-{seed}", seed=seed)
    (found,) = summary(load(tmp_path)).findings
    assert [len(runs) for runs in found.group.strategies.values()] == [2]
    assert found.group.title == "blobs"


def test_points_that_wait_come_first(tmp_path):
    """Labels may arrive a part at a time; what is skipped waits no longer."""
    with learner(tmp_path) as driven:
        recorder = Recorder(driven, TEST, "blobs", draws=6)
        first = recorder.ask(4).indices.tolist()
        driven.tell(first[:3], Y[first[:3]])
        assert recorder.ask(4).indices.tolist() == first[3:]
        with pytest.raises(ValueError, match="1 points of the last batch have no label yet; label or skip them"):
            recorder.finish()
        driven.skip(first[3:])
        assert len(recorder.ask(4).indices) == 4
        assert [record["labels"] for record in recorder.records] == [3]


def test_names_of_classes_are_labels(tmp_path):
    names = np.array(["a", "b", "c"])
    driven = learner(classes=names.tolist())
    driven.tell(range(6), Y[:6])
    recorder = Recorder(driven, (TEST[0].numpy(), names[TEST[1]].tolist()), "blobs", truth=names[Y].tolist(), draws=6)
    picks = recorder.ask(3).indices
    assert recorder.records[0]["pick_labels"] == names[Y[picks]].tolist()
    assert 0 <= recorder.records[0]["accuracy"] <= 1


def test_rounds_can_go_without_an_evaluation():
    driven = learner()
    driven.tell(range(6), Y[:6])
    recorder = Recorder(driven, TEST, "blobs", draws=6)
    recorder.ask(3, evaluate=False)
    assert recorder.records[0]["accuracy"] is None


def test_images_and_code_of_ones_own_are_recorded():
    def mine(sampled, pool, k, *, generator):
        from balent import TopK
        from balent.maths.measures import bald

        return TopK(bald)(sampled, pool, k, generator=generator)

    x = torch.rand(20, 1, 4, 4)
    model = torch.nn.Sequential(torch.nn.Flatten(), *network(16))
    driven = Learner(MCDropout(model, epochs=1), x, mine, draws=6)
    driven.tell(range(6), Y[:6])
    recorder = Recorder(driven, (x, Y[:20]), "images", image=(1, 4, 4), draws=6, strategy="mine")
    recorder.ask(3)
    (record,) = recorder.records
    assert len(record["thumbnails"]) == 3
    assert set(record["code"]) == {"strategy"}
    assert record["strategy"] == "mine"


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


def test_a_finished_run_stays_as_it_is(tmp_path):
    loop(tmp_path)
    before = (tmp_path / "records.jsonl").read_bytes()
    with learner(tmp_path) as driven:
        recorder = Recorder(driven, TEST, "blobs", draws=6)
        with pytest.raises(ValueError, match="the run of bald, seed 0, is finished"):
            recorder.ask(3)
        with pytest.raises(ValueError, match="record further rounds in another directory"):
            recorder.finish()
    assert (tmp_path / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"experiment": "other"}, "was begun with experiment = 'blobs', but experiment = 'other' was given"),
        ({"strategy": "mine"}, "was begun with strategy = 'bald', but strategy = 'mine'"),
        ({"settings": {"epochs": 9}}, "was begun with epochs = 3, but epochs = 9 was given"),
        ({"settings": {}}, "was begun with epochs = 3, but epochs = None was given"),
        ({"code": {"strategy": "b"}}, "the code of the strategy has changed since"),
    ],
)
def test_records_of_one_run_are_of_one_kind(tmp_path, changed, said):
    kind = {"experiment": "blobs", "settings": {"epochs": 3}, "code": {"strategy": "a"}, "draws": 6}
    with learner(tmp_path) as driven:
        driven.tell(range(6), Y[:6])
        Recorder(driven, TEST, **kind).ask(3)
    with learner(tmp_path) as driven, pytest.raises(ValueError, match=said):
        Recorder(driven, TEST, **(kind | changed))


def test_a_batch_that_was_not_asked_by_the_recorder_is_said(tmp_path):
    with learner(tmp_path) as driven:
        for _ in range(3):
            picks = driven.ask(6).indices
            driven.tell(picks, Y[picks])
        with pytest.raises(ValueError, match=r"has 0 rounds.*every batch is to be asked by the Recorder"):
            Recorder(driven, TEST, "blobs")


def test_a_batch_that_was_asked_beside_the_recorder_is_said():
    driven = learner()
    driven.tell(range(6), Y[:6])
    recorder = Recorder(driven, TEST, "blobs", draws=6)
    picks = driven.ask(3).indices
    driven.tell(picks, Y[picks])
    with pytest.raises(ValueError, match=r"this run has 0 rounds.*every batch is to be asked by the Recorder"):
        recorder.ask(3)


def test_labels_that_do_not_fit_are_said():
    with pytest.raises(ValueError, match="there are 30 points and 29"):
        Recorder(learner(), (TEST[0], TEST[1][:29]), "blobs")
    with pytest.raises(ValueError, match="each of the 60 points of the pool, but has 3"):
        Recorder(learner(), TEST, "blobs", truth=[0, 1, 2])
    with pytest.raises(TypeError, match="they are a stream"):
        Recorder(learner(), (iter([TEST[0]]), TEST[1]), "blobs")
