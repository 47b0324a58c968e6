"""Files of probabilities: the same draws from every format, and files that are not what they should be."""

import resource
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from helpers.examples import probabilities
from helpers.long_form import long_form, write_csv, write_parquet
from numpy.lib import format as npy
from pyarrow import parquet

from balent import Draws, adapt
from balent.acquisition.engines.local import Local
from balent.data.pool import Indexed
from balent.data.probabilities import COLUMNS, read

P = probabilities(7, 4, 3).numpy()


def whole(source):
    return np.concatenate([source.window(i, i + 1) for i in range(len(source))])


# ── the same draws from every format ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f8"])
def test_an_npy_is_read_as_it_was_saved(tmp_path, dtype):
    np.save(tmp_path / "p.npy", P.astype(dtype))
    source = read(tmp_path / "p.npy")
    assert source.shape == (7, 4, 3)
    assert len(source) == 7
    assert np.array_equal(whole(source), P.astype(dtype))
    assert source.name(5) == 5


def test_an_npy_in_fortran_order_is_read_as_it_was_saved(tmp_path):
    np.save(tmp_path / "p.npy", np.asfortranarray(P))
    assert np.array_equal(whole(read(tmp_path / "p.npy")), P)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(tmp_path, version):
    with (tmp_path / "p.npy").open("wb") as file:
        npy.write_array(file, P, version=version)
    assert np.array_equal(whole(read(tmp_path / "p.npy")), P)


@pytest.mark.parametrize("points", [1, 2, 3, 7, 100])
def test_blocks_follow_each_other_through_the_pool(tmp_path, points, monkeypatch):
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", points * 12)
    np.save(tmp_path / "p.npy", P)
    drawn = Draws(read(tmp_path / "p.npy"))
    found = [(int(at[0]), rows) for at, rows in Local().stream(drawn, Indexed(np.arange(7)), adapt.draws)]
    block = 1 << points.bit_length() - 1  # a power of 2: blocks divide the spans of a cluster
    assert [start for start, _ in found] == list(range(0, 7, block))
    assert max(len(rows) for _, rows in found) == min(block, 7)
    assert np.array_equal(np.concatenate([block for _, block in found]), P)


def test_a_window_of_an_npy_is_mapped_not_loaded(tmp_path):
    np.save(tmp_path / "p.npy", P)
    window = read(tmp_path / "p.npy").window(2, 4)
    assert isinstance(window, np.memmap)
    assert not window.flags.writeable
    assert window.nbytes == 2 * 12 * 8


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_only_array_of_an_npz_is_read_and_any_by_its_key(tmp_path, save):
    save(tmp_path / "one.npz", p=P)
    save(tmp_path / "two.npz", p=P, q=P[::-1])
    assert np.array_equal(whole(read(tmp_path / "one.npz")), P)
    assert np.array_equal(whole(read(tmp_path / "two.npz", key="q")), P[::-1])


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_long_form_may_be_in_any_order(tmp_path, write):
    rows = long_form(P)
    np.random.default_rng(0).shuffle(rows)
    source = read(write(tmp_path / f"p.{write.__name__[6:]}", [(int(i), int(k), int(c), v) for i, k, c, v in rows]))
    assert np.array_equal(whole(source), P)
    assert [source.name(i) for i in range(7)] == list(range(7))


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_numbers_are_ordered_as_numbers(tmp_path, write):
    """Point 10 comes after 9, as in an array, and not between 1 and 2."""
    points = [9, 10, 100, 2, 1, 0, 11]
    source = read(write(tmp_path / f"p.{write.__name__[6:]}", long_form(P, points)))
    assert [source.name(i) for i in range(7)] == sorted(points)
    assert np.array_equal(whole(source), P[np.argsort(points)])


@pytest.mark.parametrize("write", [write_csv, write_parquet])
@pytest.mark.parametrize(
    "points",
    [
        ["a.png", "b b.png", "c,d.png", 'e".png', "x.png", "z.png", "ü.png"],
        ["001", "002", "003", "004", "005", "006", "007"],
    ],
)
def test_points_keep_the_names_and_the_order_that_they_have(tmp_path, write, points):
    source = read(write(tmp_path / f"p.{write.__name__[6:]}", long_form(P, points)))
    assert [source.name(i) for i in range(7)] == points
    assert np.array_equal(whole(source), P)


def test_a_csv_may_have_more_columns_spaces_empty_lines_and_a_mark_of_byte_order(tmp_path):
    lines = ["note, probability ,class,draw,point", *(f"x,{v},{c},{k},{i}" for i, k, c, v in long_form(P)), "", ""]
    (tmp_path / "p.csv").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    assert np.array_equal(whole(read(tmp_path / "p.csv")), P)


