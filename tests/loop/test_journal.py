"""Lines that outlive a crash: what was acknowledged is there, what was torn is cut off, damage is named."""

import errno
import os
import subprocess
import sys

import pytest
from helpers.disk import room_up_to

from balent.loop import journal


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def test_what_is_appended_is_read(path):
    for i in range(3):
        journal.append(path, {"format": 1, "round": i, "name": "Größe"})
    assert [record["round"] for record in journal.read(path)] == [0, 1, 2]
    assert journal.repair(path) is None


def test_no_file_has_no_records(path):
    assert journal.read(path) == []
    assert journal.repair(path) is None


def test_a_line_is_on_disk_before_it_is_acknowledged(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_size))
    journal.append(path, {"round": 0})
    assert synced[0] == len('{"round": 0}\n')


@pytest.mark.parametrize("kept", range(1, len('{"round": 1}')))
def test_a_torn_last_line_is_not_read_and_is_cut_off(path, kept):
    """Whatever part of the line came to disk before the process died."""
    path.write_text('{"round": 0}\n' + '{"round": 1}'[:kept])
    assert journal.read(path) == [{"round": 0}]
    assert "torn" in journal.repair(path)
    assert path.read_text() == '{"round": 0}\n'


def test_a_line_that_lacks_only_its_end_is_kept(path):
    """Nothing that it says is missing, and it may be a label that a person gave."""
    path.write_text('{"round": 0}\n{"round": 1}')
    assert len(journal.read(path)) == 2
    assert journal.repair(path) is None
    assert path.read_text() == '{"round": 0}\n{"round": 1}\n'


@pytest.mark.parametrize("damage", ["{oops", "[1]", "", "\0\0"])
def test_damage_elsewhere_names_file_and_line(path, damage):
    path.write_text('{"round": 0}\n' + damage + '\n{"round": 2}\n')
    for look in (journal.read, journal.repair):
        with pytest.raises(ValueError, match=r"records\.jsonl, line 2, is damaged"):
            look(path)


def test_records_of_another_format_are_refused(path):
    path.write_text('{"format": 4}\n')
    with pytest.raises(ValueError, match=r"has format 4, but this version of balent reads formats 1, 2, 3"):
        journal.read(path)


def test_numbers_that_json_does_not_know_are_refused(path):
    with pytest.raises(ValueError, match="JSON"):
        journal.append(path, {"accuracy": float("nan")})
    assert not path.exists()


def test_a_full_disk_leaves_earlier_lines_intact(path, monkeypatch):
    journal.append(path, {"round": 0})

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OSError, match=r"cannot be written: No space left on device; everything written before is intact"
    ):
        journal.append(path, {"round": 1})
    assert journal.read(path) == [{"round": 0}]


@pytest.mark.parametrize("room", range(0, 60, 7))
def test_a_full_disk_does_not_destroy_the_journal(path, room):
    """#14: the buffered rest of a line was flushed behind the truncation when the file was closed."""
    for i in range(3):
        journal.append(path, {"round": i})
    before = path.read_bytes()
    with room_up_to(len(before) + room), pytest.raises(OSError, match=r"File too large; .* is intact"):
        journal.append(path, {"round": 3, "text": "x" * 60})
    assert path.read_bytes() == before
    journal.append(path, {"round": 4})
    assert [record["round"] for record in journal.read(path)] == [0, 1, 2, 4]


def test_a_line_is_never_appended_to_a_torn_one(path, monkeypatch):
    """#14: not even where the disk refuses to cut the torn line off."""
    journal.append(path, {"round": 0})
    monkeypatch.setattr(os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with room_up_to(path.stat().st_size + 5), pytest.raises(OSError, match="broken"):
        journal.append(path, {"round": 1})
    with pytest.raises(OSError, match="its last line is incomplete; open the directory again, which repairs it"):
        journal.append(path, {"round": 2})
    assert "torn" in journal.repair(path)
    journal.append(path, {"round": 3})
    assert [record["round"] for record in journal.read(path)] == [0, 3]


def test_a_torn_first_line_leaves_no_empty_file(path):
    """An empty file would look like one that has lost its lines."""
    path.write_text('{"rou')
    assert "torn" in journal.repair(path)
    assert not path.exists()


def test_a_record_nested_too_deeply_is_damage(path):
    path.write_text('{"a":' * 100_000 + "1" + "}" * 100_000 + "\n")
    with pytest.raises(ValueError, match=r"records\.jsonl, line 1, is damaged"):
        journal.read(path)


def test_a_directory_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written: Not a directory"):
        journal.append(tmp_path / "file" / "records.jsonl", {})


def test_a_file_is_whole_or_the_one_before(path, monkeypatch):
    journal.write(path, b"before")
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
    with pytest.raises(OSError, match="broken"):
        journal.write(path, b"after")
    assert path.read_bytes() == b"before"


HOLD = """
import sys, time
from pathlib import Path
from balent.loop import journal
with journal.locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path, monkeypatch):
    """Killed without a chance to tidy up: the system takes the lock back."""
    monkeypatch.setattr(journal, "PATIENCE", 0.1)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError, match=f"in use by process {first.pid}"), journal.locked(tmp_path):
            pass
        first.kill()
        first.wait()
    with journal.locked(tmp_path):
        pass


@pytest.mark.parametrize("module", ["journal", "labels", "places", "events"])
def test_reading_journals_needs_no_torch(module):
    script = f"import sys, balent.loop.{module}; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"
