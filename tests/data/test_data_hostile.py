"""Small files that ask for much: each is refused before memory is taken, with a limit that is stated."""

import csv
import gzip
import io
import os
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import pytest
from helpers.formats import (
    INT32,
    cifar10_binary,
    idx,
    mat,
    mat_array,
    mat_element,
    picture,
    pixels,
    svhn,
    tinyimagenet,
    write_files,
    write_idx,
)

from balent.data import arrays
from balent.data import targets as labels
from balent.data.formats import limits, matlab, pickles
from balent.data.sources import load

MB = 1 << 20


def silent(note):
    """Notes of files that are not the published ones."""


@contextmanager
def frugal(most=32 * MB, seconds=60.0):
    """What is inside takes no more memory and time than this; the defects took gigabytes or minutes."""
    tracemalloc.start()
    before = perf_counter()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
        assert perf_counter() - before < seconds
    finally:
        tracemalloc.stop()


@pytest.fixture
def small_limits(monkeypatch):
    """Bombs of megabytes instead of gigabytes."""
    monkeypatch.setattr(limits, "FLOOR", MB)


# ── .npz ─────────────────────────────────────────────────────────────────────────────────────────


def npz(path, **members):
    """Arrays, or contents of .npy files as bytes; those that are not named are valid."""
    x, y = np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in {"x_train": x, "y_train": y, "x_test": x, "y_test": y, **members}.items():
            file = io.BytesIO()
            np.save(file, member) if isinstance(member, np.ndarray) else file.write(member)
            archive.writestr(f"{name}.npy", file.getvalue())
    return str(path)


def header(shape, descr="<f4", version=1):
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize("shape", [(10**12, 2), (10**12, 10**12), (-1, 2), (3, 2), (2**40, 0, 2**40)])
def test_an_npz_whose_header_declares_other_sizes_takes_no_memory(tmp_path, shape):
    """Defect: 10¹² rows in a header of 100 bytes were allocated before anything was read."""
    path = npz(tmp_path / "f.npz", x_train=header(shape) + b"\0" * 32)
    with frugal(), pytest.raises(ValueError, match=r"f\.npz"):
        load(path)


def test_an_npz_that_unpacks_to_more_than_its_size_allows_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "LARGE", MB)
    path = npz(tmp_path / "f.npz", x_train=np.zeros((4, MB), np.float32))
    with (
        frugal(),
        pytest.raises(ValueError, match=r"f\.npz needs .* bytes of memory, more than 100 times its .*numpy\.savez"),
    ):
        load(path)


@pytest.mark.parametrize(
    "text",
    ["{'descr': '<f4'", "{" * 5000, "[1, 2]", "{'descr': '\0'}", "", "{'descr': '<f4', 'shape': (1e9,)}", "1 if"],
)
def test_headers_that_numpy_cannot_parse_are_said(tmp_path, text):
    """Defect: tokenize.TokenError, SyntaxError and RecursionError were shown as tracebacks."""
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + b"\0" * 32
    with pytest.raises(ValueError, match=r"f\.npz is not a readable \.npz file: its header"):
        load(npz(tmp_path / "f.npz", x_train=content))


@pytest.mark.parametrize("label", [10**9, limits.CLASSES, 2**62])
def test_one_label_of_a_billion_is_not_a_billion_classes(tmp_path, label):
    """Defect: classes were counted by the largest label, and the network got a row for each of them."""
    path = npz(tmp_path / "f.npz", y_train=np.array([0, 1, label, 1]))
    with pytest.raises(ValueError, match=rf"f\.npz: y_train .* at most 100,000 classes, but has {label}"):
        load(path)


def test_labels_of_64_bits_without_sign_do_not_become_negative(tmp_path):
    """Defect: 2⁶³ + 1 became -2⁶³ + 1, and 2⁶⁴ - 1 became -1: not labelled yet."""
    for label in (2**63, 2**63 + 1, 2**64 - 1):
        path = npz(tmp_path / "f.npz", y_train=np.array([0, 1, label, 1], np.uint64))
        with pytest.raises(ValueError, match=f"but has {label}"):
            load(path)


