"""Records are found, read, refused and grouped."""

import gzip
import json
import re
import subprocess
import sys
import tracemalloc

import pytest
from helpers import made_up

from balent.report import lines, load, summary
from balent.report.load import groups


def test_every_jsonl_below_the_folders_is_found(tmp_path):
    made_up.write(tmp_path / "a", made_up.records("power:bald", 0))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.jsonl").write_text("\n".join(map(json.dumps, made_up.records("bald", 3))), encoding="utf-8")
    runs = load(tmp_path / "a", str(tmp_path / "b"), tmp_path)  # the last holds both again: a file is read once
    assert [(run.strategy, run.seed, len(run.records)) for run in runs] == [("power:bald", 0, 20), ("bald", 3, 20)]


def test_one_file_may_hold_several_runs(tmp_path):
    lines = [json.dumps(r) for seed in (0, 1) for r in made_up.records(seed=seed)]
    (tmp_path / "all.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [run.seed for run in load(tmp_path / "all.jsonl")] == [0, 1]


def test_eight_fields_are_enough_for_a_report(tmp_path):
    needed = ("experiment", "strategy", "seed", "round", "labels", "accuracy", "nll", "picks")
    for name, speed in {"bald": 1.5, "random": 1.0}.items():
        made_up.write(tmp_path, [{key: r[key] for key in needed} for r in made_up.records(name, 0, speed)])
    assert "bald" in summary(load(tmp_path)).sentences[0]


def test_half_a_line_at_the_end_is_ignored_with_a_remark(tmp_path):
    path = made_up.write(tmp_path, made_up.records())
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    runs = load(tmp_path)
    assert len(runs[0].records) == 19
    assert "line 20" in runs.remarks[0]
    assert summary(runs).remarks[0] == runs.remarks[0]
    path.write_bytes(whole[:-1])  # only the newline is missing: nothing is lost
    assert len(load(tmp_path)[0].records) == 20
    assert not load(tmp_path).remarks


@pytest.mark.parametrize("damage", [b'{"format": 1, "exp', b"\x00\x00", b"\xff\xfe"])
def test_damage_elsewhere_names_file_and_line(tmp_path, damage):
    path = made_up.write(tmp_path, made_up.records())
    lines = path.read_bytes().split(b"\n")
    lines[4] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line 5: not JSON"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2, "balent": "9.0"}, "of balent '9.0' in format 2, but this balent reads format 1"),
        ({"accuracy": 1.5}, "'accuracy' must be between 0 and 1, but is 1.5"),
        ({"accuracy": float("nan")}, "NaN is not a JSON number"),
        ({"accuracy": "high"}, "'accuracy' must be a number, but is 'high'"),
        ({"labels": 12.5}, "'labels' must be a whole number, but is 12.5"),
        ({"labels": -1}, "'labels' must be between 0 and 9007199254740992, but is -1"),
        ({"seed": True}, "'seed' must be a whole number, but is True"),
        ({"strategy": 3}, "'strategy' must be a string, but is 3"),
        ({"picks": "all"}, "'picks' must be a list, but is 'all'"),
        ({"picks": [3, 1.5]}, "entry 1 of 'picks' must be a whole number or a string, but is 1.5"),
        ({"thumbnails": [{}]}, "entry 0 of 'thumbnails' must be a string, but is an object of 0 entries"),
        ({"round": -1}, "'round' must be between 0 and 9007199254740992, but is -1"),
        ({"labels": 10**400}, "'labels' must be between 0 and 9007199254740992, but is 1000000"),
        ({"nll": "high"}, "'nll' must be a number, but is 'high'"),
        ({"nll": 10**400}, "'nll' must be a number, but is 1000000"),
        ({"seconds": {"train": -1}}, "'seconds.train' must be at least 0, but is -1"),
        ({"seconds": {"train": [1]}}, "'seconds.train' must be a number, but is a list of 1 entries"),
        ({"spec": [1]}, "'spec' must be an object, but is a list of 1 entries"),
        ({"strategy": "bald\x1b[2J"}, "'strategy' must have at most 1000 printable characters, but is 'bald\\x1b[2J'"),
        ({"balent": 3}, "'balent' must be a string, but is 3"),
    ],
)
def test_a_record_that_cannot_be_right_is_refused_by_file_and_line(tmp_path, change, said):
    made = made_up.records()
    path = made_up.write(tmp_path, [*made[:2], {**made[2], **change}])
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 3: ") + ".*" + re.escape(said)):
        load(tmp_path)


