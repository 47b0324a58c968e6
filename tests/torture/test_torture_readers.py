"""Readers of data under damaged files: an error that names the file, or data that fit together; never a traceback."""

from random import Random

import pytest

from torture.readers import COLUMNS, READERS, attempt, damaged, place, run, whole

pytest.importorskip("PIL")
pytest.importorskip("pyarrow")


def test_damage_is_never_nothing_and_the_same_for_the_same_seed():
    content = bytes(range(256)) * 4
    for seed in range(100):
        assert damaged(content, Random(seed)) == damaged(content, Random(seed)) != content


@pytest.mark.parametrize("name", READERS)
def test_files_without_damage_are_read_and_a_few_with_damage_are_refused_in_words(name, monkeypatch):
    """So that what the thousand below say is about damage."""
    monkeypatch.setenv("BALENT_CACHE", "")  # set by what follows
    reader = READERS[name]
    files = reader.files()
    right = whole(reader, files)
    found = []
    for i in range(5):
        with place() as folder:
            found.append(attempt(reader, files, Random(f"7 {name} {i}"), folder, right))
    assert {outcome for outcome, _ in found} <= {"clear error", "right"}, found


@pytest.mark.slow
def test_a_thousand_damaged_files_per_reader_end_in_a_clear_error_or_in_data():
    """Each under a cap of memory and time, which count as a traceback."""
    wrong = []
    counts = run(1000, seed=0, tell=wrong.append)
    assert not wrong, "\n".join(wrong[:5])
    for name, of in counts.items():
        assert [of[column] for column in COLUMNS[3:]] == [0, 0]
        assert of["tried"] == of["clear error"] + of["right"] == 1000
        assert of["clear error"] > 200, f"{name} takes nearly everything"