def test_points_of_pool_and_test_set_must_have_one_shape(tmp_path):
    with pytest.raises(ValueError, match=r"those of x_train have \(2,\) and those of x_test \(3,\)"):
        load(npz(tmp_path / "f.npz", x_test=np.zeros((4, 3))))


def test_an_encrypted_or_strangely_compressed_npz_is_said(tmp_path):
    """Defect: RuntimeError and NotImplementedError of zipfile."""
    path = tmp_path / "f.npz"
    npz(path)
    whole = bytearray(path.read_bytes())
    for at, value, why in ((6, 1, "encrypted|password"), (8, 99, "compression")):
        changed = bytearray(whole)
        local, central = 0, changed.index(b"PK\x01\x02")
        changed[local + at], changed[central + at + 2] = value, value
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=rf"f\.npz .*({why})"):
            load(str(path))


# ── pickles ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "program",
    [
        b"]r\xff\xff\xff\x1f.",  # remembered under number 2²⁹ - 1: 8 bytes that took 4 GB
        b"B\xff\xff\xff\x7f.",  # two gigabytes of bytes are announced
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x96\xff\xff\xff\xff\x0f\x00\x00\x00.",  # a bytearray
        b"\x8b\xff\xff\xff\x7f.",  # a number of two gigabytes
        b"I" + b"9" * 10_000 + b"\n.",
    ],
)
def test_a_pickle_of_a_few_bytes_takes_no_memory(program):
    with frugal(), pytest.raises(ValueError, match=r"pickle|should hold a dict"):
        pickles.read(program)


def test_pickles_that_contain_themselves_are_read_or_refused():
    """Defect: a list within itself ended in RecursionError."""
    loop = []
    loop.append(loop)
    for value in (loop, (loop,), {"a": loop}, [loop] * 3):
        assert list(pickles.read(pickle.dumps({"data": value}, 2))) == ["data"]
        with pytest.raises(ValueError, match=r"should hold a dict|not text"):
            pickles.read(pickle.dumps([value] if isinstance(value, dict) else value, 2))


def test_lists_of_lists_of_lists_are_not_unfolded():
    """Ten lists of ten of the last one would be 10³⁰ items; a few kilobytes as a pickle."""
    value = ["end"]
    for _ in range(30):
        value = [value] * 10
    with frugal():
        pickles.read(pickle.dumps({"data": value}, 2))


def test_text_that_occurs_often_is_decoded_once():
    """A megabyte that a list of 10,000 items refers to each time: a file of 1.03 MB that took 10 GB."""
    with frugal(most=64 * MB):
        assert len(pickles.read(pickle.dumps({"names": [b"x" * MB] * 10_000}, 3))["names"]) == 10_000


@pytest.mark.parametrize(
    "program",
    [
        b"\x80\x02}X\x04\x00\x00\x00datacnumpy\nndarray\n)\x81s.",  # an array made without its constructor
        b"\x80\x02}X\x04\x00\x00\x00datacnumpy\nndarray\n}X\x06\x00\x00\x00valuesK\x01sbs.",  # attributes of a class
        b"\x80\x02}(]K\x01u.",  # a key that cannot be one
        b"\x80\x02}(X\x01\x00\x00\x00au.",  # a key without a value
        b"\x80\x02(0.",
        b"0.",
        b"t.",
        b"h\x05.",
        b"a.",
        b"",
        b".",
    ],
)
def test_programs_that_make_no_sense_are_refused(program):
    """Defect: the first raised AttributeError; the second changed the class for all that were read after it."""
    with pytest.raises(ValueError, match=r"pickle|asks for|should hold"):
        pickles.read(program)


def test_labels_beyond_64_bits_are_refused(tmp_path):
    """Defect: OverflowError."""
    from balent.data.formats.cifar import CIFAR10

    batch = pickle.dumps({"data": pixels(1, 3072), "labels": [2**70]}, 2)
    with pytest.raises(ValueError, match="whole numbers of 64 bits"):
        CIFAR10.editions[0].batch(batch)


