"""Features of table rows: numbers by hand, every kind of column, and rows that depend on nothing but themselves."""

import math
import subprocess
import sys

import numpy as np
import pytest

from balent.data.column_kinds import BUCKETS, CLIP, LEVELS, Category, Number
from balent.data.columns import Columns


def fitted(rows):
    maker = Columns()
    maker.fit(rows)
    return maker


def column(*cells):
    return [{"a": cell} for cell in cells]


@pytest.mark.parametrize("cells", [(1, 3, 2), ("1", " 3.0", "2e0"), (1.0, 3, 2.0)])
def test_numbers_are_standardised_in_whatever_form_they_are_given(cells):
    """1, 3, 2 have mean 2 and deviation √(2/3). Then comes the missing flag."""
    rows, reasons = fitted(column(*cells))(column(*cells))
    z = math.sqrt(1.5)
    np.testing.assert_allclose(rows, [[-z, 0], [z, 0], [0, 0]], rtol=1e-6)
    assert rows.dtype == np.float32
    assert reasons == [None] * 3


@pytest.mark.parametrize("gone", [None, "", " ", "NA", "nan", float("nan"), "?"])
def test_a_missing_number_is_the_mean_with_a_flag(gone):
    maker = fitted(column("1", "3", gone))
    assert maker(column(gone, "3"))[0].tolist() == [[0, 1], [1, 0]]
    assert maker([{}])[0].tolist() == [[0, 1]]


def test_categories_are_one_hot_and_unknown_levels_have_a_place():
    """b occurs twice and comes first; then a, the place of levels that come later, the missing flag."""
    maker = fitted(column("a", "b", "b", None))
    rows, _ = maker(column("a", "b", "new", None, " b "))
    assert rows.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]


def test_many_levels_share_buckets():
    cells = [f"level {i}" for i in range(LEVELS + 20) for _ in range(2)]
    maker = fitted(column(*cells, *["level 69"] * 5))
    rows, _ = maker(column("level 69", "level 68", "level 68", "later"))
    assert rows.shape[1] == LEVELS + BUCKETS + 1
    assert rows[0, 0] == 1  # the most frequent
    assert rows[1, LEVELS:-1].sum() == rows[3, LEVELS:-1].sum() == 1
    assert rows[1].tolist() == rows[2].tolist()
    assert maker.notes() == ["column 'a' has 70 levels: 50 have a feature, 20 share 16"]


def test_booleans_and_mixed_types():
    assert fitted(column(True, False))(column(True, False))[0][:, 0].tolist() == [1, -1]
    (kind,) = fitted(column("x", 1, 1.0, "1")).kinds
    assert kind == Category("a", ("1", "x"), 1)


def test_dates_are_numbers():
    maker = fitted(column("2024-01-01", "2024-01-03T00:00:00", "2024-01-02 00:00:00+00:00"))
    assert maker.notes() == ["column 'a' is read as dates"]
    rows, reasons = maker(column("2024-01-02", "2024-01-03", None, "soon"))
    np.testing.assert_allclose(rows, [[0, 0], [math.sqrt(1.5), 0], [0, 1]], atol=1e-4)
    assert reasons == [None, None, None, "column 'a' must have a date, but has 'soon'"]


def test_columns_without_information_are_not_used_and_reported():
    rows = [
        {
            "same": 1,
            "empty": None,
            "key": f"user {i}",
            "text": f"{i} " + "long text " * 9,
            "x": i,
            "some": (None, 7)[i % 2],
        }
        for i in range(60)
    ]
    maker = fitted(rows)
    assert [kind.name for kind in maker.kinds] == ["some", "x"]
    assert maker.notes() == [
        "column 'empty' is not used: it has the same value in every row",
        "column 'key' is not used: nearly every row has a value of its own, like an id",
        "column 'same' is not used: it has the same value in every row",
        "column 'text' is not used: it has long texts; label texts as such, or remove it",
    ]
    assert maker(rows[:2])[0][:, :2].tolist() == [[0, 1], [0, 0]]  # 7 in every row that has it: the flag says all


