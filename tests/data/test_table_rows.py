"""Rows of tables: every format gives the same rows, and an error names the line."""

import json
import subprocess
import sys

import pytest

from balent.data.formats import limits
from balent.data.table_rows import rows


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(path, columns):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_the_header_decides_what_separates_cells(tmp_path, separator, bom):
    text = f"id{separator}text\n1{separator}ä, b; c\n" if separator != "," else 'id,text\n1,"ä, b; c"\n'
    found = rows(written(tmp_path, "t.csv", bom + text.replace(", b; c", " b").encode()))
    assert found.columns == {"id": ["1"], "text": ["ä b"]}


def test_a_tsv_has_commas_in_its_text(tmp_path):
    found = rows(written(tmp_path, "t.TSV", "id\ttext, or body\n1\tone, two, three\n"))
    assert found[0] == {"id": "1", "text, or body": "one, two, three"}


def test_empty_cells_are_none_and_empty_lines_are_no_rows(tmp_path):
    found = rows(written(tmp_path, "t.csv", "\na,b\n1,\n\n,2\r\n"))
    assert found.columns == {"a": ["1", None], "b": [None, "2"]}
    assert list(found.numbers) == [3, 5]


def test_a_row_has_the_line_at_which_it_begins(tmp_path):
    """The quoted cell of the first row ends in line 4, so that the second begins in line 5."""
    found = rows(written(tmp_path, "t.csv", 'id,text\n1,"a\n""b""\nc"\n2,d\n'))
    assert found.columns["text"] == ['a\n"b"\nc', "d"]
    assert list(found.numbers) == [2, 5]
    assert found.where(1).endswith("t.csv, line 5,")


def test_json_lines_keep_their_types_and_may_lack_keys(tmp_path):
    lines = ['{"a": 1, "b": true}', "", '{"a": 2.5, "c": "x", "d": [1, {"e": null}]}', '{"a": NaN, "c": ""}']
    found = rows(written(tmp_path, "t.ndjson", "\ufeff" + "\r\n".join(lines)))
    assert found.columns == {
        "a": [1, 2.5, None],
        "b": [True, None, None],
        "c": [None, "x", ""],
        "d": [None, '[1, {"e": null}]', None],
    }
    assert list(found.numbers) == [1, 3, 4]


def test_keys_that_come_in_a_later_block_of_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("balent.data.formats.json_lines.BLOCK", 2)
    found = rows(written(tmp_path, "t.jsonl", "".join(json.dumps({"a" if i < 3 else "b": i}) + "\n" for i in range(5))))
    assert found.columns == {"a": [0, 1, 2, None, None], "b": [None, None, None, 3, 4]}


def test_many_blocks_of_lines_are_one_table(tmp_path, monkeypatch):
    monkeypatch.setattr("balent.data.formats.delimited.BLOCK", 2)
    found = rows(written(tmp_path, "t.csv", "a,b\n" + "".join(f"{i},{-i}\n" for i in range(1, 6))))
    assert found.columns == {"a": list("12345"), "b": ["-1", "-2", "-3", "-4", "-5"]}
    assert list(found.numbers) == [2, 3, 4, 5, 6]