# ── .gz and .tar ─────────────────────────────────────────────────────────────────────────────────


def test_a_gz_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path, small_limits):
    write_idx(tmp_path)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(50 * MB)))
    with frugal(16 * MB), pytest.raises(ValueError, match=r"train-images.* would take"):
        load("mnist", tmp_path, say=silent)


def test_images_of_two_sizes_are_not_one_set(tmp_path):
    write_idx(tmp_path, packed=False)
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(idx(pixels(6, 14, 56)))
    with pytest.raises(ValueError, match=r"must have one size.*\[28, 28\].*\[14, 56\]"):
        load("mnist", tmp_path, say=silent)


def archive(path, *members, files=None):
    """The binary edition of CIFAR-10, with these members in place of their files."""
    files = cifar10_binary(1)[0] if files is None else files
    names = {os.path.basename(member.name) for member in members}
    with tarfile.open(path / "cifar-10-binary.tar.gz", "w:gz") as tar:
        for name, content in files.items():
            if name not in names:
                member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)) if member.isreg() else None)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("target", ["nowhere", "data_batch_2.bin"])
def test_links_in_an_archive_are_not_followed(tmp_path, kind, target):
    """Defect: a link to nowhere raised KeyError, one to itself RecursionError."""
    link = tarfile.TarInfo("cifar-10-batches-bin/data_batch_2.bin")
    link.type, link.linkname = kind, target
    archive(tmp_path, link)
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz.*it has no data_batch_2\.bin"):
        load("cifar10", tmp_path, say=silent)


def test_an_archive_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path, small_limits):
    bomb = tarfile.TarInfo("cifar-10-batches-bin/data_batch_2.bin")
    bomb.size = 50 * MB
    archive(tmp_path, bomb, files={})
    with frugal(16 * MB), pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz.* would take"):
        load("cifar10", tmp_path, say=silent)


@pytest.mark.parametrize("size", [-512, 2**60])
def test_sizes_in_an_archive_that_cannot_be_are_refused(tmp_path, size):
    """A size below 0 leads back to a member before: an endless loop in some versions of tarfile."""
    member = tarfile.TarInfo("cifar-10-batches-bin/other")
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = (size & (2**96 - 1)).to_bytes(12, "big") if size < 0 else b"\x80" + size.to_bytes(11, "big")
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + sum(block[156:]) + 8 * 32)
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(gzip.compress(bytes(block) + bytes(4096)))
    with (
        frugal(),
        pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz.*'cifar-10-batches-bin/other' should have"),
    ):
        load("cifar10", tmp_path, say=silent)


# ── .mat ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [np.inf, np.nan, -np.inf, 2.0])
def test_shapes_in_floating_point_numbers_are_refused(tmp_path, number):
    """Defect: a dimension of inf raised OverflowError."""
    shape = mat_element(9, struct.pack("<2d", number, 1))
    (tmp_path / "a.mat").write_bytes(mat(mat_array("X", pixels(2, 1), shape)))
    with pytest.raises(ValueError, match="written in floating-point numbers"):
        matlab.arrays(tmp_path / "a.mat", ("X",))


@pytest.mark.parametrize("shape", [[], [-1, -2], [2**31 - 1] * 4, [1] * 100])
def test_shapes_that_cannot_be_are_refused(tmp_path, shape):
    element = mat_element(INT32, struct.pack(f"<{len(shape)}i", *shape))
    (tmp_path / "a.mat").write_bytes(mat(mat_array("X", pixels(2, 1), element)))
    with frugal(), pytest.raises(ValueError, match=r"should have shape|has 100 axes"):
        matlab.arrays(tmp_path / "a.mat", ("X",))


@pytest.mark.parametrize("packed", [True, False])
def test_millions_of_empty_elements_take_no_minutes(tmp_path, packed):
    """Defect: 80 MB of zeros are 10 million elements of no contents, 80 kB if they are compressed."""
    content = mat(bytes(80 * MB), packed=True) if packed else mat(bytes(80 * MB))
    (tmp_path / "a.mat").write_bytes(content)
    with frugal(), pytest.raises(ValueError, match=r"more than 1,000 elements|should be an array"):
        matlab.arrays(tmp_path / "a.mat", ("X",))


