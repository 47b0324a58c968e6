"""Two sets of runs: what changed, which is which, and no claim that chance explains."""

import csv

import numpy as np
import pytest
from helpers import made_up
from typer.testing import CliRunner

from balent.apps import cli
from balent.report import in_common, load, two_sets
from balent.report.load import Runs

SEEDS = range(4)


def written(folder, speeds, *, noise=0.002, seeds=SEEDS, **more):
    for name, speed in speeds.items():
        for seed in seeds:
            made_up.write(folder, made_up.records(name, seed, speed, noise=noise, **more))
    return load(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """badge is faster than it was; random is what it was, but for the noise of other evaluations."""
    place = tmp_path_factory.mktemp("sets")
    before = written(place / "before", {"badge": 1.1, "random": 1.0, "bald": 1.0}, spec={"epochs": 50})
    after = written(place / "after", {"badge": 1.6, "random": 1.0, "entropy": 1.0}, spec={"epochs": 100})
    return place, before, after


@pytest.fixture(scope="module")
def found(folders):
    _, before, after = folders
    return two_sets("before", before, "after", after)


def test_what_changed_is_claimed_and_says_which_is_which(found):
    first, changed, same = found.sentences
    assert first == "after minus before: a positive number says that after is better"
    assert changed.startswith("badge is more accurate in after than in before: +")
    assert "both corrected for 2 comparisons; 4 seeds" in changed
    assert same.startswith("No difference shown for random: 0.0 points on average from 20 to 400 labels")


def test_the_order_of_the_sets_is_the_sign(folders, found):
    _, before, after = folders
    back = two_sets("after", after, "before", before)
    (one,), (other,) = found.changes, back.changes
    assert back.sentences[1].startswith("badge is less accurate in before than in after: −")
    assert other.comparisons["badge"].gain == -one.comparisons["badge"].gain
    assert other.comparisons["badge"].p == pytest.approx(one.comparisons["badge"].p)


def test_gains_are_the_mean_of_differences_by_seed(folders, found):
    """By hand: areas by the trapezoid rule over equal steps."""
    _, before, after = folders

    def areas(runs):
        values = {run.seed: run.accuracies[1] for run in runs if run.strategy == "badge"}
        return np.array([np.trapezoid(values[seed]) / (len(values[seed]) - 1) for seed in SEEDS])

    assert found.changes[0].comparisons["badge"].gain == pytest.approx((areas(after) - areas(before)).mean())


def test_what_else_differs_is_remarked(found):
    said = "\n".join(found.remarks)
    assert "epochs is 50 in before and 100 in after" in said
    assert "bald is in before only" in said
    assert "entropy is in after only" in said


def test_seeds_that_are_in_one_set_only_are_left_out(tmp_path):
    one = written(tmp_path / "a", {"bald": 1.0}, seeds=range(3))
    other = written(tmp_path / "b", {"bald": 1.0}, seeds=range(1, 5))
    found = two_sets("a", one, "b", other)
    assert found.changes[0].comparisons["bald"].seeds == 2
    assert any("seeds 0, 3, 4 are in one of the sets only" in remark for remark in found.remarks)


def test_one_seed_shows_nothing(tmp_path):
    one = written(tmp_path / "a", {"bald": 1.0}, seeds=[0])
    other = written(tmp_path / "b", {"bald": 1.5}, seeds=[0])
    assert two_sets("a", one, "b", other).sentences[1].startswith("One seed cannot show a difference for bald: +")


def test_at_most_one_claim_in_twenty_where_nothing_changed():
    """Both sets differ by noise alone: of 100 comparisons 5 may claim something; more than 13 have p < 0.001."""
    claims = 0
    for trial in range(100):
        sets = []
        for side in (0, 1):
            rng = np.random.default_rng([trial, side])
            runs = [made_up.run(name, seed) for name in ("bald", "random") for seed in range(3)]
            for run in runs:
                for record in run.records:
                    record["accuracy"] = float(np.clip(record["accuracy"] + 0.01 * rng.standard_normal(), 0, 1))
            sets.append(runs)
        found = two_sets("a", Runs(sets[0]), "b", Runs(sets[1]))
        claims += any(c.verdict in ("more", "less") for c in found.changes[0].comparisons.values())
    assert claims <= 13


def test_several_settings_are_paired_by_what_is_equal(tmp_path):
    for side in ("a", "b"):
        for epochs in (50, 100):
            place = tmp_path / side / str(epochs)
            written(place, {"bald": 1.0}, spec={"epochs": epochs})
    written(tmp_path / "b" / "more", {"bald": 1.0}, experiment="other")
    found = two_sets("a", load(tmp_path / "a"), "b", load(tmp_path / "b"))
    assert [change.before.settings == change.after.settings for change in found.changes] == [True, True]
    assert found.remarks == ["other is in b only, so it is left out"]


# ── the command ──────────────────────────────────────────────────────────────────────────────────


def said_by(*words):
    result = CliRunner().invoke(cli.app, ["report", *map(str, words)])
    return result.exit_code, " ".join(result.output.split())


def test_two_folders_of_the_same_runs_are_compared(folders, tmp_path, monkeypatch):
    place, _, _ = folders
    monkeypatch.chdir(place)
    code, said = said_by("before", "after", "--csv", tmp_path / "c.csv", "--latex", tmp_path / "t.tex")
    assert code == 0
    assert "digits: after against before" in said
    assert "badge is more accurate in after than in before" in said
    (badge, _) = csv.DictReader((tmp_path / "c.csv").read_text().splitlines())
    assert (badge["strategy"], badge["quantity"]) == ("badge", "area_change")
    assert float(badge["low"]) > 0
    assert "area in before & area in after" in (tmp_path / "t.tex").read_text()


def test_a_page_shows_one_set(folders, tmp_path, monkeypatch):
    place, _, _ = folders
    monkeypatch.chdir(place)
    code, said = said_by("before", "after", "--html", tmp_path / "r.html")
    assert code == 2
    assert "--html shows one set of runs, but two are compared here; give one of before, after" in said


def test_two_folders_of_other_runs_are_one_report(folders, tmp_path):
    place, before, _ = folders
    written(tmp_path / "more", {"power_bald": 1.2}, spec={"epochs": 50})
    _, said = said_by(place / "before", tmp_path / "more")
    assert "power_bald" in said
    assert "against" not in said
    assert not in_common(before, before)  # the same files twice are one set


def test_a_figure_needs_its_file(folders, tmp_path):
    place, _, _ = folders
    code, said = said_by(place / "before", "--figure", "accuracy")
    assert code == 2
    assert "belong together, as in --figure accuracy -o curve.pdf" in said
    code, said = said_by(place / "before", "--figure", "accuracy", "-o", tmp_path / "curve.pdf")
    assert code == 0
    assert "mean of 4 seeds, bands ± one standard deviation" in said