def test_the_suffix_may_be_in_capitals(tmp_path):
    np.save(tmp_path / "p.npy", P)
    (tmp_path / "p.npy").rename(tmp_path / "P.NPY")
    assert np.array_equal(whole(read(tmp_path / "P.NPY")), P)


# ── files that are not what they should be ───────────────────────────────────────────────────────


def refused(path, words, error=ValueError, key=None):
    with pytest.raises(error, match=words) as e:
        read(path, key)
    return str(e.value)


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "p.npy", "there is no file .*p.npy", FileNotFoundError)


def test_a_kind_of_file_that_nobody_reads(tmp_path):
    (tmp_path / "p.nyp").touch()
    refused(tmp_path / "p.nyp", r"there is no reader for files ending in '.nyp'; did you mean .npz or .npy")


def test_an_npy_that_is_none(tmp_path):
    (tmp_path / "p.npy").write_bytes(b"point,draw,class,probability")
    refused(tmp_path / "p.npy", "p.npy is not a readable .npy file")


def test_an_empty_npy(tmp_path):
    (tmp_path / "p.npy").touch()
    refused(tmp_path / "p.npy", "p.npy is not a readable .npy file")


def test_an_npy_whose_header_is_cut(tmp_path):
    np.save(tmp_path / "p.npy", P)
    (tmp_path / "p.npy").write_bytes((tmp_path / "p.npy").read_bytes()[:40])
    refused(tmp_path / "p.npy", "p.npy is not a readable .npy file")


def test_a_truncated_npy_says_what_is_missing(tmp_path):
    np.save(tmp_path / "p.npy", P)
    data = (tmp_path / "p.npy").read_bytes()
    (tmp_path / "p.npy").write_bytes(data[:-100])
    refused(
        tmp_path / "p.npy", f"p.npy is truncated: {len(data)} bytes were expected, but it has {len(data) - 100}; copy"
    )


class Trap:
    """Pickled, it would run code when it is read."""

    def __reduce__(self):
        return sys.exit, ("the pickle was run",)


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_python_objects_are_never_unpickled(tmp_path, suffix):
    """A pickle of untrusted origin runs whatever it likes."""
    path = tmp_path / f"p.{suffix}"
    trap = np.array([Trap()], dtype=object)
    np.save(path, trap) if suffix == "npy" else np.savez(path, p=trap)
    refused(path, rf"p.{suffix}.* holds Python objects, which are never unpickled")


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 2, 2, 2)])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_an_array_of_other_axes(tmp_path, shape, suffix):
    path = tmp_path / f"p.{suffix}"
    np.save(path, np.zeros(shape)) if suffix == "npy" else np.savez(path, p=np.zeros(shape))
    message = refused(path, r"three axes \[pool, draws, classes\]")
    assert str(shape) in message


@pytest.mark.parametrize(("shape", "what"), [((0, 4, 3), "points"), ((4, 0, 3), "draws"), ((4, 3, 0), "classes")])
def test_an_empty_array(tmp_path, shape, what):
    np.save(tmp_path / "p.npy", np.zeros(shape))
    refused(tmp_path / "p.npy", f"must not be empty, but have no {what}")


def test_an_npz_of_several_arrays_asks_which(tmp_path):
    np.savez(tmp_path / "p.npz", probs=P, labels=np.zeros(3))
    refused(tmp_path / "p.npz", "p.npz holds 2 arrays .probs, labels.; choose one with --column")
    refused(tmp_path / "p.npz", "p.npz has no array 'prob'; did you mean probs", key="prob")


def test_an_npz_of_nothing(tmp_path):
    np.savez(tmp_path / "p.npz")
    refused(tmp_path / "p.npz", "p.npz holds no array")


@pytest.mark.parametrize("content", [b"", b"no archive at all", b"\x80\x04K\x01."])
def test_an_npz_that_is_none(tmp_path, content):
    """numpy takes it for a pickle and says how to load that unsafely; we do not."""
    (tmp_path / "p.npz").write_bytes(content)
    assert "pickle" not in refused(tmp_path / "p.npz", "p.npz is not a readable .npz file")


def test_an_npz_that_is_an_npy(tmp_path):
    np.save(tmp_path / "p.npy", P)
    (tmp_path / "p.npy").rename(tmp_path / "p.npz")
    refused(tmp_path / "p.npz", "p.npz is not a readable .npz file")


