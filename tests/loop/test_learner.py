"""Ask and tell: nobody is asked twice, nothing told is lost, and a Learner made again goes on as before."""

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers.disk import room_up_to
from helpers.driven import X, Y, answer, learner, network, rounds
from helpers.small import seeded
from torch import nn

import balent
from balent import checks
from balent.loop import journal
from balent.loop.start import balanced

# ── asking ───────────────────────────────────────────────────────────────────────────────────────


def test_asked_points_are_not_asked_again_told_or_not():
    driven = learner()
    answer(driven, driven.ask(6))
    seen = [*driven.told]
    for _ in range(4):
        seen += driven.ask(5).indices.tolist()  # nothing is told in between
    assert len(set(seen)) == len(seen) == 26
    assert driven.pending.indices.tolist() == seen[6:]


def test_the_best_of_what_is_left_are_asked():
    """The same functions over the whole pool, told points left out, give the same order."""
    driven = learner(strategy="bald", masks="shared")
    rounds(driven, 2)
    scores = balent.MEASURES["bald"](driven.sampled().moments(X, torch.arange(40)))
    scores[[*driven.told]] = -1
    picks = driven.ask(5)
    assert picks.indices.tolist() == scores.argsort(descending=True)[:5].tolist()
    torch.testing.assert_close(picks.scores, scores[picks.indices])


def test_masks_per_point_belong_to_positions_in_the_whole_pool():
    driven = learner(strategy="bald", masks="per-point")
    rounds(driven, 2)
    scores = balent.MEASURES["bald"](driven.sampled("per-point").moments(X, torch.arange(40)))
    scores[[*driven.told]] = -1
    assert driven.ask(5).indices.tolist() == scores.argsort(descending=True)[:5].tolist()


@pytest.mark.parametrize(
    ("settings", "per_point"),
    [
        ({}, False),  # auto keeps copies apart itself
        ({"masks": "shared"}, False),
        ({"strategy": "balentacq"}, True),
        ({"strategy": "badge"}, True),
        ({"strategy": "jitter:balentacq"}, False),  # brings noise of its own
        ({"strategy": "jitter:balentacq", "masks": "per-point"}, True),
        ({"strategy": "batch_bald", "masks": "per-point"}, False),  # needs functions of the whole pool
    ],
)
def test_masks_are_per_point_where_the_strategy_allows_it(settings, per_point):
    """So copies of a point are not bought together: docs/evidence.md."""
    driven = learner(**settings)
    rounds(driven, 1)
    assert driven.sampled(driven.masks).masks.per_point == per_point
    assert not driven.sampled().masks.per_point  # functions that can be evaluated anywhere


def test_a_predictor_whose_draws_are_functions_shares_them():
    made = balent.Ensemble(lambda: seeded(network), members=2, epochs=2)
    driven = balent.Learner(made, X, draws=2)
    assert len(rounds(driven, 2)) == 2


def test_masks_that_there_are_not_are_refused_at_once():
    with pytest.raises(ValueError, match="masks must be one of auto, shared, per-point, but is 'own'"):
        learner(masks="own")


@pytest.mark.parametrize("strategy", ["random", "power_bald", "jitter:balentacq", balent.Race(balent.MEASURES["bald"])])
def test_every_kind_of_strategy_can_ask(strategy):
    rounds(learner(strategy=strategy), 3)


@pytest.mark.parametrize("draws", ["auto", "analytic", 4])
def test_draws_may_be_a_number_or_how_they_are_chosen(draws):
    rounds(learner(strategy="bald", draws=draws), 2)


def test_more_than_is_left_takes_what_is_left_and_says_so():
    said = []
    driven = learner(say=said.append)
    answer(driven, driven.ask(37))
    assert len(driven.ask(10).indices) == 3
    assert said == ["10 points were requested, but only 3 are left: these are asked"]
    with pytest.raises(ValueError, match="no point is left to ask"):
        driven.ask(1)


