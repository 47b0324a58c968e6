"""From functions and a pool to picks: the same ones however the pool comes, and nothing half-done."""

import io
import resource
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.examples import probabilities
from helpers.items import Items
from helpers.small import head, inputs, seeded
from torch import nn
from torch.testing import assert_close
from torch.utils.data import DataLoader, Dataset, TensorDataset

import balent
from balent import Draws, Jitter, MCDropout, Moments, TopK, adapt
from balent.acquisition import progress as bars
from balent.acquisition.engines.local import LARGEST
from balent.maths.error import GROUPS, deviates, jackknife
from balent.maths.measures import balent as balance
from balent.types import Traits

POINTS = 300
X = inputs(6)(POINTS)


@pytest.fixture(scope="module")
def sampled():
    return MCDropout(seeded(lambda: scaled(head(nn.ReLU(), width=40)))).sample(20, seed=0)


def scaled(model):
    with torch.no_grad():
        model[-1].weight.mul_(6)
    return model


def draws_of(sampled):
    return sampled(X, torch.arange(POINTS))


# ── the same picks ───────────────────────────────────────────────────────────────────────────────


class Rows(Dataset):
    def __init__(self, item):
        self.item = item

    def __len__(self):
        return POINTS

    def __getitem__(self, i):
        return self.item(X[i])


