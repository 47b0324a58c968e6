"""Arrays in files: read as numpy saved them, and refused in words where the file is not what it says."""

import ast
import io
import struct
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from balent.data import arrays

X = np.arange(24, dtype=np.float32).reshape(4, 3, 2)


def header(shape="(4, 3, 2)", descr="'<f4'", order="False", spaces=0):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}{' ' * spaces}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")


def npy(tmp_path, content):
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    return path


def npz(tmp_path, content, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", compression) as archive:
        archive.writestr("x.npy", content)
    return tmp_path / "x.npz"


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# ── as numpy saved them ──────────────────────────────────────────────────────────────────────────


@given(
    arrays_of.arrays(
        st.sampled_from(["<f4", ">f8", "<i2", ">u4", "?", "<c8", "<U3", "S2"]),
        arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    st.booleans(),
)
def test_what_numpy_saves_is_read_back(tmp_path_factory, x, fortran):
    x = np.asfortranarray(x) if fortran else x
    place = tmp_path_factory.mktemp("arrays")
    for path in (npy(place, saved(x)), npz(place, saved(x))):
        found = arrays.read(path)
        assert found.dtype == x.dtype
        assert found.shape == x.shape
        assert found.tobytes() == x.tobytes()


def test_an_npy_is_mapped_and_an_npz_is_found_by_content_or_name(tmp_path):
    assert isinstance(arrays.npy(npy(tmp_path, saved(X))), np.memmap)
    npz(tmp_path, saved(X)).rename(tmp_path / "x.data")
    assert (arrays.read(tmp_path / "x.data") == X).all()


@pytest.mark.parametrize("spaces", range(8))
def test_a_header_of_odd_length_gives_aligned_numbers(tmp_path, spaces):
    """Defect: doubles were loaded from odd addresses, which C++ does not define."""
    x = X.astype("<f8")
    path = npy(tmp_path, header(descr="'<f8'", spaces=spaces) + x.tobytes())
    whole, rows = arrays.npy(path), arrays.stored(path).rows(1, 3)
    assert whole.flags.aligned
    assert rows.flags.aligned
    assert (whole == x).all()
    assert (rows == x[1:3]).all()


def test_numbers_of_python_2_are_read(tmp_path):
    assert (arrays.npy(npy(tmp_path, header("(4L, 3L, 2L)") + X.tobytes())) == X).all()


# ── files that are not what they say ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a readable .npy file: it begins with b''"),
        (b"\x93NUMPY\x01", "not a readable .npy file"),
        (b"\x93NUMPY\x09\x00" + bytes(100), "not a readable .npy file: it begins with"),
        (b"\x93NUMPY\x02\x00" + b"\xff" * 4, "its header has 4,294,967,295 bytes"),
        (header()[:40], "its header is cut off"),
        (header("(4, 3, 2"), "not a readable"),
        (header("(4, -3, 2)"), r"its header declares the shape \(4, -3, 2\)"),
        (header("(4, True, 2)"), "its header declares the shape"),
        (header("[4, 3, 2]"), "its header declares the shape"),
        (header("(0, 1000000000000, 1000000000000)"), "its header declares the shape"),
        (header("(" + "1, " * 70 + ")"), "its header declares the shape"),
        (header("(" * 200 + ")" * 200), "not a readable"),
        (header(order="1"), "fortran_order in its header must be True or False"),
        (header(descr="'<q99'"), "not a readable"),
        (header(descr="'|O'"), "x.npy holds Python objects, which are never unpickled"),
        (header(descr="'<M8[s]'"), "x.npy must hold an array of numbers, but holds datetime64"),
        (header(descr="'V0'"), "must hold an array of numbers"),
        (header(descr="[('a', '<f4')]"), "must hold an array of numbers"),
        (header(descr="'(9,)f4'"), "must hold an array of numbers"),
        (b"\x93NUMPY\x01\x00\x03\x00'''", "not a readable"),  # TokenError in numpy
        (header("(1000000000000, 3, 2)"), "x.npy is truncated: 24,000,000,000,0.* bytes were expected"),
        (header() + X.tobytes()[:-1], "is truncated"),
        (header("(3, 3, 2)") + X.tobytes(), "is damaged: .* bytes were expected, but it has .*; copy it again"),
    ],
)
def test_an_npy_that_is_not_what_it_says(tmp_path, content, words):
    with pytest.raises(ValueError, match=words):
        arrays.npy(npy(tmp_path, content))


def test_an_npz_header_of_a_million_million_rows_is_refused_before_anything_is_allocated(tmp_path):
    """Defect: numpy allocates what the header says, here 21.8 TiB, before it looks whether the bytes are there."""
    with pytest.raises(ValueError, match=r"x\.npz, array 'x', is truncated: 24,000,000,000,0.* bytes were expected"):
        arrays.npz(npz(tmp_path, header("(1000000000000, 3, 2)") + X.tobytes()))


def test_a_decompression_bomb_is_refused_by_its_ratio(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "LARGE", 1 << 20)
    zeros = npz(tmp_path, saved(np.zeros(1 << 18)))
    with pytest.raises(ValueError, match=r"needs 2,097,152 bytes of memory, more than 100 times its .*numpy\.savez"):
        arrays.npz(zeros)
    rough = np.random.default_rng(0).random(1 << 18)
    assert (arrays.npz(npz(tmp_path, saved(rough))) == rough).all()


def test_a_small_file_may_take_much_memory_up_to_a_limit(tmp_path):
    assert not arrays.npz(npz(tmp_path, saved(np.zeros(1 << 20)))).any()


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_that_numpy_never_uses(tmp_path, compression):
    with pytest.raises(ValueError, match="a compression that numpy never uses"):
        arrays.npz(npz(tmp_path, saved(X), compression))


def test_an_encrypted_npz(tmp_path):
    """Defect: a RuntimeError of zipfile."""
    path = npz(tmp_path, saved(X))
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is not a readable \.npz file: .* is encrypted"):
        arrays.npz(path)


def test_a_flipped_bit_in_an_npz_is_noticed(tmp_path):
    path = npz(tmp_path, saved(X), zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    content[content.index(X.tobytes()) + 5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="Bad CRC-32"):
        arrays.npz(path)


def test_an_array_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    """Defect: balent acquire answered a wrong --key with a KeyError."""
    with pytest.raises(ValueError, match="has no array 'y'; choose from x"):
        arrays.npz(npz(tmp_path, saved(X)), "y")
    np.savez(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="it is empty"):
        arrays.npz(tmp_path / "none.npz", "y")


def test_threads_parse_one_header_at_a_time(tmp_path, monkeypatch):
    """Regression: CPython 3.11 raised "AST constructor recursion depth mismatch" where two threads parsed at once."""
    within, most, parse = [], [], ast.literal_eval

    def slow(text):
        within.append(text)
        time.sleep(0.001)
        most.append(len(within))
        within.pop()
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", slow)
    path = npy(tmp_path, saved(X))
    with ThreadPoolExecutor(8) as threads:
        shapes = list(threads.map(lambda _: arrays.stored(path).header.shape, range(32)))
    assert set(shapes) == {X.shape}
    assert max(most) == 1
