"""The compiled kernel against plain torch in float64, for every instruction set of this machine."""

import math
import shutil

import numpy as np
import pytest
import torch
from helpers.examples import EDGES, f64, logits, normal, probabilities
from hypothesis import given
from hypothesis import strategies as st
from reference import definitions as reference
from torch.testing import assert_close

from balent import Moments, checks, kernels
from balent.kernels import plain
from balent.maths import beta

FIELDS = ("mean", "var", "within", "entropy")
CLASSES = [1, 2, 3, 4, 5, 10, 17, 47, 48, 49, 63, 100, 1000, 10_000]
DTYPES = [torch.float32, torch.float64]
# Relative error of one e^(z - max), or of one logarithm: z - max is rounded, and is of size 10 to 100.
ROUNDING = {torch.float32: 4e-6, torch.float64: 2e-14}
ALL = slice(None)


def assert_agrees(x, *, logits):
    """The moments of x by the kernel are those of plain torch, up to the rounding of a probability.

    A rounding error r of each p moves E P, √Var P and E P(1 - P) by no more than r·E P. The leading class is
    known by 1 - p, whose rounding is eps·(1 - p).
    """
    *came, bad = kernels.moments(x, logits=logits)
    *true, no = plain.moments(x, logits=logits, tolerance=kernels.SUM_TOLERANCE[x.dtype])
    assert bad is None
    assert no is None
    r = ROUNDING[torch.float64 if x.dtype == torch.float64 else torch.float32]
    mean, var, within, entropy = ((a, b) for a, b in zip(came, true, strict=True))
    room = r * true[0] + 4e-16 * (1 - true[0]) + 1e-37 * (r > 1e-10)  # float32 knows no smaller probability
    assert ((mean[0] - mean[1]).abs() <= room).all()
    assert ((var[0].sqrt() - var[1].sqrt()).abs() <= r * var[1].sqrt() + room).all()
    assert ((within[0] - within[1]).abs() <= r * within[1] + room).all()
    assert_close(entropy[0], entropy[1], rtol=2 * r, atol=1e-35 if r > 1e-10 else 1e-300)


# ── which kernel ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not (shutil.which("c++") or shutil.which("g++")), reason="no C++ compiler on PATH")
def test_where_there_is_a_compiler_the_kernel_is_compiled_and_serves(monkeypatch, use_kernel):
    """A silent fall-back to plain torch would cost a factor of ten and nobody would notice."""
    monkeypatch.delenv("BALENT_KERNEL", raising=False)
    kernels.active.cache_clear()
    assert "base" in kernels.levels()
    assert kernels.active() == kernels.levels()[0]


def test_plain_torch_serves_where_it_is_asked_for(use_kernel):
    use_kernel("torch")
    assert kernels.active() == "torch"


def test_an_unknown_instruction_set_is_refused(use_kernel):
    use_kernel("sse9")
    with pytest.raises(ValueError, match=r"BALENT_KERNEL=sse9 is not available here; choose from \['torch'"):
        kernels.active()


def test_the_asked_instruction_set_serves(level):
    assert kernels.active() == level


# ── the same as plain torch ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", CLASSES)
def test_random_logits_and_probabilities_give_the_moments_of_plain_torch(level, classes, dtype):
    pool, draws = (19, 37) if classes <= 100 else (3, 6)
    z = logits(pool, draws, classes, seed=classes, dtype=dtype)
    assert_agrees(z, logits=True)
    assert_agrees(z.double().softmax(-1).to(dtype), logits=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("pool", "draws"), [(1, 1), (1, 16), (1, 17), (2, 3), (7, 4), (16, 5), (17, 15), (33, 33)])
@pytest.mark.parametrize("classes", [2, 7, 50])
def test_odd_sizes_give_the_moments_of_plain_torch(level, pool, draws, classes, dtype):
    z = logits(pool, draws, classes, seed=pool * draws, dtype=dtype)
    assert_agrees(z, logits=True)
    assert_agrees(z.double().softmax(-1).to(dtype), logits=False)


def masked(z):
    z = z.clone()
    z[:, :, 1::3] = -torch.inf
    return z


def one_hot(z):
    return torch.where(z == z.amax(-1, keepdim=True), 0.0, -torch.inf).to(z.dtype)


