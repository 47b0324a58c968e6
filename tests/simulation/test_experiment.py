"""Experiments: records are a function of the specification, whatever stops a run, and how often."""

import base64
import json
import multiprocessing
import random
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.deaths import Deaths, Died
from helpers.runs import IMAGES, TINY, finish, lines, timeless

from balent.data.sources import load
from balent.simulation import evaluation
from balent.simulation.experiment import Experiment, changed, continued, run
from balent.simulation.thumbnails import png

FIELDS = {
    *(
        "format",
        "balent",
        "torch",
        "experiment",
        "strategy",
        "resolved",
        "seed",
        "round",
        "labels",
        "accuracy",
        "nll",
        "brier",
    ),
    *("ece", "picks", "scores", "pick_labels", "epistemic", "aleatoric", "draws", "seconds", "spec"),
}


@pytest.fixture(scope="module")
def whole():
    """The records of a run that nothing stops."""
    return timeless(run(TINY))


# ── records ──────────────────────────────────────────────────────────────────────────────────────


def test_a_round_trains_on_all_that_was_bought_and_the_last_buys_nothing(whole):
    assert [record["labels"] for record in whole] == [6, 9, 11]
    assert [len(record["picks"]) for record in whole] == [3, 2, 0]
    assert whole[-1]["epistemic"] is whole[-1]["aleatoric"] is None
    assert TINY.rounds == len(whole)


def test_records_have_every_field_and_are_json(whole):
    for record in whole:
        assert set(record) | {"seconds"} == FIELDS
        assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_nothing_is_bought_twice_and_labels_are_true(whole):
    bought = [pick for record in whole for pick in record["picks"]]
    assert len(set(bought)) == len(bought) == 5
    assert load("few").y_train[bought].tolist() == [label for record in whole for label in record["pick_labels"]]


def test_the_same_specification_gives_the_same_records(whole):
    assert timeless(run(TINY)) == whole


def test_strategies_of_one_seed_begin_alike_and_seeds_differ(whole):
    other = next(run(replace(TINY, strategy="random")))
    seed = next(run(replace(TINY, seed=1)))
    same = ("accuracy", "nll", "brier", "ece")
    assert [other[key] for key in same] == [whole[0][key] for key in same] != [seed[key] for key in same]
    assert other["picks"] != whole[0]["picks"]


def test_rounds_between_evaluations_have_no_accuracy_and_change_nothing_else(whole):
    """Every other of four: the first, the third, and the last whatever its number."""
    sparse = list(run(replace(TINY, evaluate_every=2)))
    assert [record["accuracy"] is None for record in sparse] == [
        i not in (0, 2, len(sparse) - 1) for i in range(len(sparse))
    ]
    assert [record["picks"] for record in sparse] == [record["picks"] for record in whole]
    assert sparse[2]["accuracy"] == whole[2]["accuracy"]


@pytest.mark.parametrize("draws", ["auto", "analytic"])
def test_draws_may_be_a_word(draws):
    *_, last = run(replace(IMAGES, network="helpers.runs:shallow", masks="shared", draws=draws, total=24))
    assert (last["draws"], last["labels"]) == (draws, 24)


def test_strategies_of_the_whole_pool_share_their_masks():
    """Masks per point have no joint distribution, so these strategies draw functions of the whole pool."""
    *_, last = run(replace(TINY, strategy="batch_bald", masks="per-point", total=9))
    assert last["labels"] == 9


def test_infinite_scores_are_words(monkeypatch):
    """BalEntAcq is +∞ where BalEnt = 0 exactly; JSON has no such number."""
    from balent.strategies import STRATEGIES, TopK

    monkeypatch.setitem(STRATEGIES, "bald", TopK(lambda m: torch.full_like(m.entropy, torch.inf)))
    assert next(run(replace(TINY, strategy="bald")))["scores"] == ["inf"] * 3


def test_images_are_shown(tmp_path):
    record = next(run(IMAGES))
    assert len(record["thumbnails"]) == len(record["picks"]) == 4
    assert base64.b64decode(record["thumbnails"][0]).startswith(b"\x89PNG")


def test_a_png_holds_the_pixels_of_the_image():
    """Chunks IHDR, IDAT, IEND; IDAT is compressed rows, each after a 0."""
    image = torch.tensor([[[0.0, 1.0], [0.5, 0.2]]])
    content = png(image)
    start = content.index(b"IDAT") + 4
    length = int.from_bytes(content[start - 8 : start - 4], "big")
    assert zlib.decompress(content[start : start + length]) == bytes([0, 0, 255, 0, 128, 51])
    assert content[24:26] == bytes([8, 0])
    assert png(image.expand(3, 2, 2))[24:26] == bytes([8, 2])