def test_parquet_gives_plain_values(tmp_path):
    import datetime
    import decimal

    columns = {
        "number": [1, 2, None],
        "float": [1.5, float("nan"), None],
        "flag": [True, False, None],
        "word": ["x", "x", None],
        "bytes": [b"\xc3\xa4", b"", None],
        "day": [datetime.date(2024, 2, 29), None, None],
        "price": [decimal.Decimal("1.10"), None, None],
    }
    found = rows(parquet(tmp_path / "t.parquet", columns))
    assert found[0] == {
        "number": 1,
        "float": 1.5,
        "flag": True,
        "word": "x",
        "bytes": "ä",
        "day": "2024-02-29",
        "price": "1.10",
    }
    assert list(found[1].values()) == [2, None, False, "x", "", None, None]
    assert set(found[2].values()) == {None}
    assert (len(found), found.where(2)) == (3, f"{tmp_path / 't.parquet'}, row 3,")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("t.csv", "", "is empty; its first line must name the columns"),
        ("t.csv", "\n\n", "has no header"),
        ("t.csv", ",,\n1,2,3\n", "has no header"),
        ("t.csv", "5.1,3.5\n4.9,3.0\n", r"has no header: .*, but has \['5\.1', '3\.5'\]"),
        ("t.csv", "a,b\n", "has no rows"),
        ("t.csv", "a, a\n1,2\n", "two columns of one name, 'a'; rename"),
        ("t.csv", 'a,b\n"1\n2",3\n4\n', r"t\.csv, line 4, has 1 cells, but the header has 2; .*need quotes"),
        ("t.csv", 'a,b\n1,"2\n3,4\n', r"cannot be read as CSV: a quote is not closed \(line 3\)"),
        ("t.csv", 'a,b\n1,"' + "x" * 200_000, "more than 131,072 characters; is a quote not closed"),
        ("t.csv", b"a,b\n1,2\n3,\xe4\n", r"t\.csv, line 3, is not UTF-8: it has the byte 0xe4; save the file as UTF-8"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "line 1, is not UTF-8"),
        ("t.jsonl", '{"a": 1}\n{"a": \n', r"t\.jsonl, line 2, is not JSON"),
        ("t.jsonl", '{"a": 1}\n\n{"a": 1, "a": 2}\n', "line 3, is not JSON: it has the key 'a' twice"),
        ("t.jsonl", '{"a": 1}\n{"a": ' + "9" * 5000 + "}", "line 2, is not JSON: Exceeds the limit"),
        ("t.jsonl", '{"a": 1}\n' + "[" * 200_000, "line 2, is not JSON that can be read: it is nested too deeply"),
        ("t.jsonl", '[{"a": 1}]\n', r"line 1, must be an object .*, but is \[{'a': 1}\]; pandas does so with to_json"),
        ("t.jsonl", '[\n{"a": 1}\n]\n', "line 1, is not JSON: .*; pandas does so with to_json"),
        ("t.jsonl", b'{"a": 1}\n{"a": "\xe4"}\n', "line 2, is not UTF-8: it has the byte 0xe4"),
        ("t.jsonl", "\n", "has no rows"),
        ("t.parquet", "not parquet", "cannot be read as parquet"),
        ("t.xlsx", "PK", r"must be a file ending in \.csv, \.tsv, \.jsonl"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path, name, content, why):
    with pytest.raises(ValueError, match=why) as error:
        rows(written(tmp_path, name, content))
    assert name in str(error.value)
    assert len(str(error.value)) < 500


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*t\.csv"):
        rows(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="has no column 'body'; its columns are id, text"):
        rows(written(tmp_path, "t.csv", "id,text\n1,x\n")).column("body")


def test_lines_that_all_have_other_keys_are_refused_before_they_fill_memory(tmp_path, monkeypatch):
    """2,000 lines with a key of their own each would be 4 million cells."""
    monkeypatch.setattr(limits, "FLOOR", 1 << 20)
    path = written(tmp_path, "t.jsonl", "".join(json.dumps({f"key {i}": i}) + "\n" for i in range(2000)))
    with pytest.raises(ValueError, match=r"t\.jsonl cannot be read as JSON lines: .*; lines must have the same keys"):
        rows(path)


def test_bytes_that_are_not_text_are_refused(tmp_path):
    with pytest.raises(ValueError, match="row 2, must have UTF-8 text in column 'picture'"):
        rows(parquet(tmp_path / "t.parquet", {"picture": [b"a", b"\xff\xd8"]}))


def test_rows_are_read_without_torch():
    script = "import sys, balent.data.identities, balent.data.columns; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