ADVERSARIAL = {
    "plus and minus 700": lambda z: 700 * z.sign(),
    "700 for one class": lambda z: torch.where(z == z.amax(-1, keepdim=True), 700.0, -700.0).to(z.dtype),
    "all logits far below zero": lambda z: z - 1e4,
    "all logits far above zero": lambda z: z + 1e4,
    "the largest numbers": lambda z: z.sign() * torch.finfo(z.dtype).max,
    "a masked class": masked,
    "all equal": torch.zeros_like,
    "all draws equal": lambda z: z[:, :1].expand_as(z),
    "draws that nearly agree": lambda z: z[:, :1] + z * 1e-6,
    "one-hot draws": one_hot,
    "one draw": lambda z: z[:, :1],
    "a first draw that disagrees with all others": lambda z: torch.cat([z[:, :1] * 50, z[:, 1:2].expand_as(z)], 1),
    "numbers that are not normal": lambda z: z * torch.finfo(z.dtype).tiny / 8,
    "minus zero": lambda z: -torch.zeros_like(z),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 3, 10, 47, 48, 49, 1000])
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_adversarial_logits_give_the_moments_of_plain_torch(level, name, classes, dtype):
    z = ADVERSARIAL[name](normal(5, 21, classes, seed=classes, dtype=dtype))
    assert_agrees(z, logits=True)


@pytest.mark.parametrize("name", EDGES)
def test_the_edges_give_the_moments_of_plain_torch(level, name):
    assert_agrees(EDGES[name], logits=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("classes", [3, 50])
def test_half_precision_is_read_as_it_is(kernel, classes, dtype):
    """baal applies softmax to half-precision probabilities silently. 1e-6 is float32, where they are computed."""
    p = probabilities(4, 6, classes).to(dtype)
    true = p.double() / p.double().sum(-1, keepdim=True)
    assert_close(Moments.of(p).mean, true.mean(1), rtol=2e-6, atol=0)
    z = logits(4, 6, classes).to(dtype)
    assert_close(Moments.of(z, logits=True).mean, z.double().softmax(-1).mean(1), rtol=2e-6, atol=0)


def test_a_masked_class_has_nothing_at_all(kernel):
    m = Moments.of(f64([[[0.0, -math.inf, 1.0], [2.0, -math.inf, 0.0]]]), logits=True)
    assert (m.mean[0, 1], m.var[0, 1], m.within[0, 1]) == (0, 0, 0)
    assert_close(m.entropy, Moments.of(f64([[[0.0, 1.0], [2.0, 0.0]]]), logits=True).entropy)


# ── draws that are nearly sure ───────────────────────────────────────────────────────────────────


def sure_draws(classes, doubt, dtype):
    """Draws that are sure of class 0, then of class 1: [normalised, a bit too small, a bit too large] points."""
    p = torch.full((3, 5, classes), doubt / (classes - 1), dtype=torch.float64)
    p[:, :2, 0] = p[:, 2:, 1] = 1 - doubt
    return (p * f64([1, 1 - 8e-6, 1 + 8e-6])[:, None, None]).to(dtype)


def mean_entropy(rows):
    return torch.tensor([float(h) for h in reference.draws_moments(rows)[3]], dtype=torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 3, 10, 60])
@pytest.mark.parametrize("doubt", [1e-30, 1e-20, 6e-16, 1e-12, 1e-9, 6e-8, 1e-5, 1e-3, 0.02, 0.2])
def test_the_entropy_of_sure_draws_that_disagree_has_all_its_digits(kernel, doubt, classes, dtype):
    """It was wrong by 2 % at 6e-16: a class that is nearly certain was known by the sum of the others only where
    the first draw was sure of it, and 1 - p of any other has no digits left."""
    p = sure_draws(classes, doubt, dtype)
    z = p.double().log().to(dtype)
    r = ROUNDING[dtype]
    assert_close(Moments.of(p).entropy, mean_entropy(p.tolist()), rtol=r, atol=0)
    assert_close(Moments.of(z, logits=True).entropy, mean_entropy(reference.softmax(z.tolist())), rtol=r, atol=0)


@pytest.mark.parametrize("total", [1 - 9e-6, 1.0, 1 + 9e-6])
def test_one_class_has_no_entropy_at_all(kernel, total):
    """log S and Σ p log p did not cancel to the last bit: -1e-21 is no entropy."""
    assert Moments.of(torch.full((2, 3, 1), total, dtype=torch.float64)).entropy.tolist() == [0, 0]


# ── sizes and addresses ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("shape", [(3, 0, 2), (3, 2, 0), (0, 2, 2)])
def test_no_draws_are_an_error_and_not_the_end_of_the_process(kernel, shape):
    """Zero draws divided by zero: SIGFPE."""
    with pytest.raises(ValueError, match=r"draws must have points, draws and classes, but have shape"):
        kernels.moments(torch.zeros(shape), logits=True)