def test_more_labels_than_there_are_buys_what_is_left_and_says_so(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.random((11, 2), np.float32), np.arange(11) % 3
    np.savez(tmp_path / "d.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    said = []
    done = list(run(replace(TINY, data=str(tmp_path / "d.npz"), total=100), say=said.append))
    assert [record["labels"] for record in done] == [6, 9, 11]
    assert said == ["3 points were requested, but only 2 are left: these are asked"]


def test_quality_by_hand():
    """Two of three right; p(true) = ½, ¼, ¾: nll = -log(3/32)/3; the one bin of 15 that holds each has one point."""
    p = torch.tensor([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0], [0.125, 0.125, 0.75]], dtype=torch.float64)
    y = torch.tensor([0, 1, 2])
    found = evaluation.evaluation(p, y)
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["nll"] == pytest.approx(-torch.tensor(3 / 32).log().item() / 3)
    assert found["brier"] == pytest.approx((0.375 + 1.125 + 0.09375) / 3)
    assert found["ece"] == pytest.approx((0.5 + abs(0.75 + 0.75 - 1)) / 3)


def test_a_class_held_impossible_has_a_finite_loss():
    assert evaluation.nll(torch.tensor([[1.0, 0.0]]), torch.tensor([1])) == pytest.approx(87.3365, abs=1e-3)


# ── specifications ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("epocs=3", "did you mean epochs"),
        ("epochs=many", "epochs must be a whole number, but is 'many'"),
        ("epochs=1.5", "epochs must be a whole number"),
        ("learning_rate=fast", "learning_rate must be a number"),
        ("warm_start=perhaps", "warm_start must be true or false"),
        ("epochs", "must be KEY=VALUE"),
        ("epochs=0", "epochs must be positive"),
        ("total=3", "less than the 6 to start with"),
        ("strategy=bld", "did you mean bald"),
        ("start_set=balance", "did you mean balanced"),
        ("predictor=dropout", "did you mean"),
    ],
)
def test_settings_that_cannot_be_are_said(word, said):
    with pytest.raises(ValueError, match=said):
        changed(TINY, [word])


def test_settings_have_the_type_of_their_field():
    spec = changed(TINY, ["epochs=7", "learning_rate=1e-2", "warm_start=true", "masks=shared"])
    assert (spec.epochs, spec.learning_rate, spec.warm_start, spec.masks) == (7, 0.01, True, "shared")


def test_a_strategy_with_a_colon_has_a_directory_of_its_own(tmp_path):
    spec = Experiment("x", "moons", "m:f", strategy="power:bald", seed=4)
    assert spec.directory(tmp_path) == tmp_path / "x" / "power%3Abald" / "seed-4"


# ── stopped and resumed ──────────────────────────────────────────────────────────────────────────


def test_an_existing_run_is_refused_and_a_finished_one_left_as_it_is(tmp_path, whole):
    assert timeless(run(TINY, tmp_path)) == whole
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "lock"}
    with pytest.raises(FileExistsError, match=r"holds a run already; go on with it by --resume"):
        next(run(TINY, tmp_path))
    assert timeless(run(TINY, tmp_path, resume=True)) == whole
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "lock"} == before


def test_a_specification_that_contradicts_the_directory_is_named(tmp_path):
    next(run(TINY, tmp_path))
    with pytest.raises(ValueError, match="was begun with epochs = 3, but epochs = 9 was given"):
        next(run(replace(TINY, epochs=9), tmp_path, resume=True))


def test_settings_that_the_file_of_a_run_lacks_are_the_defaults(tmp_path):
    """A run of an older version goes on: a field that was added since changes nothing by default."""
    next(run(TINY, tmp_path))
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "backbone"}))
    assert len(list(run(TINY, tmp_path, resume=True))) == TINY.rounds


def test_the_settings_of_a_run_win_over_defaults_but_not_over_given_ones(tmp_path):
    """#17: the start set of digits was balanced in 0.1 and is another one beside auto."""
    next(run(replace(TINY, start_set="random"), tmp_path))
    now = replace(TINY, start_set="auto", epochs=9)
    assert continued(tmp_path, now, {"epochs"}) == replace(TINY, start_set="random", epochs=9)
    with pytest.raises(ValueError, match="was begun with epochs = 3, but epochs = 9 was given"):
        next(run(continued(tmp_path, now, {"epochs"}), tmp_path, resume=True))
    assert len(list(run(continued(tmp_path, now, set()), tmp_path, resume=True))) == TINY.rounds
    assert continued(tmp_path / "new", now, set()) == now


