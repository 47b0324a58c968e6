"""Files for other tools: questions that come back as answers, and answers that are refused with their line."""

import csv
import json

import numpy as np
import pytest
from helpers.disk import room_up_to
from helpers.labelling import of_pictures, of_rows

from balent import Project
from balent.project.exchange import Reply, read_answers, write_questions
from balent.project.questions import Item
from balent.project.telling import Told, apply


@pytest.fixture
def project(tmp_path):
    return of_rows(tmp_path)


def answers(tmp_path, text, name="answers.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_text(text, encoding=encoding, newline="")
    return read_answers(path)


def told(project, tmp_path, text, name="answers.csv", encoding="utf-8", **options):
    return apply(project, answers(tmp_path, text, name, encoding), **options)


def labels(project):
    """What another process reads from the journal."""
    state = Project(project.path).state
    return {project.items[n].id: (state.classes.name(a.label), a.who) for n, a in state.last.items()}


def item(**fields):
    about = {
        "rank": 1,
        "score": 0.5,
        "guess": "cat",
        "probability": 0.75,
        "why": "random check",
        "round": 2,
        "fingerprint": "ab12",
    }
    return Item(**{"id": "a/1.jpg", "kind": "images", "image": "/data/a/1.jpg", **about, **fields})


# ── questions ────────────────────────────────────────────────────────────────────────────────────


def test_a_file_of_questions_has_a_line_per_item(tmp_path):
    write_questions([item(), item(id='b, "2".jpg', guess=None, probability=None, score=None)], tmp_path / "ask.csv")
    assert (tmp_path / "ask.csv").read_text(encoding="utf-8") == (
        "id,kind,image,rank,score,guess,probability,why,round,fingerprint\n"
        "a/1.jpg,images,/data/a/1.jpg,1,0.5,cat,0.75,random check,2,ab12\n"
        '"b, ""2"".jpg",images,/data/a/1.jpg,1,,,,random check,2,ab12\n'
    )


def test_json_lines_have_the_same_columns(tmp_path):
    write_questions([item(kind="table", image=None, columns={"age": 3, "name": "é"})], tmp_path / "ask.jsonl")
    line = json.loads((tmp_path / "ask.jsonl").read_text(encoding="utf-8"))
    assert list(line) == [
        "id",
        "kind",
        "columns",
        "rank",
        "score",
        "guess",
        "probability",
        "why",
        "round",
        "fingerprint",
    ]
    assert line["columns"] == {"age": 3, "name": "é"}


def test_a_row_is_json_in_a_cell(tmp_path):
    write_questions([item(kind="table", image=None, columns={"age": 3, "name": "=1+1"})], tmp_path / "ask.csv")
    with (tmp_path / "ask.csv").open(encoding="utf-8", newline="") as file:
        assert json.loads(next(csv.DictReader(file))["columns"]) == {"age": 3, "name": "=1+1"}


def test_a_text_that_a_spreadsheet_would_run_is_text_and_ids_stay_as_they_are(tmp_path):
    write_questions([item(id="=1", kind="text", image=None, text="=cmd|' /C calc'!A0")], tmp_path / "ask.csv")
    assert "=1,text,'=cmd|' /C calc'!A0,1," in (tmp_path / "ask.csv").read_text(encoding="utf-8")
    write_questions([item(id="=1", kind="text", image=None, text="=1+1")], tmp_path / "ask.jsonl")
    assert json.loads((tmp_path / "ask.jsonl").read_text(encoding="utf-8"))["text"] == "=1+1"


def test_long_texts_are_cut_in_a_csv_so_that_it_can_be_read_again(tmp_path):
    write_questions([item(kind="text", image=None, text="x" * 200_000)], tmp_path / "ask.csv")
    with (tmp_path / "ask.csv").open(encoding="utf-8", newline="") as file:
        text = next(csv.DictReader(file))["text"]
    assert len(text) == 32_001
    assert text.endswith("x…")
    write_questions([item(kind="text", image=None, text="x" * 200_000)], tmp_path / "ask.jsonl")
    assert len(json.loads((tmp_path / "ask.jsonl").read_text(encoding="utf-8"))["text"]) == 200_000


def test_a_file_of_questions_with_a_column_of_labels_is_a_file_of_answers(project, tmp_path):
    asked = project.ask(4, wait=False)
    write_questions(asked, tmp_path / "ask.csv")
    with (tmp_path / "ask.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.reader(file)]
    filled = [
        [*rows[0], "label"],
        *([*row, label] for row, label in zip(rows[1:], ["cat", "dog", "", "cat"], strict=True)),
    ]
    with (tmp_path / "filled.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(filled)
    assert apply(project, read_answers(tmp_path / "filled.csv")) == Told(3, 0, 1, 0)
    assert labels(project) == {asked[0].id: ("cat", None), asked[1].id: ("dog", None), asked[3].id: ("cat", None)}
    assert [item.id for item in project.pending()] == [asked[2].id]


def test_names_of_files_that_are_not_utf8_come_back(tmp_path):
    name = "caf\udce9.png"  # the byte E9
    project = of_pictures(tmp_path, [name, "b.png"])
    for ending in ("csv", "jsonl"):
        write_questions([item(id=name)], tmp_path / f"ask.{ending}")
        text = (tmp_path / f"ask.{ending}").read_text(encoding="utf-8")
        id = "caf\\udce9.png" if ending == "csv" else json.loads(text)["id"]
        line = f"id,label\n{id},cat\n" if ending == "csv" else json.dumps({"id": id, "label": "cat"})
        told(project, tmp_path, line, f"answers.{ending}", who=ending)
        assert labels(project)[name] == ("cat", ending)


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


def test_all_columns_are_recorded(project, tmp_path):
    text = "note,seconds,skip,who,label,id,other\nblurred,1.5,,ann,cat,item 0,x\n,2,yes,bob,,item 1,x\n,,,,,item 2,x\n"
    assert told(project, tmp_path, text, who="eve") == Told(1, 1, 1, 0)
    events = [json.loads(line) for line in (project.path / "journal.ndjson").read_text().splitlines()][-2:]
    assert [(e["event"], e["ids"], e["who"], e["seconds"]) for e in events] == [
        ("label", ["item 0"], "ann", 1.5),
        ("skip", ["item 1"], "bob", 2),
    ]
    assert events[0]["note"] == "blurred"
    assert list(project.state.skipped) == [1]


@pytest.mark.parametrize(
    ("name", "text", "encoding"),
    [
        ("a.csv", "id,label\nitem 0,cat\n", "utf-8-sig"),
        ("a.csv", "id;label\r\nitem 0;cat\r\n", "utf-8-sig"),
        ("a.csv", '"ID","Label "\r\n"item 0"," cat"\r\n\r\n', "utf-8"),
        ("a.tsv", "id\tlabel\nitem 0\tcat\n", "utf-8"),
        ("a.txt", "id\tlabel\nitem 0\tcat", "utf-8"),
        ("a.csv", 'id,text,label\nitem 0,"several\nlines, and ""quotes""",cat\n', "utf-8"),
        ("a.jsonl", '{"id": "item 0", "label": "cat", "text": null}\n\n', "utf-8"),
        ("a.ndjson", '{"label": "cat", "id": "item 0"}', "utf-8-sig"),
    ],
)
def test_what_spreadsheets_and_tools_write_is_read(project, tmp_path, name, text, encoding):
    assert told(project, tmp_path, text, name, encoding) == Told(1, 0, 0, 0)
    assert labels(project) == {"item 0": ("cat", None)}


def test_ids_that_are_numbers_in_json_are_read(tmp_path):
    assert answers(tmp_path, '{"id": 17, "label": "cat"}', "a.jsonl") == [Reply(1, "17", "cat")]


def test_an_id_or_class_with_an_apostrophe_of_our_own_is_found(project, tmp_path):
    project.add_class("-1")
    assert told(project, tmp_path, "id,label\nitem 0,'-1\n").labelled == 1
    assert labels(project) == {"item 0": ("-1", None)}


def test_items_need_not_have_been_asked_and_may_be_new(project, tmp_path):
    rows = np.load(tmp_path / "rows.npy")
    np.save(tmp_path / "rows.npy", np.concatenate([rows, rows[:1] + 1]))
    with (tmp_path / "ids.txt").open("a") as file:
        file.write("\nlate")
    assert told(project, tmp_path, "id,label\nlate,dog\n").labelled == 1


BAD = [
    ("id,label\nitem 0,cow\n", "line 2: the class 'cow' is not known; known are"),
    ("id,label\n\nitem 0,cat\nitem 99,cat\n", "line 4: the item 'item 99' is not known; did you mean 'item 9'?"),
    ("id,label\nnowhere,\n", "line 2: the item 'nowhere' is not known"),
    ("id,label\n1.23457E+15,cat\n", "a spreadsheet has rounded it"),
    ("id,label\nitem 0,cat\nitem 0,dog\n", "line 3: 'dog' for 'item 0', but line 2 says 'cat'"),
    ("id,label,skip\nitem 0,cat,\nitem 0,,1\n", "line 3: skip for 'item 0', but line 2 says 'cat'"),
    ("id,label,skip\nitem 0,cat,1\n", "line 2: it has a label, 'cat', and is skipped"),
    (
        "id,label,skip\nitem 0,,perhaps\n",
        "line 2: skip must be one of 1, true, yes, x, skip or empty, but is 'perhaps'",
    ),
    ("id,label,seconds\nitem 0,cat,soon\n", "line 2: seconds must be a number of 0 or more, but is 'soon'"),
    ("id,label,seconds\nitem 0,cat,-1\n", "line 2: seconds must be"),
    ("id,label,seconds\nitem 0,cat,nan\n", "line 2: seconds must be"),
    ("id,label,seconds\nitem 0,cat,inf\n", "line 2: seconds must be"),
    ("id,label\n,cat\n", "line 2: it has no id"),
    ("id,class\nitem 0,cat\n", "has no column 'label'; its columns are 'id', 'class'"),
    ("name,label\nitem 0,cat\n", "has no column 'id'"),
    ("id,label\nitem 0,cat,dog\n", "line 2, has 3 cells, but the header has 2"),
    ('id,label\nitem 0,"cat\n', "a quote is not closed"),
    ("id,label,label\nitem 0,cat,dog\n", "two columns of one name"),
    ("", "has no header"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_line_is_named_and_nothing_of_its_file_is_recorded(project, tmp_path, text, message):
    """A good line comes first, so that a file which is applied line by line would be noticed."""
    head, _, rest = text.partition("\n")
    columns = head.split(",")
    good = ",".join({"id": "item 5", "label": "cat"}.get(name, "") for name in columns)
    before = (project.path / "journal.ndjson").read_bytes()
    with pytest.raises(ValueError, match=r"(?s).*") as caught:
        told(project, tmp_path, text)
    assert message in str(caught.value)
    assert (project.path / "journal.ndjson").read_bytes() == before
    if "id" in columns and "label" in columns and columns.count("label") == 1:
        with pytest.raises(ValueError, match=r"(?s).*"):
            told(project, tmp_path, f"{head}\n{good}\n{rest}")
        assert (project.path / "journal.ndjson").read_bytes() == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "item 0", "label": 1}', 'line 2: label must be text, but is 1; write "1"'),
        ('{"id": true, "label": "cat"}', "line 2: id must be text, but is True"),
        ('{"id": "item 0", "label": ["cat"]}', "is not known"),
        ('{"id": "item 0", "label": "cat", "seconds": true}', "line 2: seconds must be"),
        ('["item 0", "cat"]', "line 2, must be an object"),
        ('{"id": "item 0", ', "line 2, is not JSON"),
    ],
)
def test_bad_json_lines_are_named(project, tmp_path, line, message):
    before = (project.path / "journal.ndjson").read_bytes()
    with pytest.raises(ValueError, match="line 2") as caught:
        told(project, tmp_path, '{"id": "item 5", "label": "cat"}\n' + line, "answers.jsonl")
    assert message in str(caught.value)
    assert (project.path / "journal.ndjson").read_bytes() == before


def test_the_first_lines_are_named_and_the_others_not_looked_at(project, tmp_path):
    with pytest.raises(ValueError, match=r"line 6: .*; lines after it were not looked at; nothing of it was recorded"):
        told(project, tmp_path, "id,label\n" + "item 0,cow\n" * 1000)


def test_a_workbook_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(ValueError, match="save the sheet as CSV"):
        read_answers(tmp_path / "a.xlsx")


def test_telling_a_file_again_changes_nothing(project, tmp_path):
    text = "id,label,who,skip\nitem 0,cat,ann,\nitem 0,dog,bob,\nitem 1,,ann,x\nitem 2,cat,,\nitem 2,cat,,\n"
    assert told(project, tmp_path, text) == Told(3, 1, 0, 1)
    before = (project.path / "journal.ndjson").read_bytes()
    assert told(project, tmp_path, text) == Told(0, 0, 0, 5)
    assert (project.path / "journal.ndjson").read_bytes() == before


def test_what_a_torn_append_lost_is_told_by_telling_again(project, tmp_path):
    """The machine fails while the events of a file are appended: of three lines, one and a half are on disk."""
    before = (project.path / "journal.ndjson").read_bytes()
    text = "id,label,who\nitem 0,cat,ann\nitem 1,dog,bob\nitem 2,bird,cy\n"
    told(project, tmp_path, text)
    whole = (project.path / "journal.ndjson").read_bytes()
    lines = whole[len(before) :].splitlines(keepends=True)
    assert len(lines) == 3
    (project.path / "journal.ndjson").write_bytes(before + lines[0] + lines[1][:30])
    again = Project(project.path)
    assert told(again, tmp_path, text) == Told(2, 0, 0, 1)
    assert labels(project) == {"item 0": ("cat", "ann"), "item 1": ("dog", "bob"), "item 2": ("bird", "cy")}


def test_events_of_a_file_are_one_append(project, tmp_path):
    """A disk that is full loses all of a file or nothing."""
    size = (project.path / "journal.ndjson").stat().st_size
    before = (project.path / "journal.ndjson").read_bytes()
    text = "id,label,who\n" + "".join(f"item {i},cat,person {i}\n" for i in range(50))
    (tmp_path / "answers.csv").write_text(text)
    lines = read_answers(tmp_path / "answers.csv")
    with room_up_to(size + 3000), pytest.raises(OSError, match="cannot be written"):
        apply(project, lines)
    assert (project.path / "journal.ndjson").read_bytes() == before
    assert apply(project, lines).labelled == 50


def test_new_classes_are_added_if_one_asks_for_it(project, tmp_path):
    text = "id,label\nitem 0,cow\nitem 1,cow\nitem 2,cat\n"
    result = told(project, tmp_path, text, add_classes=True)
    assert result == Told(3, 0, 0, 0, ("cow",))
    assert str(result) == "3 labelled, 0 skipped, 0 unanswered, new classes: cow"
    again = Project(project.path)
    assert list(again.state.classes.names()) == ["cat", "dog", "bird", "cow"]
    assert again.settings.classes[-1].key == "4"
    with pytest.raises(ValueError, match="line 2: a class name must be"):
        told(project, tmp_path, f"id,label\nitem 3,{'x' * 300}\n", add_classes=True)


def test_a_disagreement_is_decided_by_telling_with_resolve(tmp_path):
    project = of_rows(tmp_path, overlap=2)
    check = project.ask(1, wait=False)[0].id
    told(project, tmp_path, f"id,label,who\n{check},cat,ann\n{check},dog,bob\n")
    assert list(project.state.disagreements()) == [project.id_number(check)]
    assert told(project, tmp_path, f"id,label\n{check},cat\n", who="ann", resolve=True).labelled == 1
    assert not project.state.disagreements()
    assert labels(project)[check] == ("cat", "ann")