def test_the_compiled_module_itself_refuses_no_draws(level):
    outputs = *(torch.zeros(3, 2, dtype=torch.float64) for _ in range(3)), torch.zeros(3, dtype=torch.float64)
    with pytest.raises(ValueError, match="draws must not be empty"):
        kernels.compiled().moments(torch.zeros(3, 0, 2), *outputs, True, 1e-4, 1, level)


def misaligned(x):
    """The same numbers, one byte beyond where a word begins."""
    room = np.frombuffer(bytes(1) + x.tobytes(), np.uint8)
    return np.frombuffer(room.data, x.dtype, offset=1).reshape(x.shape)


def packed(x):
    """The same numbers in records of a byte and a number."""
    records = np.zeros(x.shape, [("byte", "i1"), ("p", x.dtype)])
    records["p"] = x
    return records["p"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("classes", [3, 60])
@pytest.mark.parametrize("array", [misaligned, packed])
def test_numbers_at_odd_addresses_are_read_as_they_are(kernel, array, classes, dtype):
    """Loads of a misaligned double are undefined in C++; packed records were refused by torch in its own words."""
    z = logits(7, 5, classes).numpy().astype(dtype)
    x = array(z)
    assert not x.flags.aligned
    came, true = Moments.of(x, logits=True), Moments.of(z, logits=True)
    for field in FIELDS:
        assert torch.equal(getattr(came, field), getattr(true, field))


def test_a_tensor_at_an_odd_address_is_read_as_it_is(level):
    z = logits(7, 5, 3)
    room = bytearray(1) + z.numpy().tobytes()
    x = torch.frombuffer(room, dtype=z.dtype, offset=1).view(z.shape)
    assert x.data_ptr() % 8
    assert torch.equal(Moments.of(x, logits=True).mean, Moments.of(z, logits=True).mean)
    outputs = *(torch.zeros(7, 3, dtype=torch.float64) for _ in range(3)), torch.zeros(7, dtype=torch.float64)
    with pytest.raises(ValueError, match="draws must be aligned in memory"):
        kernels.compiled().moments(x, *outputs, True, 1e-4, 1, level)


# ── memory layouts ───────────────────────────────────────────────────────────────────────────────


def garbage_between(x, axis):
    """A strided view of x: along the axis, every other number in memory is a NaN."""
    room = torch.stack([x, torch.full_like(x, torch.nan)], axis + 1).flatten(axis, axis + 1)
    index = [ALL] * x.ndim
    index[axis] = slice(None, None, 2)
    return room[tuple(index)]


LAYOUTS = {
    "draws first": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "classes first": lambda x: x.permute(2, 0, 1).contiguous().permute(1, 2, 0),
    "classes before draws": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "every other point": lambda x: garbage_between(x, 0),
    "every other draw": lambda x: garbage_between(x, 1),
    "every other class": lambda x: garbage_between(x, 2),
    "a window into a larger array": lambda x: torch.nn.functional.pad(x, (3, 5, 1, 1, 1, 1), value=torch.nan)[
        1:-1, 1:-1, 3:-5
    ],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [3, 10, 50])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_memory_layout_does_not_change_a_bit(kernel, layout, classes, dtype):
    z = logits(19, 9, classes, dtype=dtype)
    view = LAYOUTS[layout](z)
    assert torch.equal(view, z)
    assert not view.is_contiguous()
    for came, true in zip(kernels.moments(view, logits=True), kernels.moments(z, logits=True), strict=True):
        assert came is None or torch.equal(came, true)


def test_one_draw_repeated_without_memory_is_read_as_such(kernel):
    z = logits(5, 1, 4)
    m = Moments.of(z.expand(5, 8, 4), logits=True)
    assert_close(m.mean, z[:, 0].softmax(-1))
    assert_close(m.var, torch.zeros(5, 4, dtype=torch.float64), rtol=0, atol=1e-32)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


ARRAYS = {
    "draws first": lambda x: np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2),
    "Fortran order": np.asfortranarray,
    "points backwards": lambda x: x[::-1].copy()[::-1],
    "draws backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "classes backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "read-only": read_only,
    "read-only and backwards": lambda x: read_only(x[::-1])[::-1],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "read-only and big-endian": lambda x: read_only(x.astype(x.dtype.newbyteorder(">"))),
    "broadcast": lambda x: np.broadcast_to(x, x.shape),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("array", ARRAYS)
def test_any_array_of_numpy_is_read_as_it_is_and_not_touched(kernel, array, dtype):
    z = logits(7, 5, 6).numpy().astype(dtype)
    x = ARRAYS[array](z)
    came, true = Moments.of(x, logits=True), Moments.of(z, logits=True)
    for field in FIELDS:
        assert torch.equal(getattr(came, field), getattr(true, field))
    assert np.array_equal(x, z)


# ── a point is judged by its own draws alone ─────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 10, 47, 48, 130])
def test_a_point_has_the_same_bits_alone_and_among_others(level, classes, dtype):
    z = logits(40, 21, classes, dtype=dtype)
    *whole, _ = kernels.moments(z, logits=True)
    for first, last in [(0, 1), (1, 2), (39, 40), (3, 20), (16, 33), (17, 40)]:
        *part, _ = kernels.moments(z[first:last], logits=True)
        for came, true in zip(part, whole, strict=True):
            assert torch.equal(came, true[first:last])


@pytest.mark.parametrize("classes", [5, 60])
def test_a_point_has_the_same_bits_on_any_number_of_threads(level, classes):
    z = logits(5000, 21, classes, dtype=torch.float32)
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3, 7):
            torch.set_num_threads(threads)
            found.append(kernels.moments(z, logits=True)[:4])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for came, true in zip(other, found[0], strict=True):
            assert torch.equal(came, true)


