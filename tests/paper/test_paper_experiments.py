"""Experiments of the paper: their numbers are those of its table of settings; a command line chooses among them."""

from dataclasses import replace

import pytest

from balent.paper.experiments import EXPERIMENTS, chosen, is_folder_of_sets
from balent.report.published import TABLES, published, results
from balent.strategies import strategy

CONFIGURED = {  # experiment: its row in the paper's table of settings
    "mnist": "mnist",
    "coremse": "mnist",
    "cifar100": "cifar100",
    "3xcifar100": "3xcifar100",
    "prioritization": "3xcifar100",
    "precision": "3xcifar100",
    "redundancy": "3xcifar100",
    "tinyimagenet": "tinyimagenet",
    "3xcifar10-variational": "3xcifar10_variational",
    "3xcifar100-variational": "3xcifar100_variational",
    "3xcifar10-gp": "3xcifar10_gp",
}
FIELDS = {"K": "per_round", "K_total": "total", "batch": "batch_size", "epochs": "epochs", "iterations": "epochs",
          "lr": "learning_rate", "mc": "draws", "warm_start": "warm_start"}  # fmt: skip
EVERY = pytest.mark.parametrize("name", EXPERIMENTS)


@pytest.mark.parametrize(("name", "row"), CONFIGURED.items())
def test_settings_are_those_of_the_paper(name, row):
    said = results()["configuration"]["rows"][row]
    found = {key: getattr(EXPERIMENTS[name].spec, field) for key, field in FIELDS.items() if key in said}
    assert found == {key: said[key] for key in found}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_of_the_paper_has_its_experiment_and_strategies(name):
    """Its columns lie between the first label and the last, and are evaluated; the rows are strategies that are run."""
    scenario = EXPERIMENTS[name]
    for run in chosen(name, seeds=1):
        for labels in published(run.name, run.strategy):
            assert scenario.spec.start <= labels <= scenario.spec.total
            rounds, rest = divmod(labels - scenario.spec.start, scenario.spec.per_round)
            assert rest == rounds % scenario.spec.evaluate_every == 0
    table, _ = TABLES[name]
    rows = results()[table]["rows"]
    assert len([run for run in chosen(name, seeds=1) if published(run.name, run.strategy)]) >= len(rows) - 1


@EVERY
def test_strategies_exist_and_the_small_profile_is_smaller(name):
    scenario = EXPERIMENTS[name]
    for each in scenario.strategies:
        strategy(each)
    small = scenario.profile("cpu")
    assert (small.total, small.epochs) <= (scenario.spec.total, scenario.spec.epochs)
    assert bool(scenario.shrunk("cpu")) == bool(scenario.cpu)
    assert scenario.profile("paper") == scenario.spec


def test_profiles_are_names():
    with pytest.raises(ValueError, match="there is no profile 'gpu'"):
        chosen("mnist", profile="gpu")


def test_runs_come_seed_by_seed_and_pools_have_names_of_their_own():
    runs = chosen("no-ratio", seeds=2)
    assert [(run.name, run.seed, run.strategy) for run in runs[:3]] == [
        ("no-ratio-cifar100-features", 0, "balentacq"),
        ("no-ratio-cifar100-features", 0, "mjentacq"),
        ("no-ratio-cifar100-features", 1, "balentacq"),
    ]
    assert {run.data for run in runs} == {"cifar100-features", "3xcifar100-features"}


def test_a_folder_is_where_published_data_lie_and_a_file_is_data_of_its_own(tmp_path):
    mnist, digits = EXPERIMENTS["mnist"].spec, EXPERIMENTS["digits"].spec
    assert is_folder_of_sets(mnist, str(tmp_path))
    assert not is_folder_of_sets(digits, str(tmp_path))
    assert chosen("mnist", str(tmp_path), ["random"], 1) == [replace(mnist, strategy="random")]
    assert chosen("digits", "moons", ["random"], 1)[0].data == "moons"
    with pytest.raises(ValueError, match="balent run features --data"):
        chosen("features")


def test_numbers_of_the_paper_by_hand():
    assert published("mnist", "random")[50] == (0.786, 0.049)
    one, three = (published(f"redundancy-{times}xcifar100-features", "balentacq") for times in (1, 3))
    assert one == published("no-ratio-cifar100-features", "balentacq") != three
    assert published("digits", "random") == {}
    assert published("mnist", "mjentacq") == {}