def test_a_column_of_nearly_only_numbers_is_reported():
    (note,) = fitted(column(*map(str, [1, 2] * 20), "3 kg")).notes()
    assert note == "column 'a' is read as words, though most cells are numbers: one is '3 kg'"


@pytest.mark.parametrize("bad", [math.inf, "-inf", "1e999", 10**400, "abc", "1_0"])
def test_what_is_not_a_finite_number_is_refused_with_a_reason(bad):
    maker = fitted(column(1, 3, 2))
    rows, reasons = maker(column(3, bad, 1))
    assert rows.tobytes() == maker(column(3, 1))[0].tobytes()
    assert reasons[0] is reasons[2] is None
    assert reasons[1].startswith("column 'a' must have a finite number, but has ")
    assert len(reasons[1]) < 200


def test_infinite_numbers_teach_nothing():
    assert fitted(column(1, 3, math.inf)).kinds == fitted(column(1, 3)).kinds
    with pytest.raises(ValueError, match=r"must have a column that differs .*'a' is not used: it has no finite number"):
        fitted(column(math.inf, -math.inf))


def test_extreme_numbers_stay_finite_and_are_clipped():
    maker = fitted(column(1e308, -1e308, 0))
    rows, _ = maker(column(1e308, -1e308, 0))
    np.testing.assert_allclose(rows[:, 0], [math.sqrt(1.5), -math.sqrt(1.5), 0], rtol=1e-6)
    assert fitted(column(1, 2, 3))(column(1e300, -1e300))[0][:, 0].tolist() == [CLIP, -CLIP]
    assert np.isfinite(fitted(column(5e-324, 0))(column(5e-324, 1e308))[0]).all()


MIXED = [
    {"n": 0.1 * i, "c": "xyz"[i % 3], "d": f"2024-01-{i + 1:02d}", "h": f"{'ab'[i % 2]}{i % 4}", "f": i % 2 == 0}
    for i in range(9)
]


def test_a_row_does_not_depend_on_its_neighbours():
    maker = fitted(MIXED)
    together, _ = maker(MIXED)
    assert together.tobytes() == np.concatenate([maker([row])[0] for row in MIXED]).tobytes()
    assert maker([])[0].shape == (0, maker.width)


def test_rows_and_columns_that_come_later_change_nothing():
    maker = fitted(MIXED)
    before = maker(MIXED)[0].tobytes()
    maker([{"n": 1e9, "c": "new"}] * 3)
    assert maker([row | {"late": 5} for row in MIXED])[0].tobytes() == before
    shuffled = [dict(reversed(row.items())) for row in MIXED]
    assert fitted(shuffled)(MIXED)[0].tobytes() == before


def test_saved_columns_give_the_same_bits_in_another_process(tmp_path):
    maker = fitted(MIXED)
    np.savez(tmp_path / "state.npz", **maker.state())
    script = (
        "import numpy as np; from balent.data.columns import Columns; maker = Columns();"
        "maker.load_state(dict(np.load('state.npz', allow_pickle=False)));"
        f"np.save('rows.npy', maker({MIXED!r})[0])"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert np.load(tmp_path / "rows.npy").tobytes() == maker(MIXED)[0].tobytes()
    loaded = Columns()
    loaded.load_state(maker.state())
    assert (loaded.kinds, loaded.notes(), loaded.about()) == (maker.kinds, maker.notes(), maker.about())


def test_hostile_cells_have_a_level():
    cells = ["\ud800", "x" * 1_000_000, "a\0", "=1+1"]
    maker = fitted(column(*cells))
    assert maker(column(*cells))[0][:, :4].sum() == 4
    assert len(maker.state()["columns"]) < 2000


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="must have a column that differs between rows"):
        fitted(column(1, 1))
    with pytest.raises(ValueError, match="must have a column"):
        fitted([])
    with pytest.raises(RuntimeError, match="call fit"):
        Columns()([{}])


def test_the_kinds_of_a_small_table():
    kinds = {kind.name: type(kind) for kind in fitted(MIXED).kinds}
    assert kinds == {"n": Number, "c": Category, "d": Number, "h": Category, "f": Number}