POOLS = {
    "array": X.numpy,
    "tensor": lambda: X,
    "list": lambda: list(X),
    "list of lists": X.tolist,
    "Dataset of pairs": lambda: TensorDataset(X, torch.zeros(POINTS)),
    "Dataset of points": lambda: Rows(lambda x: x.numpy()),
    "DataLoader": lambda: DataLoader(TensorDataset(X, torch.zeros(POINTS)), 16, shuffle=True),
    "stream of batches": lambda: iter(X.split(7)),
    "stream of labelled batches": lambda: ((x, torch.zeros(len(x))) for x in X.split(64)),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("strategy", ["balentacq", "bald", "power_bald", "jitter:balentacq"])
def test_picks_do_not_depend_on_how_the_pool_comes(sampled, pool, strategy):
    expected = balent.acquire(sampled, X, 12, strategy, seed=3)
    picks = balent.acquire(sampled, pool(), 12, strategy, seed=3)
    assert picks.indices.tolist() == expected.indices.tolist()
    assert_close(picks.scores, expected.scores, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("strategy", ["balentacq", "bald", "random"])
def test_picks_are_those_of_select(sampled, strategy):
    expected = balent.select(draws_of(sampled), strategy, 12, seed=5)
    picks = balent.acquire(sampled, X, 12, strategy, seed=5)
    assert picks.indices.tolist() == expected.indices.tolist()


def test_a_pool_of_dicts_as_of_hugging_face():
    """Picked from {"x": …, "label": …} as from x itself."""

    class ByName(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = scaled(head(nn.ReLU(), width=40))

        def forward(self, x):
            return self.inner(x)

    named = MCDropout(seeded(ByName)).sample(20, seed=0)
    plain = MCDropout(seeded(ByName).inner).sample(20, seed=0)
    picks = balent.acquire(named, Rows(lambda x: {"x": x.numpy(), "label": 1}), 9, "balentacq")
    assert picks.indices.tolist() == balent.acquire(plain, X, 9, "balentacq").indices.tolist()


def test_draws_from_elsewhere_are_picked_by_position():
    p = probabilities(200, 10, 4).numpy()
    for strategy in ("balentacq", "jitter:bald", "power:entropy"):
        picks = balent.acquire(Draws(p), np.arange(200), 9, strategy, seed=2)
        assert picks.indices.tolist() == balent.select(p, strategy, 9, seed=2).indices.tolist()


@pytest.mark.parametrize("strategy", ["balentacq", "power:bald", "jitter:balentacq"])
@pytest.mark.parametrize("memory", [5_000, 20_000, 1 << 30])
def test_picks_do_not_depend_on_the_memory(sampled, strategy, memory):
    """Bug: the noise of jitter did, as torch.randn gives other numbers for other sizes."""
    expected = balent.acquire(sampled, X, 12, strategy, seed=3)
    picks = balent.acquire(sampled, X, 12, strategy, seed=3, memory=memory)
    assert picks.indices.tolist() == expected.indices.tolist()


def test_a_strategy_of_ones_own(sampled):
    picks = balent.acquire(sampled, X, 5, TopK(lambda m: -m.entropy))
    assert picks.indices.tolist() == (-Moments.of(draws_of(sampled)).entropy).topk(5).indices.tolist()


def test_neither_seeds_nor_states_are_touched(sampled):
    state = torch.get_rng_state()
    first, again, other = (balent.acquire(sampled, X, 12, "jitter:bald", seed=s) for s in (1, 1, 2))
    assert first.indices.tolist() == again.indices.tolist()
    assert first.indices.tolist() != other.indices.tolist()
    assert torch.equal(torch.get_rng_state(), state)


# ── blocks and memory ────────────────────────────────────────────────────────────────────────────


class Watching:
    """A Sampled that notes the size of each batch, and has no more memory than for so many points."""

    def __init__(self, sampled, most=10**9, error=torch.OutOfMemoryError):
        self.sampled, self.most, self.error, self.sizes = sampled, most, error, []
        self.traits = replace(adapt.traits(sampled), block=10**6)

    def __call__(self, batch, positions=None):
        return self.sampled(batch, positions)

    def moments(self, batch, positions=None):
        if len(positions) > self.most:
            raise self.error("DefaultCPUAllocator: not enough memory: you tried to allocate")
        self.sizes.append(len(positions))
        return self.sampled.moments(batch, positions)


@pytest.mark.parametrize("memory", [1000, 10_000, 50_000, 1 << 27])
def test_a_batch_fits_the_budget(sampled, memory):
    """Logits of 20 draws and 3 classes in single precision alone are 240 bytes a point."""
    watching = Watching(sampled)
    balent.acquire(watching, X, 3, memory=memory)
    largest = max(watching.sizes)
    assert largest * 240 <= max(memory, 240)
    assert largest == min(POINTS, LARGEST) or largest * 240 > memory / 20


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError, RuntimeError])
@pytest.mark.parametrize("most", [1, 40, 150])
def test_a_batch_that_does_not_fit_is_halved(sampled, error, most):
    expected = balent.acquire(sampled, X, 12, "balentacq")
    watching = Watching(sampled, most, error)
    counted = []
    few = Watching(sampled)  # the first two points are tried before any memory is short
    few.moments = lambda batch, at: sampled.moments(batch, at) if len(at) == 2 else watching.moments(batch, at)
    picks = balent.acquire(few, X, 12, "balentacq", progress=lambda done, total: counted.append(done))
    assert picks.indices.tolist() == expected.indices.tolist()
    assert max(watching.sizes) <= max(most, 2)
    assert counted[-1] == POINTS


@pytest.mark.parametrize("most", [1, 40])
def test_points_that_are_read_are_halved_as_well(sampled, most):
    expected = balent.acquire(sampled, X, 12, "herding")
    watching = Watching(sampled, most, MemoryError)
    few = Watching(sampled)
    few.moments = lambda batch, at: sampled.moments(batch, at) if len(at) == 2 else watching.moments(batch, at)
    assert balent.acquire(few, X, 12, "herding").indices.tolist() == expected.indices.tolist()
    assert max(watching.sizes) <= max(most, 2)


def test_a_batch_of_dicts_is_halved_too():
    """Bug: a dict has no slices."""

    class Sum:
        traits = Traits(n=4, block=10**6)

        def __call__(self, batch, positions=None):
            return Moments

        def moments(self, batch, positions=None):
            if len(positions) > 5:
                raise MemoryError
            doubt = batch["x"].double().sigmoid().mean(1)
            return Moments.of(torch.stack([doubt, 1 - doubt], -1)[:, None].expand(-1, 4, -1))

    pool = Rows(lambda x: {"x": x})
    assert len(balent.acquire(Sum(), pool, 4, "entropy").indices) == 4


def test_one_point_that_does_not_fit_is_an_error_and_so_is_any_other():
    class Broken(Watching):
        def moments(self, batch, positions=None):
            raise self.error("not enough memory" if self.most else "broken")

    base = MCDropout(seeded(head)).sample(3)
    with pytest.raises(torch.OutOfMemoryError):
        balent.acquire(Broken(base, 1), X, 3)
    with pytest.raises(RuntimeError, match="broken"):
        balent.acquire(Broken(base, 0, RuntimeError), X, 3)


# ── progress ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "settings", [{"strategy": "bald"}, {"draws": "auto"}, {"with_error": True}, {"strategy": "jitter:bald"}], ids=str
)
def test_progress_counts_every_point_once(sampled, settings):
    seen = []
    balent.acquire(sampled, X, 10, **settings, memory=20_000, progress=lambda done, total: seen.append((done, total)))
    assert [total for _, total in seen] == [POINTS] * len(seen)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1][0] == POINTS
    assert len(seen) > 2