def test_by_default_it_is_said_as_a_warning():
    with pytest.warns(UserWarning, match="40 are left"):
        balent.Learner(balent.MCDropout(network()), X).ask(50)


@pytest.mark.parametrize("k", [0, -1])
def test_k_is_positive(k):
    with pytest.raises(ValueError, match="k must be"):
        learner().ask(k)


def test_a_stream_has_no_positions_to_ask_for():
    with pytest.raises(TypeError, match="but it is a stream"):
        balent.Learner(balent.MCDropout(network()), iter([X]))


# ── start sets ───────────────────────────────────────────────────────────────────────────────────


def test_a_random_start_depends_on_the_seed_alone():
    first = [learner(strategy=s, seed=7, weights=w).ask(6).indices.tolist() for s, w in (("bald", 0), ("random", 1))]
    assert first[0] == first[1] != learner(seed=8).ask(6).indices.tolist()


def test_given_positions_are_asked_first_and_in_their_order():
    driven = learner(start=[9, 3, 5])
    assert driven.ask(2).indices.tolist() == [9, 3]
    assert driven.ask(2).indices.tolist() == [5]


def test_balanced_starts_have_as_many_of_each_class_as_can_be():
    start = balanced(Y.tolist(), 10, seed=0)
    assert Y[start].bincount().tolist() == [5, 5]
    assert balanced([0] * 9 + [1], 4, seed=3).count(9) == 1


def test_while_labels_are_of_one_class_points_are_asked_at_random():
    driven = learner(start="random")
    picks = driven.ask(4)
    driven.tell(picks.indices, [0, 0, 0, 0])
    assert bool((driven.ask(3).scores == 0).all())


# ── auto ─────────────────────────────────────────────────────────────────────────────────────────


def test_auto_begins_with_points_that_cover_the_pool():
    driven = learner()
    first = driven.ask(4)
    driven.tell(first.indices, [0, 0, 0, 0])
    second = driven.ask(3)
    assert driven.resolved == "herding:margin"
    assert bool((second.scores > 0).all())
    assert not set(first.indices.tolist()) & set(second.indices.tolist())


@pytest.mark.parametrize(
    ("strategy", "start", "used"), [("auto", "auto", "auto"), ("bald", "auto", "random"), ("auto", "random", "random")]
)
def test_a_strategy_that_asks_a_model_begins_with_random_points(strategy, start, used):
    assert learner(strategy=strategy, start=start).start == used


def test_auto_stays_what_it_was_when_a_directory_was_begun(tmp_path, monkeypatch):
    """Another version may recommend another strategy: a run goes on with its own."""
    with learner(tmp_path, strategy="auto") as driven:
        answer(driven, driven.ask(4))
    monkeypatch.setattr("balent.strategies.auto.RECOMMENDED", "bald")
    with learner(tmp_path, strategy="auto") as driven:
        assert driven.resolved == "herding:margin"
    assert learner(strategy="auto").resolved == "bald"


def test_auto_is_balentacq_where_draws_are_chosen_by_need():
    assert learner(strategy="auto", draws="auto").resolved == "balentacq"


# ── telling ──────────────────────────────────────────────────────────────────────────────────────


def test_labels_may_come_late_and_out_of_order_and_lead_to_the_same_picks():
    one, other = learner(), learner()
    for driven in (one, other):
        driven.ask(8)
    answer(one, one.pending)
    for i in reversed(other.pending.indices.tolist()):
        other.tell([i], [int(Y[i])])
    assert one.ask(5).indices.tolist() == other.ask(5).indices.tolist()


def test_the_last_word_wins_and_earlier_ones_are_kept():
    driven = learner()
    driven.tell([3], [0], who="Ada")
    driven.tell([3], [1], who="Emmy")
    assert driven.told == {3: 1}
    assert driven.history(3) == [("Ada", 0), ("Emmy", 1)]
    assert driven.history(4) == []


