"""Directories are opened again: their own settings win over defaults, also in those that older versions began."""

import json

import pytest
import torch
from helpers.driven import X, Y, answer, learner, network
from helpers.small import seeded

import balent
from balent.loop import checkpoint

# Written by version 0.1 (commit 51a1938): a Learner with its defaults and 8 draws over X, four calls of ask, one skip.
OF_0_1 = """\
{"event": "start", "format": 1, "strategy": "balentacq", "seed": 0, "draws": 8, "masks": "auto", "pool": 40, "start": "random"}
{"event": "ask", "indices": [11, 23, 31, 32], "scores": [0.0, 0.0, 0.0, 0.0]}
{"event": "tell", "indices": [11, 23, 31, 32], "labels": [1, 1, 0, 1], "who": null}
{"event": "ask", "indices": [19, 4, 37, 1], "scores": [91.34599010483292, -0.4033539460668831, -0.4384651457417856, -0.47097576873944424]}
{"event": "tell", "indices": [19, 4, 37, 1], "labels": [1, 1, 0, 0], "who": null}
{"event": "ask", "indices": [9, 29, 26, 3], "scores": [-0.4074969488661075, -0.5106849153997856, -0.7298690413466694, -0.9373291385734227]}
{"event": "tell", "indices": [9, 29, 26, 3], "labels": [1, 1, 0, 0], "who": null}
{"event": "ask", "indices": [22, 6], "scores": [-0.34633413284681835, -0.6724455012478814]}
{"event": "skip", "indices": [22], "who": "ann"}
"""  # noqa: E501 - lines of a journal


def begun(directory, journal):
    directory.mkdir(exist_ok=True)
    (directory / "journal.ndjson").write_text(journal)
    checkpoint.save(directory / "initial.safetensors", predictor().state())
    return directory


def predictor(weights=0):
    return balent.MCDropout(seeded(network, seed=weights), epochs=3)


def opened(directory, **settings):
    """As a person does who remembers nothing but the directory."""
    return balent.Learner(predictor(1), X, directory=directory, **{"say": lambda word: None, **settings})


def test_a_directory_of_0_1_goes_on_with_its_own_strategy(tmp_path):
    """The default was balentacq then and is auto now; start was random and is auto now."""
    said = []
    with opened(begun(tmp_path, OF_0_1), say=said.append) as driven:
        assert (driven.resolved, driven.start, driven.draws, driven.masks) == ("balentacq", "random", 8, "per-point")
        assert len(driven.told) == 12
        assert driven.pending.indices.tolist() == [6]
        assert driven.pending.scores.tolist() == [-0.6724455012478814]
        answer(driven, driven.ask(3))
    assert "begun by balent 0.1" in said[0]
    with opened(tmp_path, say=pytest.fail) as driven:
        assert len(driven.told) == 15


def test_the_next_picks_of_a_directory_of_0_1_are_those_of_0_1(tmp_path):
    """Its first three batches, asked again from its own labels."""
    lines = OF_0_1.splitlines(keepends=True)
    for number in (3, 5):
        with opened(begun(tmp_path / str(number), "".join(lines[:number]))) as driven:
            assert driven.ask(4).indices.tolist() == json.loads(lines[number])["indices"]


def test_fields_that_an_old_journal_lacks_have_the_values_of_0_1(tmp_path):
    first, rest = OF_0_1.split("\n", 1)
    few = {"event": "start", "pool": 40}
    with opened(begun(tmp_path, json.dumps(few) + "\n" + rest)) as driven:
        assert (driven.resolved, driven.start, driven.draws, driven.seed) == ("balentacq", "random", 100, 0)
    assert json.loads(first)["start"] == "random"


@pytest.mark.parametrize(
    "given", [{"strategy": "auto"}, {"draws": 9}, {"start": [1]}, {"masks": "shared"}, {"seed": 1}]
)
def test_other_settings_are_refused_if_they_are_given(tmp_path, given):
    [name] = given
    with pytest.raises(ValueError, match=f"was begun with {name} = "):
        opened(begun(tmp_path, OF_0_1), **given)
    assert (tmp_path / "journal.ndjson").read_text() == OF_0_1


def test_a_directory_of_format_2_goes_on_and_takes_new_events(tmp_path):
    with learner(tmp_path, strategy="bald", seed=3) as driven:
        driven.tell([1, 2, 3], Y[[1, 2, 3]])
    path = tmp_path / "journal.ndjson"
    path.write_text(path.read_text().replace('"format": 3', '"format": 2'))
    with opened(tmp_path, say=pytest.fail) as driven:
        assert (driven.resolved, driven.seed) == ("bald", 3)
        driven.retract([3])
    with opened(tmp_path, classes=["left", "right"], reserve=[7]) as driven:
        driven.tell([4], ["left"])
        assert driven.told == {1: int(Y[1]), 2: int(Y[2]), 4: 0}


def test_settings_that_were_given_once_need_not_be_given_again(tmp_path):
    begun_with = {"strategy": "bald", "seed": 5, "draws": 6, "masks": "shared", "start": [4, 8]}
    learner(tmp_path, **begun_with).close()
    with opened(tmp_path) as driven:
        assert (driven.resolved, driven.seed, driven.draws, driven.masks) == ("bald", 5, 6, "shared")
        assert driven.ask(2).indices.tolist() == [4, 8]
    learner(tmp_path, **begun_with).close()  # given again, they agree


def test_a_strategy_given_as_an_object_has_to_be_given_again(tmp_path):
    """Its name in the journal does not make it."""
    own = balent.TopK(balent.MEASURES["bald"])
    learner(tmp_path, strategy=own).close()
    with pytest.raises(ValueError, match=r"was begun with the strategy TopK\(.*pass the strategy itself"):
        opened(tmp_path)
    learner(tmp_path, strategy=own).close()


def test_other_formats_are_refused_and_left_alone(tmp_path):
    newer = OF_0_1.replace('"format": 1', '"format": 4')
    with pytest.raises(ValueError, match="has format 4, but this version of balent reads formats 1, 2, 3"):
        opened(begun(tmp_path, newer))
    assert (tmp_path / "journal.ndjson").read_text() == newer


def test_weights_of_another_network_are_refused_before_anything_is_written(tmp_path):
    begun(tmp_path, OF_0_1)
    wide = balent.MCDropout(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout()))
    with pytest.raises(ValueError, match="does not hold the weights of this model"):
        balent.Learner(wide, X, directory=tmp_path)
    assert (tmp_path / "journal.ndjson").read_text() == OF_0_1


@pytest.mark.parametrize("damage", [{"seed": "x"}, {"strategy": 3}, {"draws": None}, {"start": 7}, {"masks": True}])
def test_damaged_settings_are_named_with_their_line(tmp_path, damage):
    first, rest = OF_0_1.split("\n", 1)
    [name] = damage
    with pytest.raises(ValueError, match=f"line 1, is damaged: {name} = "):
        opened(begun(tmp_path, json.dumps(json.loads(first) | damage) + "\n" + rest))


@pytest.mark.parametrize(
    ("pin", "said"),
    [({"indices": [1], "ids": 3}, "'pin' is damaged"), ({"indices": [1], "ids": ["a"]}, "was at position 11 is not")],
)
def test_a_damaged_pin_is_named(tmp_path, pin, said):
    begun(tmp_path, OF_0_1 + json.dumps({"event": "pin", "format": 3, "fingerprint": "ids:0", **pin}) + "\n")
    with pytest.raises(ValueError, match=said):
        opened(tmp_path, ids=[str(i) for i in range(40)])
