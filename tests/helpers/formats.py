"""Small data sets in the formats in which large ones are published, written byte by byte."""

import gzip
import io
import struct
import tarfile
import zipfile
import zlib

import numpy as np

STEMS = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def pixels(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def idx(array):
    """The bytes of an idx file: 0, 0, 8 for bytes, number of axes, big-endian sizes, contents."""
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(place, train=12, test=6, packed=True, classes=10):
    """The four files of an MNIST; returns their arrays by the first two words of their names."""
    place.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for stem, n in zip(STEMS, (train, train, test, test), strict=True):
        array = pixels(n, 28, 28, seed=n) if "images" in stem else (np.arange(n) % classes).astype(np.uint8)
        content = idx(array)
        path = place / f"{stem}-ubyte{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(content) if packed else content)
        arrays[stem.rpartition("-")[0]] = array
    return arrays


# ── CIFAR ────────────────────────────────────────────────────────────────────────────────────────


def _string(text):
    """A str of Python 2: with one byte of length, or with four."""
    text = text if isinstance(text, bytes) else text.encode()
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<I", len(text)) + text


def _array(array):
    """An array of bytes with two axes, as numpy 1 under Python 2 pickled it."""
    start = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R("
    shape = b"".join(b"J" + struct.pack("<i", n) for n in array.shape)
    kind = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    return start + b"K\x01" + shape + b"\x86" + kind + b"\x89" + _string(array.tobytes()) + b"tb"


def _list(items):
    def item(value):
        return b"J" + struct.pack("<i", value) if isinstance(value, int) else _string(value)

    return b"](" + b"".join(map(item, items)) + b"e"


def pickled(**values):
    """A dict as Python 2 pickled it: protocol 2, all text in bytes. This is how the batches of CIFAR begin."""
    parts = [_string(key) + (_array(v) if isinstance(v, np.ndarray) else _list(v)) for key, v in values.items()]
    return b"\x80\x02}(" + b"".join(parts) + b"u."


def cifar10_python(per_batch=4):
    """Names and contents of the files of cifar-10-python.tar.gz, and all images and labels in order."""
    names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
    x, y = pixels(6 * per_batch, 3072), [i % 10 for i in range(6 * per_batch)]
    spans = [slice(i * per_batch, (i + 1) * per_batch) for i in range(6)]
    files = {name: pickled(data=x[at], labels=y[at]) for name, at in zip(names, spans, strict=True)}
    files["batches.meta"] = pickled(label_names=[f"class {i}" for i in range(10)])
    return files, x.reshape(-1, 3, 32, 32), y


def cifar10_binary(per_batch=4):
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    x, y = pixels(6 * per_batch, 3072), [i % 10 for i in range(6 * per_batch)]
    rows = [bytes([label]) + row.tobytes() for row, label in zip(x, y, strict=True)]
    files = {name: b"".join(rows[i * per_batch : (i + 1) * per_batch]) for i, name in enumerate(names)}
    files["batches.meta.txt"] = "".join(f"class {i}\n" for i in range(10)).encode() + b"\n"
    return files, x.reshape(-1, 3, 32, 32), y


def write_files(place, files):
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_tar(path, folder, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


# ── images ───────────────────────────────────────────────────────────────────────────────────────


def picture(shape=(64, 64, 3), seed=0, kind="PNG", mode=None):
    """The bytes of an image file with random pixels."""
    from PIL import Image

    image = Image.fromarray(pixels(*shape, seed=seed))
    file = io.BytesIO()
    (image if mode is None else image.convert(mode)).save(file, kind)
    return file.getvalue()


def tinyimagenet(classes=3, each=4, validation=5):
    """Files of a tiny TinyImageNet: classes as WordNet ids, not in order in wnids.txt."""
    wnids = [f"n{9 - i:08d}" for i in range(classes)]
    files = {"wnids.txt": "\n".join(wnids).encode()}
    for c, wnid in enumerate(wnids):
        files[f"train/{wnid}/{wnid}_boxes.txt"] = b"boxes"
        for i in range(each):
            files[f"train/{wnid}/images/{wnid}_{i}.JPEG"] = picture(seed=10 * c + i, kind="JPEG")
    rows = []
    for i in range(validation):
        files[f"val/images/val_{i}.JPEG"] = picture(seed=1000 + i, kind="JPEG")
        rows.append(f"val_{i}.JPEG\t{wnids[i % classes]}\t0\t0\t62\t62\n")
    files["val/val_annotations.txt"] = "".join(rows).encode()
    files["test/images/test_0.JPEG"] = picture(kind="JPEG")
    return files, sorted(wnids)


def write_zip(path, folder, files):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/train/", b"")
        for name, content in files.items():
            archive.writestr(f"{folder}/{name}", content)


# ── MATLAB ───────────────────────────────────────────────────────────────────────────────────────

BYTES, INT32, UINT32, MATRIX, COMPRESSED = 2, 5, 6, 14, 15


def mat_element(kind, content):
    return struct.pack("<2I", kind, len(content)) + content + b"\0" * (-len(content) % 8)


def mat_array(name, array, shape=None):
    """An array of bytes; `shape` is an element that is written in place of its own."""
    flags = mat_element(UINT32, struct.pack("<2I", 9, 0))
    shape = shape or mat_element(INT32, struct.pack(f"<{array.ndim}i", *array.shape))
    parts = flags, shape, mat_element(1, name.encode()), mat_element(BYTES, array.tobytes("F"))
    return mat_element(MATRIX, b"".join(parts))


def mat(*elements, packed=False):
    """A file of version 5. Elements are padded, compressed ones are not."""

    def compressed(element):
        content = zlib.compress(element)
        return struct.pack("<2I", COMPRESSED, len(content)) + content

    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + b"".join(map(compressed, elements) if packed else elements)


def svhn(images, packed=False, seed=0):
    x, y = pixels(32, 32, 3, images, seed=seed), (np.arange(images) % 10 + 1).astype(np.uint8)[:, None]
    return mat(mat_array("X", x), mat_array("y", y), packed=packed)