def test_a_new_label_is_trained_on():
    driven = learner()
    rounds(driven, 2)
    before = driven.sampled()(X)
    driven.tell([next(iter(driven.told))], [1 - next(iter(driven.told.values()))])
    assert not torch.equal(driven.sampled()(X), before)


def test_points_that_were_not_asked_may_be_told():
    driven = learner()
    driven.tell(torch.arange(6), Y[:6])
    assert set(driven.ask(34).indices.tolist()) == set(range(6, 40))


def test_skipped_points_are_neither_trained_on_nor_asked_unless_they_are_told():
    driven = learner()
    picks = driven.ask(6)
    driven.skip(picks.indices[:2], who="Ada")
    answer(driven, driven.pending)
    assert len(driven.told) == 4
    assert not set(picks.indices[:2].tolist()) & set(driven.ask(34).indices.tolist())
    driven.tell(picks.indices[:1], [0])
    assert len(driven.told) == 5


@pytest.mark.parametrize(
    ("indices", "labels", "kind", "said"),
    [
        ([40], [0], ValueError, r"positions must be 0\.\.39"),
        ([-1], [0], ValueError, r"positions must be 0\.\.39"),
        ([1, 2], [0], ValueError, "2 points and 1 labels"),
        ([1], [-1], ValueError, "one is -1"),
        ([1], [2], ValueError, r"labels must be class numbers 0\.\.1 of the model, but one is 2"),
        ([1], [2**63], ValueError, r"one is 9223372036854775808; nothing was recorded"),
        ([1, 1], [0, 1], ValueError, "a point has one label, but point 1 was given 0 and 1 in one call"),
        (np.ma.masked_array([1, 2], [True, False]), [0, 1], TypeError, "masked array"),
        ([1], np.array([0.5]), TypeError, "labels must be whole numbers"),
        (np.array([1.5]), [0], TypeError, "positions must be whole numbers"),
    ],
)
def test_what_cannot_be_told_is_refused_and_changes_nothing(indices, labels, kind, said):
    driven = learner()
    with pytest.raises(kind, match=said):
        driven.tell(indices, labels)
    assert driven.told == {}


# ── going on ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_learner_made_again_goes_on_as_if_nothing_had_been(tmp_path, warm_start, interrupted):
    """Even with other first weights: those of the first process are kept."""
    whole = rounds(learner(warm_start=warm_start), 5)
    found = []
    for process in range(5):
        with learner(tmp_path, weights=process, warm_start=warm_start) as driven:
            if interrupted:  # asked, and gone before anybody answered
                driven.ask(4)
        with learner(tmp_path, weights=-1, warm_start=warm_start) as driven:
            picks = driven.pending if interrupted else driven.ask(4)
            answer(driven, picks)
            found.append(picks.indices.tolist())
    assert found == whole


def test_everything_told_is_there_again(tmp_path):
    with learner(tmp_path) as driven:
        driven.ask(5)
        driven.tell([1, 2], [0, 1], who="Ada")
        driven.skip([3])
        state = driven.labels
    with learner(tmp_path) as driven:
        assert driven.labels == state
        assert driven.history(2) == [("Ada", 1)]


def test_a_torn_event_is_cut_off_and_said(tmp_path):
    with learner(tmp_path) as driven:
        driven.tell([1], [0])
    with (tmp_path / "journal.ndjson").open("a") as file:
        file.write('{"event": "tell", "ind')
    said = []
    with learner(tmp_path, say=said.append) as driven:
        assert driven.told == {1: 0}
        driven.tell([2], [1])
    assert "torn" in said[0]
    with learner(tmp_path) as driven:
        assert driven.told == {1: 0, 2: 1}


