"""Files that a person names for results: complete or as before, and never another file than the one named."""

import errno
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers.examples import probabilities

from balent.data import outputs
from balent.data.outputs import whole
from balent.loop import journal as records


def write(path, text="new"):
    with whole(path) as partial:
        partial.write_text(text)


def fail(path):
    with whole(path) as partial:
        partial.write_text("half")
        raise KeyError


def names(directory):
    return sorted(path.name for path in directory.iterdir())


# ── a file appears complete, or not at all ───────────────────────────────────────────────────────


def test_a_file_appears_when_it_is_complete_and_nothing_else_is_left(tmp_path):
    with whole(tmp_path / "out.csv") as partial:
        partial.write_text("new")
        assert not (tmp_path / "out.csv").exists()
    assert (tmp_path / "out.csv").read_text() == "new"
    assert names(tmp_path) == ["out.csv"]


def test_an_error_on_the_way_leaves_all_as_it_was(tmp_path):
    (tmp_path / "out.csv").write_text("old")
    with pytest.raises(KeyError):
        fail(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old"
    assert names(tmp_path) == ["out.csv"]


def test_the_longest_name_that_a_file_can_have_can_be_written(tmp_path):
    """Defect: `.partial` behind the name made it too long for the file system."""
    write(tmp_path / ("n" * 255))
    assert names(tmp_path) == ["n" * 255]


# ── what it must not replace ─────────────────────────────────────────────────────────────────────


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path):
    """Defect: -o replaced a symbolic link, and the file that it points to stayed old."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.csv").write_text("old")
    (tmp_path / "out.csv").symlink_to("far/real.csv")
    write(tmp_path / "out.csv")
    assert os.readlink(tmp_path / "out.csv") == "far/real.csv"
    assert (tmp_path / "far" / "real.csv").read_text() == "new"
    assert names(tmp_path / "far") == ["real.csv"]


def test_a_link_to_nothing_yet_makes_its_target(tmp_path):
    (tmp_path / "out.csv").symlink_to(tmp_path / "later.csv")
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").is_symlink()
    assert (tmp_path / "later.csv").read_text() == "new"


def test_links_in_a_circle_are_refused_and_stay(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write(tmp_path / "a")
    assert names(tmp_path) == ["a", "b"]


def test_a_partial_file_of_the_user_is_neither_used_nor_deleted(tmp_path):
    """Defect: the user's own out.csv.partial was overwritten and deleted."""
    (tmp_path / "out.csv.partial").write_text("mine")
    write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv.partial").read_text() == "mine"


def test_a_planted_link_does_not_let_its_target_be_overwritten(tmp_path):
    """Defect: whoever may write to the directory planted out.csv.partial -> victim, and the victim was overwritten."""
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "out.csv.partial").symlink_to(tmp_path / "victim")
    write(tmp_path / "out.csv")
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "out.csv").read_text() == "new"


@pytest.mark.parametrize("plant", [os.symlink, lambda _, path: path.write_text("taken")])
def test_even_a_foreseen_name_is_not_followed(tmp_path, monkeypatch, plant):
    """O_EXCL refuses what is there already, a link too, should somebody guess 64 random bits."""
    monkeypatch.setattr("balent.data.outputs.secrets.token_hex", lambda _: "guessed")
    (tmp_path / "victim").write_text("precious")
    plant(tmp_path / "victim", tmp_path / ".out.csv.guessed.partial")
    with pytest.raises(FileExistsError):
        write(tmp_path / "out.csv")
    assert (tmp_path / "victim").read_text() == "precious"
    assert names(tmp_path) == [".out.csv.guessed.partial", "victim"]


def test_a_directory_is_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a directory"):
        write(tmp_path)