def test_random_points_of_a_stream(sampled):
    picks = balent.acquire(sampled, iter(X.split(100)), 10, "random", seed=1)
    assert picks.indices.tolist() == balent.acquire(sampled, X, 10, "random", seed=1).indices.tolist()


def test_progress_of_a_stream_has_no_end_in_sight(sampled):
    seen = []
    balent.acquire(sampled, iter(X.split(100)), 10, progress=lambda *call: seen.append(call))
    assert seen == [(100, None), (200, None), (300, None)]


def test_the_bar_tells_the_rate(monkeypatch):
    import rich.console

    screen = io.StringIO()
    console = rich.console.Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(rich.console, "Console", lambda **_: console)
    with bars.counting(True, 100) as advance:
        time.sleep(0.01)
        advance(40)
    assert "40/100" in screen.getvalue()
    assert "None" not in screen.getvalue()
    assert "points," in screen.getvalue()
    assert "a second" in screen.getvalue()


# ── scores ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("memory", [20_000, 1 << 27])
def test_every_score_is_written(sampled, tmp_path, memory):
    file = tmp_path / "scores.npy"
    picks = balent.acquire(sampled, X, 12, "balentacq", measures=["bald", "entropy"], scores=file, memory=memory)
    table = np.load(file)
    assert table.shape == (POINTS, 3)
    for column, measure in zip(table.T, ("balentacq", "bald", "entropy"), strict=True):
        expected = balent.score(draws_of(sampled), measure)
        assert_close(torch.from_numpy(column.copy()), expected, rtol=2e-3, atol=1e-6)
    assert_close(torch.from_numpy(table[picks.indices, 0]), picks.scores)
    assert list(tmp_path.iterdir()) == [file]