def test_a_truncated_npz(tmp_path):
    np.savez(tmp_path / "p.npz", p=P)
    (tmp_path / "p.npz").write_bytes((tmp_path / "p.npz").read_bytes()[:-200])
    refused(tmp_path / "p.npz", "p.npz is not a readable .npz file")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_npz(tmp_path, save):
    save(tmp_path / "p.npz", p=P)
    data = bytearray((tmp_path / "p.npz").read_bytes())
    for i in range(200, 210):
        data[i] ^= 0xFF
    (tmp_path / "p.npz").write_bytes(bytes(data))
    refused(tmp_path / "p.npz", "p.npz is not a readable .npz file")


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_missing_combination_is_named(tmp_path, write):
    rows = [row for row in long_form(P, list("abcdefg")) if row[:3] != ("d", 2, 1)]
    path = write(tmp_path / f"p.{write.__name__[6:]}", rows)
    refused(path, "one row for each point, draw and class, but point d, draw 2, class 1 is missing")


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_combination_that_comes_twice_is_named(tmp_path, write):
    rows = [*long_form(P, list("abcdefg")), ("e", 0, 2, "0.5")]
    path = write(tmp_path / f"p.{write.__name__[6:]}", rows)
    refused(path, "one row for each point, draw and class, but point e, draw 0, class 2 occurs more than once")


def test_missing_columns_are_named(tmp_path):
    path = write_csv(tmp_path / "p.csv", [], header=("point", "draw", "p"))
    refused(path, "must have the columns point, draw, class, probability, but lacks class, probability")
    parquet.write_table(pa.table({"point": [1], "class": [0], "probability": [1.0]}), tmp_path / "p.parquet")
    refused(tmp_path / "p.parquet", "must have the columns point, draw, class, probability, but lacks draw")


def test_a_csv_with_a_header_and_nothing_else(tmp_path):
    refused(write_csv(tmp_path / "p.csv", []), "must not be empty, but have no points")


def test_an_empty_csv(tmp_path):
    (tmp_path / "p.csv").touch()
    refused(tmp_path / "p.csv", "lacks point, draw, class, probability")


def test_a_short_row_is_named_by_its_line(tmp_path):
    (tmp_path / "p.csv").write_text("point,draw,class,probability\n0,0,0,1\n0,0\n")
    refused(tmp_path / "p.csv", "a row with fewer cells than its header, near line 3")


def test_a_probability_that_is_a_word(tmp_path):
    path = write_csv(tmp_path / "p.csv", [(0, 0, 0, "half"), (0, 0, 1, "0.5")])
    refused(path, "p.csv must have numbers in the column probability: .*half")


def test_a_csv_that_is_no_text(tmp_path):
    (tmp_path / "p.csv").write_bytes(b"point,draw,class,probability\n\xff\xfe,0,0,1\n")
    refused(tmp_path / "p.csv", "p.csv is not a readable .csv file")


def test_a_parquet_that_is_none(tmp_path):
    (tmp_path / "p.parquet").write_bytes(b"no parquet at all")
    refused(tmp_path / "p.parquet", "p.parquet is not a readable parquet file")


def test_without_pyarrow_parquet_says_what_to_install(tmp_path, monkeypatch):
    write_parquet(tmp_path / "p.parquet", long_form(P))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(tmp_path / "p.parquet", r"parquet files need pyarrow; install it with: pip install 'balent\[parquet\]'")


# ── memory from small files ──────────────────────────────────────────────────────────────────────


@pytest.fixture
def little_memory():
    """1 GB beyond what this process has: more cannot be allocated, so a test that fails does not take the machine's."""
    if not sys.platform.startswith("linux"):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_long_table_with_a_combination_missing_is_refused_before_it_is_allocated(tmp_path, write, little_memory):
    """Defect: 3,000 rows of 3,000 points × 3,000 draws × 3,000 classes took 201 GiB."""
    path = write(tmp_path / f"p.{write.__name__[6:]}", [(i, i, i, "1.0") for i in range(3000)])
    refused(
        path, "point 0, draw 0, class 1 is missing: it has 3,000 rows for 3,000 points × 3,000 draws × 3,000 classes"
    )


def test_more_combinations_than_can_be_numbered_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("balent.data.probabilities.LARGEST", 26)
    path = write_csv(tmp_path / "p.csv", [(i, i, i, "1.0") for i in range(3)])
    refused(path, "but has 3 rows for 3 points × 3 draws × 3 classes")


