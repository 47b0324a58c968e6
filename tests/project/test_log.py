"""A journal that several processes append to."""

import json
import multiprocessing
import os

import pytest

from balent.project.log import Log, held, new_key


def log(folder):
    return Log(folder / "journal.ndjson", folder / "lock")


def test_each_line_is_news_once(tmp_path):
    one, other = log(tmp_path), log(tmp_path)
    one.append(lambda news: [{"n": 1}])
    assert one.news() == []
    assert other.news() == [{"n": 1}]
    other.append(lambda news: [{"n": 2}])
    assert one.news() == [{"n": 2}]


def test_an_append_sees_what_others_wrote_before(tmp_path):
    one, other, seen = log(tmp_path), log(tmp_path), []
    one.append(lambda news: [{"n": 1}])
    other.append(lambda news: seen.extend(news) or [])
    assert seen == [{"n": 1}]


def test_after_an_error_nothing_was_added(tmp_path):
    one = log(tmp_path)
    one.append(lambda news: [{"n": 1}])
    with pytest.raises(ValueError, match="refused"):
        one.append(refused)
    assert one.path.read_text() == '{"n": 1}\n'


def refused(news):
    raise ValueError("refused")


def test_a_torn_last_line_is_cut_off_by_the_next_append(tmp_path):
    one = log(tmp_path)
    one.append(lambda news: [{"n": 1}])
    with one.path.open("a") as file:
        file.write('{"n": 2, "la')
    other = log(tmp_path)
    assert other.news() == [{"n": 1}], "it was never acknowledged"
    other.append(lambda news: [{"n": 3}])
    assert [json.loads(line) for line in one.path.read_text().splitlines()] == [{"n": 1}, {"n": 3}]
    assert one.news() == [{"n": 3}]


def test_a_file_that_became_shorter_is_refused(tmp_path):
    one = log(tmp_path)
    one.append(lambda news: [{"n": 1}, {"n": 2}])
    os.truncate(one.path, 5)
    with pytest.raises(ValueError, match="shorter"):
        one.news()


def test_damage_names_its_line(tmp_path):
    one = log(tmp_path)
    one.append(lambda news: [{"n": 1}])
    one.path.write_text('{"n": 1}\nnonsense\n')
    with pytest.raises(ValueError, match="line 2, is damaged"):
        one.news()


def count(folder, times):
    mine = log(folder)
    for _ in range(times):
        mine.append(lambda news: [{"key": new_key()}])


def test_lines_of_several_processes_are_whole_and_none_is_lost(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=count, args=(tmp_path, 30)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    keys = [line["key"] for line in log(tmp_path).news()]
    assert len(keys) == len(set(keys)) == 90


def test_a_lock_that_is_never_released_is_reported(tmp_path):
    with (
        held(tmp_path / "lock"),
        pytest.raises(BlockingIOError, match="another process"),
        held(tmp_path / "lock", 0.05),
    ):
        pass