@pytest.mark.parametrize("setting", [{"strategy": "bald"}, {"seed": 1}, {"draws": 9}, {"start": [1]}])
def test_settings_that_contradict_the_directory_are_named(tmp_path, setting):
    learner(tmp_path).close()
    [(name, value)] = setting.items()
    with pytest.raises(ValueError, match=rf"was begun with {name} = .*, but {name} = .*{value!r}".replace("[", r"\[")):
        learner(tmp_path, **setting)


def test_another_network_is_refused(tmp_path):
    learner(tmp_path).close()
    with pytest.raises(ValueError, match="does not hold the weights of this model"):
        balent.Learner(balent.MCDropout(nn.Sequential(nn.Linear(3, 2), nn.Dropout())), X, directory=tmp_path, draws=8)


def test_two_learners_do_not_share_a_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "PATIENCE", 0.1)
    with learner(tmp_path), pytest.raises(BlockingIOError, match="is in use by process"):
        learner(tmp_path)
    learner(tmp_path).close()


def test_changing_the_strategy_leaves_start_training_and_draws_as_they_were():
    one, other = learner(strategy="bald"), learner(strategy="random")
    for driven in (one, other):
        answer(driven, driven.ask(6))
    assert torch.equal(one.sampled()(X), other.sampled()(X))


# ── nothing lost, nothing moved (#14) ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "other",
    [
        X.flip(0),
        torch.randn(40, 3),
        X.double(),
        torch.cat([X, X[:1]]),
        X.clone().index_fill_(0, torch.tensor([7]), 0.0),
    ],
    ids=["another order", "other numbers", "another precision", "a point more", "one point changed"],
)
def test_labels_do_not_move_to_the_points_of_another_pool(tmp_path, other):
    """#14: a directory was pinned by the pool's length alone."""
    learner(tmp_path).close()
    with pytest.raises(ValueError, match=r"belong to another pool: its rows differ|was begun with pool = 40"):
        balent.Learner(balent.MCDropout(network().to(other.dtype)), other, directory=tmp_path, draws=8)


def test_the_same_points_in_another_container_are_the_same_pool(tmp_path):
    learner(tmp_path).close()
    with balent.Learner(balent.MCDropout(network()), X.numpy(), directory=tmp_path, draws=8) as again:
        assert again.told == {}


def test_with_ids_the_directory_belongs_to_the_ids(tmp_path):
    names = [f"photos/{i}.jpg" for i in range(40)]
    learner(tmp_path, ids=names).close()
    learner(tmp_path, ids=names).close()
    with pytest.raises(ValueError, match="belong to another pool: its ids differ"):
        learner(tmp_path)


@pytest.mark.parametrize(("ids", "said"), [(["a"], "40 points and 1 ids"), (["a"] * 40, "ids must differ, but 'a'")])
def test_ids_are_one_for_each_point(ids, said):
    with pytest.raises(ValueError, match=said):
        learner(ids=ids)


def test_large_pools_are_known_by_some_of_their_rows(tmp_path):
    many = torch.randn(30_000, 3)
    with balent.Learner(balent.MCDropout(network()), many, directory=tmp_path):
        pass
    with pytest.raises(ValueError, match="belong to another pool"):
        balent.Learner(balent.MCDropout(network()), many[torch.randperm(len(many))], directory=tmp_path)