def test_modes_are_kept_and_new_files_follow_the_umask(tmp_path):
    (tmp_path / "secret.csv").write_text("old")
    (tmp_path / "secret.csv").chmod(0o640)
    write(tmp_path / "secret.csv")
    assert stat.S_IMODE((tmp_path / "secret.csv").stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write(tmp_path / "new.csv")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o640


def test_a_file_that_must_not_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    """Renaming needs no permission for the file that it replaces."""
    (tmp_path / "out.csv").write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write to everything
    with pytest.raises(PermissionError, match=r"out\.csv is not writeable"):
        write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "old"


# ── devices, FIFOs, standard output ──────────────────────────────────────────────────────────────


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device nodes")
def test_a_device_stays_a_device(tmp_path):
    """Defect: -o /dev/null as root made a file of the device node, for every process of the machine."""
    null = tmp_path / "null"
    try:
        os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        null.write_text("")
    except PermissionError:
        pytest.skip("device nodes cannot be used here")
    write(null)
    assert stat.S_ISCHR(null.stat().st_mode)
    assert names(tmp_path) == ["null"]


def test_the_null_device_takes_everything(tmp_path):
    before = os.stat("/dev/null")
    write(outputs.Path("/dev/null"))
    assert os.stat("/dev/null").st_rdev == before.st_rdev


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_device_is_named():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'") as caught:
        write(outputs.Path("/dev/full"))
    assert caught.value.errno == errno.ENOSPC


def test_a_fifo_is_written_to_and_stays(tmp_path):
    """Defect: -o replaced the FIFO by a file, and its reader waited for ever."""
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()), daemon=True)
    reader.start()
    write(fifo, "new" * 50_000)  # more than a pipe holds
    reader.join(20)
    assert read == ["new" * 50_000]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert names(tmp_path) == ["fifo"]


def test_an_error_on_the_way_sends_nothing_to_a_stream(capfdbinary):
    with pytest.raises(KeyError):
        fail(outputs.STANDARD_OUTPUT)
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "link"])
@pytest.mark.parametrize("mode", ["wb", "ab"])
def test_standard_output_is_written_to_where_it_stands(tmp_path, name, mode):
    """Defect: `-o -` made a file called -, and `-o /dev/stdout >> log` replaced the log or the link in /dev."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    np.save(tmp_path / "p.npy", probabilities(4, 3, 2).numpy())
    (tmp_path / "log").write_bytes(b"before\n")
    words = ["score", "p.npy", "-m", "bald", "-o", name]
    script = f"from balent.apps.cli import app; app({words})"
    with (tmp_path / "log").open(mode) as log:
        done = subprocess.run([sys.executable, "-c", script], stdout=log, stderr=subprocess.PIPE, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = (tmp_path / "log").read_bytes().splitlines()
    assert lines[: -4 - 1] == ([b"before"] if mode == "ab" else [])
    assert lines[-5] == b"point,bald"
    assert names(tmp_path) == ["link", "log", "p.npy"]


def test_another_open_file_is_written_to_where_it_stands(tmp_path):
    with (tmp_path / "log").open("ab") as log:
        os.write(log.fileno(), b"before\n")
        write(outputs.Path(f"/dev/fd/{log.fileno()}"))
    assert (tmp_path / "log").read_bytes() == b"before\nnew"


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    """As in `balent score … -o - | head -1`: no traceback."""
    np.save(tmp_path / "p.npy", probabilities(20_000, 2, 2).numpy())
    script = "from balent.apps.cli import app; app(['score', 'p.npy', '-o', '-'])"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout.readline() == b"point,balentacq\r\n"
        process.stdout.close()
        assert process.stderr.read() == b""


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere/out\.csv'$"):
        write(tmp_path / "nowhere" / "out.csv")
    with pytest.raises(OSError, match=r"nowhere/spec\.json cannot be written: No such file or directory"):
        records.write(tmp_path / "nowhere" / "spec.json", b"")


def test_errors_of_what_is_read_meanwhile_are_not_renamed(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"input\.npy"), whole(tmp_path / "out.csv"):
        (tmp_path / "input.npy").read_bytes()
    with pytest.raises(ConnectionResetError) as caught, whole(tmp_path / "out.csv"):
        raise ConnectionResetError(errno.ECONNRESET, "reset by peer")
    assert caught.value.filename is None