# ── the compiled entropies of Betas ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("classes", [1, 2, 3, 10, 100])
def test_compiled_terms_of_the_posterior_uncertainty_are_those_of_torch(level, classes):
    """E[P] h(P⁺) with h of size 1 to 100 from terms of size 30: 1e-13 of h is what float64 leaves."""
    m = Moments.of(logits(50, 20, classes, seed=classes), logits=True)
    true = m.mean * beta.plus_entropy(*beta.fit(m.mean, m.rest, m.within, m.var, m.n))
    terms, near = kernels.posterior_terms(m.mean, m.var, m.within, m.n, near=0.0)
    assert not near
    assert_close(terms, true, rtol=1e-12, atol=1e-13)


# ── bad rows ─────────────────────────────────────────────────────────────────────────────────────


def spoil(x, point, draw, classes, kind):
    x = x.clone()
    row = x[point, draw]
    if kind == "all -inf":
        row[:] = -torch.inf
    elif kind == "negative":
        row[0] += row[classes // 2] + 0.25
        row[classes // 2] = -0.25
    elif kind == "sum":
        row *= 1.5
    else:
        row[classes // 2] = float(kind)
    return x


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("classes", [2, 10, 48, 130])
@pytest.mark.parametrize(
    ("kind", "logits_"),
    [("nan", True), ("inf", True), ("all -inf", True)]
    + [(kind, False) for kind in ("nan", "inf", "-inf", "negative", "sum")],
)
def test_the_first_bad_row_is_found_wherever_it_is(kernel, kind, logits_, classes, dtype):
    good = logits(21, 9, classes, dtype=dtype)
    good = good if logits_ else good.double().softmax(-1).to(dtype)
    for point, draw in [(0, 0), (0, 8), (7, 3), (20, 8)]:
        x = spoil(spoil(good, 20, 8, classes, kind), point, draw, classes, kind)  # the later one is not spoken of
        assert kernels.moments(x, logits=logits_)[-1] == (point, draw)


@pytest.mark.parametrize("classes", [3, 10, 30, 60, 200])
def test_a_row_on_the_very_edge_of_the_tolerance_is_either_good_or_named(kernel, classes):
    """Sums of float32 depend on their order: both passes over a row must come to the same verdict."""
    good = probabilities(20, 1, classes, seed=1, dtype=torch.float32)
    p = probabilities(1000, 1, classes, seed=classes)
    edge = (p * (1 + kernels.SUM_TOLERANCE[torch.float32] + 1e-7 * normal(1000, 1, 1, seed=1))).float()
    for row in edge:
        x = torch.cat([good[:7], row[None], good[7:]])
        mean, *_, bad = kernels.moments(x, logits=False)
        assert bad == (7, 0) or (bad is None and ((mean.sum(-1) - 1).abs() < 1e-6).all())


@given(st.integers(0, 6), st.integers(0, 4))
def test_positions_name_the_point_in_the_whole_pool(point, draw):
    x = probabilities(7, 5, 3)
    x[point, draw, 1] = torch.nan
    with pytest.raises(ValueError, match=rf"class 1 is NaN.*\(at point {100 + point}, draw {draw}\)"):
        Moments.of(x, positions=torch.arange(100, 107))


def test_draws_are_viewed_not_copied():
    """One copy of an 8 GB array would be one too many: what is checked is the same memory."""
    x = probabilities(3, 4, 2)
    for x_ in (x, x.numpy(), x.transpose(0, 1), read_only(x.numpy())):
        pointer = x_.data_ptr() if isinstance(x_, torch.Tensor) else x_.__array_interface__["data"][0]
        assert checks.draws(x_).data_ptr() == pointer