class Augmented(torch.utils.data.Dataset):
    """Other content at every reading."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return X[i] + torch.rand(())


def test_a_pool_that_changes_at_every_reading_is_known_by_its_length(tmp_path):
    for _ in range(2):
        balent.Learner(balent.MCDropout(network()), Augmented(), directory=tmp_path, draws=8).close()


def test_a_directory_of_format_1_is_accepted_and_pinned_from_then_on(tmp_path):
    with learner(tmp_path, strategy="balentacq") as driven:
        answer(driven, driven.ask(4))
        told = driven.told
    begun_by_0_1(tmp_path)
    said = []
    with learner(tmp_path, strategy="balentacq", say=said.append) as driven:
        assert driven.told == told
    assert "begun by balent 0.1" in said[0]
    with pytest.raises(ValueError, match="belong to another pool"):
        balent.Learner(balent.MCDropout(network()), X.flip(0), "balentacq", directory=tmp_path, draws=8)
    learner(tmp_path, strategy="balentacq", say=pytest.fail).close()


def begun_by_0_1(directory):
    """The directory as version 0.1 would have left it."""
    path = directory / "journal.ndjson"
    first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
    old = {name: value for name, value in first.items() if name not in ("fingerprint", "code")} | {"format": 1}
    path.write_text("".join(json.dumps(event) + "\n" for event in (old, *rest)))


@pytest.mark.parametrize("strategy", ["random", "power_bald", "jitter:bald", "badge", "batch_bald", "diverse:random"])
def test_a_run_of_0_1_whose_noise_rule_changed_is_refused(tmp_path, strategy):
    """Half of its picks would follow one rule and half another. Nothing is written."""
    with learner(tmp_path, strategy=strategy) as driven:
        rounds(driven, 1)
    begun_by_0_1(tmp_path)
    before = (tmp_path / "journal.ndjson").read_bytes()
    expected = f"begun by balent 0.1 with {strategy}, whose random numbers are drawn by another rule now"
    for _ in range(2):
        with pytest.raises(ValueError, match=expected):
            learner(tmp_path, strategy=strategy)
    assert (tmp_path / "journal.ndjson").read_bytes() == before


def test_a_run_of_0_1_that_has_asked_nothing_yet_follows_the_new_rule(tmp_path):
    learner(tmp_path, strategy="power_bald").close()
    begun_by_0_1(tmp_path)
    said = []
    with learner(tmp_path, strategy="power_bald", say=said.append) as driven:
        rounds(driven, 2)
    assert "begun by balent 0.1" in said[0]
    with learner(tmp_path, strategy="power_bald", say=pytest.fail) as driven:  # now it is a run of this version
        rounds(driven, 1)


@pytest.mark.parametrize("strategy", ["balentacq", "bald", "core_set", "core_mse", "diverse:bald"])
def test_a_run_of_0_1_without_noise_goes_on(tmp_path, strategy):
    with learner(tmp_path / "whole", strategy=strategy) as driven:
        whole = rounds(driven, 4)
    with learner(tmp_path / "half", strategy=strategy) as driven:
        half = rounds(driven, 2)
    begun_by_0_1(tmp_path / "half")
    said = []
    with learner(tmp_path / "half", strategy=strategy, say=said.append) as driven:
        half += rounds(driven, 2)
    assert half == whole
    assert "begun by balent 0.1" in said[0]


RESUME = """
import sys, torch, balent
from torch import nn
def own(m):
    return {body}
network = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 2))
pool = torch.linspace(0, 1, 120).view(40, 3)
predictor = balent.MCDropout(network, epochs=2)
with balent.Learner(predictor, pool, balent.TopK(own), directory=sys.argv[1], draws=4) as driven:
    print(driven.ask(1).indices.tolist())
"""


def test_a_strategy_with_a_function_of_ones_own_is_known_in_another_process(tmp_path):
    """#14: its name in the journal held an address in memory."""
    for body, changed in (("m.mean.amax(-1)", False), ("m.mean.amax(-1)", False), ("-m.mean.amax(-1)", True)):
        script = tmp_path / "script.py"
        script.write_text(RESUME.replace("{body}", body))
        ended = subprocess.run(
            [sys.executable, script, tmp_path / "learner"], capture_output=True, text=True, check=True
        )
        assert ("has changed since" in ended.stderr) == changed


def test_nothing_is_told_to_a_learner_that_is_closed(tmp_path):
    """#14: it was journalled without the lock."""
    driven = learner(tmp_path)
    driven.close()
    before = (tmp_path / "journal.ndjson").read_bytes()
    for act in (lambda: driven.tell([1], [0]), lambda: driven.ask(1), lambda: driven.skip([1])):
        with pytest.raises(ValueError, match="this Learner is closed"):
            act()
    assert (tmp_path / "journal.ndjson").read_bytes() == before