def test_scores_in_parquet_have_names(sampled, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    balent.acquire(sampled, X, 12, "bald", measures=["mjent"], scores=str(tmp_path / "scores.parquet"))
    table = parquet.read_table(tmp_path / "scores.parquet")
    assert table.column_names == ["point", "bald", "mjent"]
    assert table["point"].to_pylist() == list(range(POINTS))
    assert_close(
        torch.tensor(table["bald"].to_pylist()).double(), balent.score(draws_of(sampled), "bald"), rtol=1e-3, atol=1e-6
    )
    assert [file.name for file in tmp_path.iterdir()] == ["scores.parquet"]


def test_random_scores_are_those_of_the_seed(sampled, tmp_path):
    """Bug: they were drawn from torch's own random state, and left it changed."""
    state = torch.get_rng_state()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        balent.acquire(sampled, X, 3, "bald", measures=["random"], scores=tmp_path / f"{name}.npy", seed=seed)
    a, b, c = (np.load(tmp_path / f"{name}.npy")[:, 1] for name in "abc")
    assert (a == b).all()
    assert (a != c).any()
    assert torch.equal(torch.get_rng_state(), state)


class Failing(Rows):
    def __getitem__(self, i):
        if i == 200:
            raise OSError("the disk is gone")
        return super().__getitem__(i)


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_a_pool_that_fails_in_the_middle_leaves_nothing_behind(sampled, tmp_path, ending):
    """What was done is reported; scores of an earlier run stay as they were."""
    old = tmp_path / f"scores{ending}"
    old.write_text("earlier")
    done = []
    with pytest.raises(OSError, match="the disk is gone") as caught:
        balent.acquire(
            sampled, Failing(lambda x: x), 12, scores=old, memory=20_000, progress=lambda n, _: done.append(n)
        )
    assert "while reading point 200 of the pool" in caught.value.__notes__
    assert 0 < done[-1] <= 200
    assert old.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [old]


@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_scores_replace_only_the_file_that_was_named(sampled, tmp_path, ending):
    """Defect: a link was replaced, and .partial and .whole files of the user were deleted."""
    (tmp_path / f"link{ending}").symlink_to(f"real{ending}")
    for mine in (".partial", ".whole"):
        (tmp_path / f"link{ending}{mine}").write_text("mine")
    balent.acquire(sampled, X, 12, scores=tmp_path / f"link{ending}")
    assert (tmp_path / f"link{ending}").is_symlink()
    assert (tmp_path / f"real{ending}").stat().st_size > POINTS
    assert {path.read_text() for path in tmp_path.glob(f"link{ending}.*")} == {"mine"}
    assert len(list(tmp_path.iterdir())) == 4


def test_a_disk_without_room_for_the_scores_is_said_before_any_work(sampled, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*scores\.npy'"):
            balent.acquire(sampled, X, 12, scores=tmp_path / "scores.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


# ── errors of scores ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", ["balentacq", "bald", "jitter:bald", "power:bald"])
def test_errors_are_those_of_a_jackknife_over_the_draws(sampled, strategy):
    picks = balent.acquire(sampled, X, 12, strategy, with_error=True)
    _, errors = balent.score(draws_of(sampled), strategy.split(":")[-1], with_error=True)
    assert_close(picks.errors, errors[picks.indices], rtol=0.02, atol=1e-5)
    if ":" in strategy:
        assert picks.stability is None


@pytest.mark.parametrize("strategy", ["balentacq", "bald"])
def test_stability_is_that_of_select(sampled, strategy):
    expected = balent.select(draws_of(sampled), strategy, 40)
    picks = balent.acquire(sampled, X, 40, strategy, with_error=True)
    assert picks.indices.tolist() == expected.indices.tolist()
    assert picks.stability == pytest.approx(expected.stability, abs=0.03)


# ── draws where they matter ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("strategy", ["balentacq", "bald", "entropy"])
@pytest.mark.parametrize("masks", ["shared", "per-point"])
def test_auto_finds_nearly_the_same_points_with_fewer_draws(strategy, masks):
    """On average at least as many as its confidence says, less .08: that is 4.9 standard errors of 20 picks in 8 runs,
    where a share of .95 is found.
    """
    found, said, used = [], [], []
    for seed in range(8):
        predictor = MCDropout(seeded(lambda: scaled(head(nn.ReLU(), width=60)), seed=seed))
        some = predictor.sample(200, seed=seed, masks=masks)
        all_draws = balent.acquire(some, X, 20, strategy)
        auto = balent.acquire(some, X, 20, strategy, draws="auto")
        found.append(np.isin(auto.indices, all_draws.indices).mean())
        said.append(auto.confidence)
        used.append(auto.draws)
    assert np.mean(found) > np.mean(said) - 0.08
    assert np.mean(used) < 150
    assert np.mean(said) > 0.75


def test_auto_over_matched_draws():
    some = MCDropout(seeded(lambda: scaled(head(nn.ReLU(), width=60)))).sample(200, seed=0, design="matched")
    all_draws, auto = (balent.acquire(some, X, 20, "bald", draws=draws) for draws in (None, "auto"))
    assert np.isin(auto.indices, all_draws.indices).mean() >= 0.8


@pytest.mark.parametrize("design", ["stratified", "matched"])
def test_errors_of_draws_that_depend_on_each_other_are_refused(design):
    """The jackknife takes groups of draws for independent: under matched draws its errors were twice too large."""
    some = MCDropout(seeded(lambda: scaled(head(nn.ReLU(), width=40)))).sample(20, seed=0, design=design)
    assert not some.traits.independent
    with pytest.raises(ValueError, match="needs independent draws, but stratified and matched draws are dependent"):
        balent.acquire(some, X, 5, "bald", with_error=True)
    assert balent.acquire(some, X, 5, "bald").errors is None


def test_independent_draws_and_those_of_a_sampled_that_says_nothing_have_errors(sampled):
    assert sampled.traits.independent
    for some, pool in ((sampled, X), (sampled.part(0, 10), X), (Draws(draws_of(sampled)), np.arange(POINTS))):
        assert (balent.acquire(some, pool, 5, "bald", with_error=True).errors > 0).all()


# ── noise ────────────────────────────────────────────────────────────────────────────────────────


def test_jitter_has_the_standard_deviation_of_the_jackknife():
    """Of the scores of 2,000 copies of each of 3 points: their mean is known to 1/√2000 of the error, and their
    standard deviation to 1/√4000; 4.9 of each. Of 400 draws: the slope and the difference agree where both are small.
    """
    p = probabilities(3, 400, 3)
    error, pool = jackknife(Moments.groups(p, 10), balance), Draws(p.repeat_interleave(2000, 0))
    picks = balent.acquire(pool, np.arange(6000), 6000, Jitter(balance), seed=0)
    noisy = picks.scores[picks.indices.argsort()].view(3, 2000)
    assert ((noisy.mean(1) - balance(Moments.of(p))).abs() < 4.9 * error / 2000**0.5).all()
    assert_close(noisy.std(1), error, rtol=4.9 / 4000**0.5, atol=0)


@pytest.mark.parametrize("design", ["independent", "stratified", "matched"])
def test_the_noise_of_jitter_is_that_of_independent_draws_whatever_the_design(design):
    """Its size over 60 points and 12 seeds, against the spread of the score over 40 seeds of independent draws.

    The design of the draws makes scores less noisy (matched: by half), but draws are as different from each other as
    before, and that is what the noise follows. Either size is known to about 5 %: a root mean square over points whose
    noise is partly common.
    """
    predictor, at = MCDropout(seeded(lambda: scaled(head(nn.ReLU(), width=60)))), torch.arange(60)
    again = [predictor.sample(60, seed=seed).moments(X[:60], at) for seed in range(40)]
    spread = torch.stack([balance(m) for m in again]).std(0).square().mean().sqrt()
    some = [predictor.sample(60, seed=seed, design=design) for seed in range(12)]
    found = [deviates(adapt.groups(s, X[:60], at, GROUPS), balance, i, at) for i, s in enumerate(some)]
    assert_close(torch.stack(found).square().mean().sqrt(), spread, rtol=0.2, atol=0)


def copies_together(sampled, pool, strategy, seeds, k=30):
    """The share of picks that come with another copy of the same point; copy i of point j is at 3j + i."""
    shares = []
    for seed in seeds:
        points = (balent.acquire(sampled(seed), pool, k, strategy, seed=seed).indices // 3).tolist()
        shares.append(np.mean([points.count(point) > 1 for point in points]))
    return np.mean(shares)


def test_jitter_buys_copies_apart_as_masks_per_point_do():
    """Under shared masks copies tie and are bought together, all of them; under their own, or jitter, few are.

    Each share is a mean over 8 runs of 30 picks, with an error of at most √(¼ / 240) = .032; .23 is 5 of √2 such.
    """
    predictor = MCDropout(seeded(lambda: scaled(head(nn.ReLU(), width=60))))
    pool = X.repeat_interleave(3, 0)
    together = copies_together(lambda s: predictor.sample(50, seed=s), pool, "balentacq", range(8))
    jitter = copies_together(lambda s: predictor.sample(50, seed=s), pool, "jitter:balentacq", range(8))
    own = copies_together(lambda s: predictor.sample(50, seed=s, masks="per-point"), pool, "balentacq", range(8))
    assert together > 0.95
    assert jitter < own + 0.23
    assert own < 0.7


# ── what cannot be done ──────────────────────────────────────────────────────────────────────────


def stream():
    return iter(X.split(50))


REFUSED = {
    "a k beyond the pool": ({"k": 301}, "k must be between 1 and the 300 points of the pool, but is 301"),
    "a k beyond a stream": (
        {"k": 301, "pool": stream},
        "k must be between 1 and the 300 points of the pool, but is 301",
    ),
    "no points": ({"k": 0}, "k must be between 1"),
    "a number of draws": ({"draws": "100"}, 'draws must be "auto" or left out'),
    "auto with a strategy": ({"draws": "auto", "strategy": "power_bald"}, 'draws="auto" needs the top k of a measure'),
    "auto over a stream": (
        {"draws": "auto", "pool": stream},
        "balentacq reads points again, but a stream",
    ),
    "scores of auto": ({"draws": "auto", "scores": "s.npy"}, "scores are imprecise; leave draws out to write them"),
    "scores of a stream": (
        {"pool": stream, "scores": "s.npy"},
        "scores=… needs a pool of known length, but it is a stream",
    ),
    "scores of no measure": (
        {"strategy": "random", "scores": "s.npy"},
        "has nothing to write",
    ),
    "a file of another kind": ({"scores": "s.csv"}, r"there is no writer for files ending in '.csv'"),
    "errors of no measure": (
        {"strategy": "random", "with_error": True},
        "needs a strategy based on a measure",
    ),
    "errors over a stream": (
        {"pool": stream, "with_error": True},
        "with_error=True .* that can be read twice",
    ),
    "an unknown strategy": ({"strategy": "bold"}, "there is no strategy 'bold'; did you mean bald"),
    "an unknown measure": ({"measures": ["bold"]}, "there is no measure 'bold'; did you mean bald"),
}


@pytest.mark.parametrize(("settings", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_said(sampled, tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    settings = {"pool": lambda: X, "k": 3} | settings
    pool = settings.pop("pool")()
    with pytest.raises(ValueError, match=message):
        balent.acquire(sampled, pool, **settings)
    assert list(tmp_path.iterdir()) == []


def test_one_draw_has_no_error():
    with pytest.raises(ValueError, match="a Monte-Carlo error needs at least 2 draws, but the number of draws is 1"):
        balent.acquire(MCDropout(seeded(head)).sample(1), X, 3, "entropy", with_error=True)


def test_auto_needs_functions_that_come_in_parts(sampled):
    class Whole:
        traits = Traits(n=40)

        def __call__(self, batch, positions=None):
            return sampled(batch, positions)

        def moments(self, batch, positions=None):
            return sampled.moments(batch, positions)

    with pytest.raises(ValueError, match=r"balentacq takes draws in parts, but Whole has no method part"):
        balent.acquire(Whole(), X, 3, "balentacq", draws="auto")
    p = probabilities(50, 40, 3)
    assert len(balent.acquire(Draws(p), np.arange(50), 3, draws="auto").indices) == 3


def test_points_of_different_shapes_are_named():
    pool = [X[i] if i != 40 else torch.zeros(9) for i in range(60)]
    with pytest.raises(ValueError, match=r"point 0 has \(6,\) and point 40 has \(9,\); resize or pad"):
        balent.acquire(MCDropout(seeded(head)).sample(3), pool, 3, "balentacq")


def test_a_point_that_gives_nan_is_named_by_its_position_in_the_pool(sampled):
    pool = X.clone()
    pool[217] = torch.nan
    with pytest.raises(ValueError, match=r"is NaN; .*at point 217, draw 0"):
        balent.acquire(sampled, pool, 3, "balentacq", memory=20_000)


def test_items_are_read_once():
    """A pool is expensive to read: two points more than once, to see what they are like."""
    reads = []
    pool = Items(lambda x, y: (reads.append(y), x)[1])
    balent.acquire(MCDropout(seeded(head, inputs=3)).sample(3), pool, 2, "bald")
    assert sorted(reads) == sorted([*range(7), 0, 1])
