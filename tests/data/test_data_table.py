"""Tables of numbers: CSV and parquet say the same, and what is wrong with a cell is said with its row."""

import pytest
import torch

from balent.data.sources import load

ROWS = {
    "a": [0.5, 1.0, 2.0, 3.5, -4.0, 5.0],
    "b": [1, 2, 3, 4, 5, 6],
    "label": ["x", "y", "x", None, "y", "x"],
    "split": ["train", "train", "train", "train", "test", "test"],
}


def write(path, columns):
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    else:
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def read(path):
    said = []
    return load(path, say=said.append), said


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_are_points(tmp_path, ending, monkeypatch):
    data, said = read(write(tmp_path / f"t.{ending}", ROWS))
    assert data.x_train.tolist() == [[0.5, 1], [1, 2], [2, 3], [3.5, 4]]
    assert data.x_test.tolist() == [[-4, 5], [5, 6]]
    assert data.y_train.tolist() == [0, 1, 0, -1]
    assert data.y_test.tolist() == [1, 0]
    assert (data.names, data.image, data.x_train.dtype) == (("x", "y"), None, torch.float32)
    assert said == ["1 of 6 points have no label"]
    monkeypatch.chdir(tmp_path)
    assert torch.equal(read(f"t.{ending}")[0].x_train, data.x_train)  # from the cache
    assert len([path for path in (tmp_path / ".balent-cache").iterdir() if path.is_dir()]) == 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("labels", [[3, 1, 1, 3] * 10, [3.0, 1.0, 1.0, 3.0] * 10], ids=["int", "float"])
def test_whole_numbers_are_classes_in_order_of_value_and_one_in_five_tests(tmp_path, ending, labels):
    data, said = read(write(tmp_path / f"t.{ending}", {"a": list(range(40)), "class": labels}))
    assert data.names == ("1", "3")
    assert data.y_train.bincount().tolist() == [16, 16]
    assert data.y_test.bincount().tolist() == [4, 4]
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        assert [int(labels[int(i)]) for i in x[:, 0]] == [(1, 3)[c] for c in y]
    assert "one in 5" in said[0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"label": ["x", "y", "x", "1", "y", "x"]}, "not both, but .* row 1, has 'x' and .* row 4, has '1'"),
        ({"label": [0, 1, 0, 1.5, 1, 0]}, r"row 4, has '1\.5'"),
        ({"label": [0, 1, 0, -1, 1, 0]}, r"row 4, has '-1(\.0)?'; leave it empty"),
        ({"label": ["x", "x", "x", "x", "z", "x"]}, "row 5, is of class 'z' in the test set.*classes there are x$"),
        ({"label": ["x", "x", "x", "x", None, "x"]}, "a test set needs labels, but .* row 5, has none"),
        ({"a": ["0", "1", "two", "3", "4", "5"]}, "row 3, must have a number in column 'a', but has 'two'"),
        ({"b": [0.0, 1.0, None, 3.0, 4.0, 5.0]}, "row 3, must have a number in column 'b'"),
        ({"b": [0.0, float("inf"), 0.0, 3.0, 4.0, 5.0]}, "row 2, must have a number in column 'b'"),
        ({"split": ["train"] * 5 + ["later"]}, "a split is train or test, but .* row 6, has 'later'"),
    ],
)
def test_what_is_wrong_with_a_cell_is_said(tmp_path, ending, changes, why):
    with pytest.raises(ValueError, match=why):
        read(write(tmp_path / f"t.{ending}", ROWS | changes))


def test_what_is_wrong_with_a_table_is_said(tmp_path):
    path = tmp_path / "t.csv"
    with pytest.raises(FileNotFoundError, match=r"there is no file .*t\.csv"):
        read(str(path))
    for text, why in (
        ("a,b\n1,2\n", "must have a column label or class or target or y, but has a, b"),
        ("a,label\n1,2\n1\n", "line 3, has 1 cells, but the header has 2"),
        ("a,a,label\n1,2,3\n", "two columns of one name"),
        ("a,label\n", "must have rows"),
        ("label\n1\n", "columns of numbers besides 'label'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=why):
            read(str(path))
    path.write_bytes(b"a,label\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match="line 2, is not UTF-8"):
        read(str(path))
    (tmp_path / "t.parquet").write_bytes(b"not parquet")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        read(str(tmp_path / "t.parquet"))