def test_one_long_name_does_not_make_all_names_long(tmp_path, little_memory):
    """An array of text is as wide as its longest: here 8 GB for 100 kB of text."""
    rows = [(f"p{i}", 0, c, "0.5") for i in range(10_000) for c in (0, 1)]
    source = read(write_csv(tmp_path / "p.csv", [("n" * 100_000, 0, c, "0.5") for c in (0, 1)] + rows))
    assert len(source) == 10_001


def test_a_parquet_file_of_very_many_equal_rows_is_refused(tmp_path, monkeypatch):
    """A thousand million equal rows fit into a few kB."""
    monkeypatch.setattr("balent.data.arrays.LARGE", 1 << 16)
    path = write_parquet(tmp_path / "p.parquet", [(1, 1, 1, "1.0")] * 100_000)
    refused(path, "p.parquet needs 3,200,000 bytes of memory")


# ── names and numbers ────────────────────────────────────────────────────────────────────────────


def test_names_that_are_large_numbers_do_not_merge(tmp_path):
    """uint64 from 2⁶³ on became negative."""
    names = [2**63, 2**63 + 1, 5, 2**53, 2**53 + 1, 6, 7]
    table = {"point": np.repeat(np.array(names, np.uint64), 12), "draw": np.tile(np.repeat(np.arange(4), 3), 7)}
    table |= {"class": np.tile(np.arange(3), 28), "probability": P.reshape(-1)}
    parquet.write_table(pa.table(table), tmp_path / "p.parquet")
    for path in (tmp_path / "p.parquet", write_csv(tmp_path / "p.csv", long_form(P, names))):
        source = read(path)
        assert [int(source.name(i)) for i in range(7)] == sorted(names)
        assert np.array_equal(whole(source), P[sorted(range(7), key=names.__getitem__)])


def test_numbers_that_are_written_in_two_ways_stay_two_names(tmp_path):
    names = ["1_0", "10", "010", "1e1", "+10", "10.0", "-0"]
    source = read(write_csv(tmp_path / "p.csv", long_form(P, names)))
    assert [source.name(i) for i in range(7)] == sorted(names)


def test_formulas_among_the_names_are_read_as_we_write_them(tmp_path):
    source = read(write_csv(tmp_path / "p.csv", long_form(P, ["'=a", "''=b", "'c", "d", "e", "f", "-g"])))
    assert {source.name(i) for i in range(7)} == {"=a", "'=b", "'c", "d", "e", "f", "-g"}


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.large_string()])
def test_names_of_every_type_of_text(tmp_path, kind):
    rows = list(zip(*long_form(P, list("gfedcba")), strict=True))
    table = {"point": pa.array(rows[0], pa.string()).cast(kind), "draw": rows[1], "class": rows[2]}
    parquet.write_table(pa.table({**table, "probability": [float(v) for v in rows[3]]}), tmp_path / "p.parquet")
    assert np.array_equal(whole(read(tmp_path / "p.parquet")), P[::-1])


# ── columns ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ({"point": pa.array([None, 1])}, "the column point has 1 empty"),
        ({"point": pa.array([np.nan, 1.0])}, "by finite numbers or names, but one is NaN or infinite"),
        ({"point": pa.array([0, 1], pa.timestamp("s"))}, r"numbers or names in the column point, but has timestamp"),
        ({"class": pa.array([[0], [1]])}, "numbers or names in the column class, but has list"),
        ({"probability": pa.array(["a", "b"])}, "numbers in the column probability, but has text"),
        ({"probability": pa.array([0.5, None])}, "the column probability has 1 empty"),
    ],
)
def test_columns_of_a_parquet_file_that_are_none(tmp_path, column, words):
    table = {"point": [0, 1], "draw": [0, 0], "class": [0, 0], "probability": [1.0, 1.0], **column}
    parquet.write_table(pa.table(table), tmp_path / "p.parquet")
    refused(tmp_path / "p.parquet", words)


def test_a_column_that_is_there_twice(tmp_path):
    """Defect: the first one won in a CSV, and parquet gave a KeyError."""
    refused(write_csv(tmp_path / "p.csv", [], (*COLUMNS, "draw")), "must have one column draw, but has 2")
    table = pa.Table.from_arrays([pa.array([1.0])] * 5, names=[*COLUMNS, "draw"])
    parquet.write_table(table, tmp_path / "p.parquet")
    refused(tmp_path / "p.parquet", "must have one column draw, but has 2")


def test_an_array_of_whole_numbers_is_refused_when_it_is_read(tmp_path):
    np.save(tmp_path / "p.npy", np.zeros((3, 4, 5), dtype=np.int64))
    refused(tmp_path / "p.npy", "must be float16, float32 or float64, but are int64", TypeError)