def test_a_setting_of_the_wrong_kind_is_refused_in_words(tmp_path):
    next(run(TINY, tmp_path))
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"epochs": "many"}))
    with pytest.raises(ValueError, match="was begun with epochs = 'many', but epochs = 3 was given"):
        next(run(continued(tmp_path, TINY, set()), tmp_path, resume=True))


@pytest.mark.parametrize(("torn", "warm_start"), [(0.0, True), (0.5, True), (1.0, True), (0.5, False)])
def test_wherever_a_run_dies_it_resumes_to_the_same_records(tmp_path, monkeypatch, torn, warm_start):
    """Every line of journal and records in turn is the last one: not written, written in part, or written whole."""
    spec = replace(TINY, warm_start=warm_start)
    whole = timeless(run(spec))
    deaths = Deaths(monkeypatch, torn)
    written = 2 * len(whole) + len(whole)  # asked and told for each round; its record
    for line in range(1, written + 1):
        deaths.at(line)
        with pytest.raises(Died):
            finish(spec, tmp_path / str(line))
        finish(spec, tmp_path / str(line))
        assert timeless(lines(tmp_path / str(line) / "records.jsonl")) == whole


def finished(spec, place, after=None):
    """A run in a process of its own: to its end, or killed with SIGKILL after so many seconds.

    Here, where types are checked, networks are not traced and sums have other last digits; there they are as they are.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["balent.simulation.experiment", "torch._dynamo"])
    process = context.Process(target=finish, args=(spec, place))
    process.start()
    process.join(after)
    process.kill()
    process.join()
    return timeless(lines(place / "records.jsonl")) if after is None else None


def killed_at_random(spec, place, kills, seed):
    """The records of a run that was killed so many times, each time at a random moment."""
    moments = random.Random(seed)
    for _ in range(kills):
        finished(spec, place, moments.uniform(0.0, 0.8))
    return finished(spec, place)


def test_killed_three_times_a_run_ends_with_the_same_records(tmp_path):
    spec = replace(TINY, warm_start=True, total=36, epochs=10)
    assert killed_at_random(spec, tmp_path / "killed", 3, seed=0) == finished(spec, tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_runs_end_with_the_same_records(tmp_path, seed):
    spec = replace(IMAGES, warm_start=seed % 2 == 0, total=60, epochs=10, seed=seed)
    assert killed_at_random(spec, tmp_path / "killed", 4, seed) == finished(spec, tmp_path / "whole")


def test_a_full_disk_is_said_and_earlier_rounds_are_kept(tmp_path, monkeypatch, whole):
    going = run(TINY, tmp_path)
    next(going)

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left on device; everything written before is intact"):
            next(going)
    assert len(lines(tmp_path / "records.jsonl")) == 1
    assert timeless(run(TINY, tmp_path, resume=True)) == whole


# ── records that are not those of the journal ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ([0], r"records\.jsonl has 1 rounds, but the journal beside it goes on beyond them: records are missing"),
        ([0, 2], r"records\.jsonl, line 2, should be round 1 .* but is round 2; lines are missing"),
        ([1, 0, 2], r"records\.jsonl, line 1, should be round 0"),
        ([], r"records\.jsonl has 0 rounds, but the journal"),
    ],
)
def test_records_that_lag_behind_the_journal_are_refused(tmp_path, kept, said):
    """#14: a run went on with 4 of 11 lines, and recorded round 4 with the labels of round 11."""
    list(run(TINY, tmp_path))
    path = tmp_path / "records.jsonl"
    found = path.read_text().splitlines(keepends=True)
    path.write_text("".join(found[i] for i in kept))
    with pytest.raises(ValueError, match=said):
        list(run(TINY, tmp_path, resume=True))
    assert path.read_text() == "".join(found[i] for i in kept)


@pytest.mark.parametrize("content", ["", "{", "[1]", "\xff"])
def test_a_damaged_specification_is_named(tmp_path, content):
    next(run(TINY, tmp_path))
    (tmp_path / "spec.json").write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=r"spec\.json is damaged: it does not hold the settings of a run"):
        list(run(TINY, tmp_path, resume=True))