def test_an_array_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path, small_limits):
    """One, or several that are allowed one by one."""
    array = mat_array("other", np.zeros(700_000, np.uint8))
    for bomb in (mat(mat_element(14, bytes(50 * MB)), packed=True), mat(array, array, packed=True)):
        (tmp_path / "a.mat").write_bytes(bomb)
        with frugal(16 * MB), pytest.raises(ValueError, match="should be an array of at most"):
            matlab.arrays(tmp_path / "a.mat", ("X",))


def test_the_writer_of_these_files_is_right(tmp_path):
    write_files(tmp_path, {"train_32x32.mat": svhn(4, packed=True), "test_32x32.mat": svhn(2)})
    assert load("svhn", tmp_path, say=silent).y_train.tolist() == [1, 2, 3, 4]


# ── images ───────────────────────────────────────────────────────────────────────────────────────


def png(width, height):
    """Zeros, one bit per pixel."""

    def chunk(kind, content):
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    body = zlib.compress(bytes((1 + (width + 7) // 8) * height), 9)
    head = struct.pack(">2I5B", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def test_an_image_of_a_few_bytes_and_many_pixels_is_listed_as_unreadable(tmp_path):
    """8,000 × 8,000 pixels in 8 kB; Pillow itself refuses from 13,000 × 13,000 on."""
    pytest.importorskip("PIL")
    write_files(tmp_path, {"a/bomb.png": png(8000, 8000), "a/1.png": png(8, 8)})
    with frugal(), pytest.raises(ValueError, match=r"a/bomb\.png \(TooLarge: 8,000 × 8,000 pixels are too many"):
        load(str(tmp_path), say=silent)
    data = load(str(tmp_path), skip_bad=True, say=silent)
    assert data.ids_train.tolist() == ["a/1.png"]


def test_postscript_is_no_image_whatever_its_file_is_called(tmp_path):
    """Pillow would start Ghostscript for it."""
    Image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    Image.fromarray(pixels(8, 8, 3)).save(file, "EPS")
    write_files(tmp_path, {"a/1.png": file.getvalue()})
    with pytest.raises(ValueError, match=r"a/1\.png \(UnidentifiedImageError"):
        load(str(tmp_path), say=silent)


def test_a_zip_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path, small_limits):
    files = tinyimagenet(1, 1, 1)[0]
    with zipfile.ZipFile(tmp_path / "tiny-imagenet-200.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, "train/n00000009/images/bomb.JPEG": bytes(50 * MB)}.items():
            archive.writestr(f"tiny-imagenet-200/{name}", content)
    with frugal(16 * MB), pytest.raises(ValueError, match=r"tiny-imagenet-200\.zip.* would take"):
        load("tinyimagenet", tmp_path, say=silent)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────


def test_one_long_cell_does_not_make_all_others_as_long(tmp_path):
    """Defect: numbers went through an array of text, where each cell is as long as the longest: 2 GB here."""
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("a", "label"), *((1, "x") for _ in range(5000)), ("1." + "0" * 100_000, "x")])
    with frugal():
        assert load(str(tmp_path / "t.csv"), say=silent).classes == 1


def test_what_is_wrong_with_a_long_cell_is_said_in_a_short_sentence(tmp_path):
    (tmp_path / "t.csv").write_text("a,label\n" + "y" * 100_000 + ",x\n")
    with pytest.raises(ValueError, match=r"row 1, must have a number in column 'a', but has 'yyy") as error:
        load(str(tmp_path / "t.csv"))
    assert len(str(error.value)) < 500


def test_a_parquet_file_of_many_equal_cells_is_refused(tmp_path, small_limits):
    """Equal cells take no room in it, so that a kilobyte may hold any number of rows."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": np.zeros(MB), "label": np.zeros(MB, np.int8)}), tmp_path / "t.parquet")
    with frugal(16 * MB), pytest.raises(ValueError, match=r"t\.parquet cannot be read.* would take .*numpy\.savez"):
        load(str(tmp_path / "t.parquet"))


def test_a_long_word_in_parquet_is_in_memory_once(tmp_path):
    """A megabyte of text in each of 3,000 rows, which the file holds once: 3 GB."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, np.int32)), pa.array(["x" * MB]))
    table = pa.table({"a": np.zeros(3000), "label": words.cast(pa.dictionary(pa.int32(), pa.string()))})
    parquet.write_table(table, tmp_path / "t.parquet")
    with frugal():
        assert len(load(str(tmp_path / "t.parquet"), say=silent).names[0]) == MB


def test_lists_in_parquet_are_refused(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [[1.0], [2.0]], "label": ["x", "y"]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t\.parquet.*column 'a' holds lists"):
        load(str(tmp_path / "t.parquet"))


# ── labels ───────────────────────────────────────────────────────────────────────────────────────

LARGE = ["9007199254740992", "9007199254740993", "9223372036854775808", "9223372036854775809", "18446744073709551615"]


def test_large_whole_numbers_stay_apart(tmp_path):
    """Defect: labels went through float, where 2⁵³ and 2⁵³ + 1 are one number."""
    (tmp_path / "t.csv").write_text("a,label\n" + "".join(f"1,{word}\n" for word in LARGE))
    assert load(str(tmp_path / "t.csv"), say=silent).names == tuple(LARGE)
    write_files(tmp_path / "photos", {f"{i}.png": picture((8, 8, 3)) for i in range(5)})
    rows = "".join(f"{i}.png,{word}\n" for i, word in enumerate(LARGE))
    (tmp_path / "photos" / "labels.csv").write_text("file,label\n" + rows)
    assert load(str(tmp_path / "photos"), say=silent).names == tuple(LARGE)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_large_whole_numbers_stay_apart_in_parquet(tmp_path, kind):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = [word for word in LARGE if int(word) <= np.iinfo(kind).max]
    table = {"a": np.zeros(len(words)), "label": np.array([int(word) for word in words], kind)}
    parquet.write_table(pa.table(table), tmp_path / "t.parquet")
    assert load(str(tmp_path / "t.parquet"), say=silent).names == tuple(words)


def test_numbers_of_python_are_not_numbers_of_tables():
    """Defect: 1_0 and 10 were one class. With an underscore it is a name, and names are not mixed with numbers."""
    assert labels.as_words(["1_0", "1_1"], str) == ["1_0", "1_1"]
    with pytest.raises(ValueError, match="not both, but 0 has '1_0' and 1 has '10'"):
        labels.as_words(["1_0", "10"], str)


def test_numbers_written_in_several_ways_are_one_class():
    assert labels.as_words(["1", "1.0", "01", "+1", "1e0", " 1 ", "10e-1"], str) == ["1"] * 7
    assert labels.as_words(["9007199254740993.0"], str) == ["9007199254740993"]


@pytest.mark.parametrize("word", ["1e999999999", "1e99999999999999999999", "9" * 41, "inf", "nan", "-1", "1.5", "1e-9"])
def test_what_is_no_label_is_said_without_computing_it(word):
    with frugal(), pytest.raises(ValueError, match="labels must be whole numbers 0, 1, … of up to 40 digits"):
        labels.as_words(["1", word], str)


@pytest.mark.parametrize("label", [2.0**53, np.float64(2**60), np.float32(2**24), 1e300])
def test_floating_point_labels_that_are_rounded_are_refused(label):
    """Whoever wrote them had merged them before: float32 has no 2²⁴ + 1."""
    with pytest.raises(ValueError, match="as a floating-point number, and numbers of that size are rounded"):
        labels.as_words([label], str)
    assert labels.as_words([type(label)(7)], str) == ["7"]


def test_folders_called_1_and_01_have_a_fixed_order():
    """Defect: of equal value, their order was that of a set, another in every process."""
    assert labels.class_names(["1", "01", "001"]) == ("001", "01", "1")