def refused(folder, *lines):
    """What is said of a file that has a good record before these lines."""
    path = folder / "records.jsonl"
    path.write_text("\n".join([json.dumps(made_up.records()[0]), *lines]), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: ")) as error:
        load(folder)
    assert len(str(error.value)) < 500 + len(str(path))  # whatever the size of the value
    return str(error.value)


def replaced(**words):
    """A record in which these fields have this JSON text."""
    record = json.dumps(made_up.records()[1])[:-1]
    return record + "".join(f', "{key}": {text}' for key, text in words.items()) + "}"


@pytest.mark.parametrize("depth", [60, 900, 100_000])
@pytest.mark.parametrize("pair", ["[]", ('{"a":', "}")])
def test_a_deep_record_is_refused_and_is_no_recursion_error(tmp_path, depth, pair):
    """JSON nested 100,000 deep ended in RecursionError."""
    deep = pair[0] * depth + "1" + pair[1] * depth
    assert "at most 50 levels of lists and objects" in refused(tmp_path, replaced(spec=deep))
    assert "at most 50 levels" in refused(tmp_path, deep)


def test_a_record_of_fifty_levels_is_read(tmp_path):
    """The record and its spec are the first two."""
    (tmp_path / "r.jsonl").write_text(replaced(spec='{"a": ' + "[" * 48 + "]" * 48 + "}"))
    assert len(load(tmp_path)) == 1


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000, '"high"', "[]", "true"]
)
@pytest.mark.parametrize("field", ["labels", "accuracy", "round"])
def test_a_number_that_cannot_be_one_names_file_and_line(tmp_path, field, text):
    """Also in the last line: a number of 5,000 digits was taken for half a line and silently left out."""
    refused(tmp_path, replaced(**{field: text}))


@pytest.mark.parametrize("key", ["experiment", "strategy", "format", "accuracy", "spec", "picks", "seed"])
def test_a_huge_string_is_refused_without_being_printed(tmp_path, key):
    """A value of a million characters was repeated in the error, or became the title of a table."""
    assert repr("x" * 60) in refused(tmp_path, replaced(**{key: json.dumps("x" * 10**6)}))


@pytest.mark.parametrize("key", ["labels", "strategy", "seconds", "format", "spec"])
def test_a_huge_list_is_refused_without_being_printed(tmp_path, key):
    assert "a list of 100,000 entries" in refused(tmp_path, replaced(**{key: json.dumps([0] * 10**5)}))


def test_a_line_is_limited_before_it_is_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 10**5)
    assert "at most 100,000 bytes" in refused(tmp_path, replaced(picks=json.dumps([0] * 10**5)))


def test_a_small_packed_file_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    """64 MB of blank lines, or one line of 64 MB, are 64 KB once packed: neither is held in memory."""
    monkeypatch.setattr(lines, "LARGEST", 10**5)
    for content, said in ((b"\n", "line 100001: more than 100,000 bytes once unpacked"), (b"[", "line 1: a record")):
        path = tmp_path / "bomb.jsonl.gz"
        path.write_bytes(gzip.compress(content * 2**26))
        tracemalloc.start()
        with pytest.raises(ValueError, match=re.escape(f"{path}, {said}")):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 4 * lines.LONGEST
        tracemalloc.stop()


def test_a_run_that_was_never_evaluated_is_left_out_with_a_remark(tmp_path):
    """It ended in "max() arg is an empty sequence"."""
    made_up.write(tmp_path, made_up.records())
    made_up.write(tmp_path, made_up.records("bald", accuracy=None))
    runs = load(tmp_path)
    assert [run.strategy for run in runs] == ["random"]
    assert "digits, bald, seed 0, was never evaluated and is left out" in runs.remarks[0]
    assert summary(runs).table()


def test_a_missing_field_is_named(tmp_path):
    made = made_up.records()
    del made[1]["labels"]
    made_up.write(tmp_path, made)
    with pytest.raises(ValueError, match=r"line 2: the record has no 'labels'"):
        load(tmp_path)