def test_an_empty_journal_has_lost_its_labels(tmp_path):
    """#14: it began anew, without a word."""
    learner(tmp_path).close()
    (tmp_path / "journal.ndjson").write_bytes(b"")
    with pytest.raises(ValueError, match=r"journal\.ndjson is empty, but a journal begins with a line"):
        learner(tmp_path)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"event": "tell"}, "line 2: the event 'tell' is damaged: 'indices'"),
        ({"event": "tell", "indices": [1], "labels": []}, "line 2: the event 'tell' is damaged"),
        ({"event": "tell", "indices": ["1"], "labels": [0]}, "must be lists of whole numbers"),
        ({"event": "skip", "indices": 3}, "must be lists of whole numbers"),
        ({"event": "skip", "indices": [99]}, "names point 99, but the pool has 40 points"),
        ({"event": "dance"}, "line 2: the event 'dance' is not known"),
    ],
)
def test_a_damaged_event_is_named_with_its_line(tmp_path, event, said):
    learner(tmp_path).close()
    with (tmp_path / "journal.ndjson").open("a") as file:
        file.write(json.dumps(event) + "\n")
    with pytest.raises(ValueError, match=said):
        learner(tmp_path)


def test_a_wrong_predictor_is_refused_when_the_learner_is_made():
    with pytest.raises(TypeError, match="predictor"):
        balent.Learner(network(), X)
    with pytest.raises(TypeError, match="fit, sample, state and load_state, but Sequential has no fit and no sample"):
        checks.predictor(network())


def test_a_full_disk_loses_no_label_that_was_acknowledged(tmp_path):
    """#14: 40 of 60 journals could not be opened again, and a label told after room was made was lost."""
    with learner(tmp_path) as driven:
        driven.tell([1, 2], [0, 1])
        with room_up_to((tmp_path / "journal.ndjson").stat().st_size + 20), pytest.raises(OSError, match="is intact"):
            driven.tell([3], [0], who="a name that does not fit into what is left")
        assert driven.told == {1: 0, 2: 1}
        driven.tell([4], [1])
    with learner(tmp_path) as driven:
        assert driven.told == {1: 0, 2: 1, 4: 1}


def test_a_long_list_of_start_points_takes_no_time_to_look_through():
    """#14: a set was built for each of them, 6.4 s for 5,000."""
    many = torch.zeros(200_000, 3)
    driven = balent.Learner(balent.MCDropout(network()), many, start=range(20_000))
    started = time.perf_counter()
    assert driven.ask(5).indices.tolist() == [0, 1, 2, 3, 4]
    assert time.perf_counter() - started < 5  # it took a hundred seconds: no measurement decides here


class Tokens(nn.Module):
    """As models of Hugging Face are called: with keywords, and `.logits` of what it returns."""

    def __init__(self):
        super().__init__()
        self.embedding, self.drop, self.head = nn.Embedding(9, 8), nn.Dropout(0.3), nn.Linear(8, 2)

    def forward(self, input_ids, attention_mask):
        inner = self.embedding(input_ids) * attention_mask[..., None]
        return SimpleNamespace(logits=self.head(self.drop(inner.sum(1))))


def test_a_pool_of_tokens_begins_at_random_and_goes_on_with_the_features_of_the_model():
    """#17: auto compared tokens before there was a model, and raised an error."""
    ids = torch.randint(1, 9, (30, 4), generator=torch.Generator().manual_seed(0))
    pool = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    driven = balent.Learner(balent.MCDropout(seeded(Tokens), epochs=3), pool, draws=5)
    first = driven.ask(6)
    assert first.plan is None
    driven.tell(first.indices, [0, 1] * 3)
    assert driven.ask(6).plan.endswith("compared by the model's features")
