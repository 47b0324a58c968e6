"""Waves of table rows: their definition, what they are made for, and rows that depend on nothing but themselves."""

import numpy as np
import torch

from balent import Logistic
from balent.data.waves import WAVES, Waves


def rows(n=200, columns=3, seed=0):
    numbers = np.random.default_rng(seed).standard_normal((n, columns))
    return [{f"c{j}": float(x) for j, x in enumerate(row)} | {"word": "ab"[i % 2]} for i, row in enumerate(numbers)]


def fitted(table):
    maker = Waves()
    maker.fit(table)
    return maker


def test_products_of_rows_are_gaussian_kernels_of_their_distance():
    """The columns aside: half of the waves have the median distance, half of them half of it. 256 random waves know the
    kernel to about 1/√256."""
    table = rows()
    maker = fitted(table)
    z = maker.columns(table)[0].astype(float)
    waves = maker(table)[0][:, -2 * WAVES :].astype(float)
    apart = np.linalg.norm(z[:, None] - z, axis=2)
    share = apart / np.median(apart[apart > 0])
    kernel = (np.exp(-(share**2) / 2) + np.exp(-2 * share**2)) / 2
    assert abs(waves @ waves.T - kernel).mean() < 0.05
    assert abs(waves @ waves.T - kernel).max() < 0.3


def test_columns_stand_beside_the_waves():
    table = rows()
    maker = fitted(table)
    z, found = maker.columns(table)[0], maker(table)[0]
    assert found.shape == (200, maker.width)
    np.testing.assert_allclose(found[:, : z.shape[1]], 0.5 * z / np.median(np.linalg.norm(z, axis=1)), rtol=1e-5)


def test_a_linear_head_finds_the_middle_of_one_number():
    """Without waves all that a direction keeps of a number is its sign: half of the points are then wrong."""
    x = np.random.default_rng(0).standard_normal(400)
    y, table = torch.from_numpy(abs(x) < 0.67).long(), [{"x": float(v)} for v in x]
    features = torch.from_numpy(fitted(table)(table)[0])
    head = Logistic(2, features)
    head.fit((features[:60], y[:60]), generator=torch.Generator())
    right = head.sample(20, seed=0)(features[60:]).mean(1).argmax(1) == y[60:]
    assert right.float().mean() > 0.95


def test_a_row_depends_on_itself_alone():
    table = rows()
    maker = fitted(table)
    whole = maker(table)[0]
    assert np.concatenate([maker([row])[0] for row in table]).tobytes() == whole.tobytes()
    assert np.concatenate([maker(table[i : i + 7])[0] for i in range(0, 200, 7)]).tobytes() == whole.tobytes()


def test_the_order_in_which_rows_are_learnt_does_not_matter():
    """Means of columns may differ in the last digit, hence not bit for bit."""
    table = rows(3000)
    np.testing.assert_allclose(fitted(table[::-1])(table[:9])[0], fitted(table)(table[:9])[0], atol=1e-5)


def test_what_was_learnt_is_the_state():
    table = rows()
    maker, loaded = fitted(table), Waves()
    loaded.load_state(maker.state())
    assert loaded(table)[0].tobytes() == maker(table)[0].tobytes()
    assert (loaded.about(), loaded.notes()) == (maker.about(), maker.notes())


def test_nearly_all_rows_are_the_same():
    """The median distance would be 0."""
    table = [{"x": 1.0}] * 50 + [{"x": 2.0}]
    found, reasons = fitted(table)(table)
    assert np.isfinite(found).all()
    assert found[0].tolist() != found[-1].tolist()
    assert reasons == [None] * 51