def test_rounds_out_of_order_are_damage(tmp_path):
    made = made_up.records()
    made_up.write(tmp_path, [*made[:3], made[1]])
    with pytest.raises(ValueError, match=r"line 4: rounds must grow .* round 1 with 40 labels follows round 2 with 60"):
        load(tmp_path)


def test_nothing_to_report_is_an_error_that_says_where_it_looked(tmp_path):
    with pytest.raises(ValueError, match=rf"no records in {re.escape(str(tmp_path))}"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(tmp_path / "elsewhere")
    (tmp_path / "labels.jsonl").write_text('{"index": 3, "label": 1}\n')
    with pytest.raises(ValueError, match=r"no records in .*contains no records"):
        load(tmp_path)


def test_the_same_run_in_two_files_is_refused(tmp_path):
    made_up.write(tmp_path / "a", made_up.records())
    made_up.write(tmp_path / "b", made_up.records())
    with pytest.raises(ValueError, match="digits, random, seed 0 was recorded twice"):
        load(tmp_path)


def test_experiments_are_grouped_and_never_averaged_together(tmp_path):
    for experiment, labels in {"digits": made_up.LABELS, "moons": made_up.LABELS // 2}.items():
        for name, speed in {"bald": 1.5, "random": 1.0}.items():
            made_up.write(tmp_path, made_up.records(name, 0, speed, experiment=experiment, labels=labels))
    runs = load(tmp_path)
    assert [(g.title, list(g.strategies)) for g in groups(runs)] == [
        ("digits", ["bald", "random"]),
        ("moons", ["bald", "random"]),
    ]
    assert [said.split(":")[0] for said in summary(runs).sentences] == ["digits", "moons"]


def test_one_experiment_under_two_settings_is_two_groups_named_by_what_differs(tmp_path):
    for epochs in (50, 100):
        made_up.write(tmp_path / str(epochs), made_up.records(spec={"epochs": epochs}))
    assert [g.title for g in groups(load(tmp_path))] == ["digits (epochs 100)", "digits (epochs 50)"]


def test_a_run_that_is_not_finished_is_left_out_and_said_to_be(tmp_path):
    for seed in (0, 1):
        made_up.write(tmp_path, made_up.records(seed=seed)[: 20 if seed == 0 else 4])
    (group,) = groups(load(tmp_path))
    assert [run.seed for run in group.strategies["random"]] == [0]
    assert group.remarks == ("random, seed 1, ends at 80 of 400 labels and is left out",)


def test_different_versions_are_remarked(tmp_path):
    made_up.write(tmp_path, made_up.records(seed=0))
    made_up.write(tmp_path, made_up.records(seed=1, balent="0.2.0"))
    assert "versions of balent: 0.1.0, 0.2.0" in summary(load(tmp_path)).remarks[0]


def test_a_report_needs_no_torch(tmp_path):
    made_up.write(tmp_path, made_up.records("bald"))
    made_up.write(tmp_path, made_up.records("random"))
    script = f"""
import sys
from balent.report import load, summary, write_html, write_plot
runs = load({str(tmp_path)!r})
summary(runs).table(), summary(runs).csv({str(tmp_path / "r.csv")!r}), write_html(runs, {str(tmp_path / "r.html")!r})
assert "matplotlib" not in sys.modules
write_plot(runs, {str(tmp_path / "r.svg")!r})
print({{"torch", "pandas", "scipy"}} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


def test_packed_records_are_read_and_damaged_ones_refused(tmp_path):
    lines = "".join(json.dumps(record) + "\n" for record in made_up.records("bald"))
    path = tmp_path / "bald.jsonl.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    assert [run.strategy for run in load(tmp_path)] == ["bald"]
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"bald\.jsonl\.gz cannot be unpacked"):
        load(tmp_path)


def test_one_file_may_hold_one_run_under_several_settings(tmp_path):
    lines = [json.dumps(r) for draws in (20, 300) for r in made_up.records(spec={"draws": draws})]
    (tmp_path / "all.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [run.settings["draws"] for run in load(tmp_path)] == [20, 300]
