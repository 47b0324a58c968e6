"""Tokens: from a file or the environment, and never shown."""

import pytest

from balent.apps.connect.secret_token import VARIABLE, Token, token


def written(tmp_path, content):
    (tmp_path / "token.txt").write_bytes(content)
    return tmp_path / "token.txt"


@pytest.mark.parametrize("content", [b"a.b.c", b"a.b.c\n", b"  a.b.c \r\n"])
def test_a_file_has_a_token(tmp_path, content):
    found = token(written(tmp_path, content))
    assert (found.secret, found.is_personal) == ("a.b.c", True)


def test_the_environment_has_it_too_but_the_file_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0123abcd")
    assert (token(None).secret, token(None).is_personal) == ("0123abcd", False)
    assert token(written(tmp_path, b"a.b.c")).secret == "a.b.c"


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_no_token_is_said_with_what_to_do(tmp_path, monkeypatch, content):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(ValueError, match=r"token\.txt has no token; make one in Label Studio"):
        token(written(tmp_path, content))
    with pytest.raises(ValueError, match="the environment variable LABEL_STUDIO_TOKEN has no token"):
        token(None)


@pytest.mark.parametrize("content", [b"a b", b"a\nb", "é".encode(), b"\xff\xfe", b"a" * 9000, b"a\x00b"])
def test_a_file_of_something_else_is_refused_without_showing_it(tmp_path, content):
    with pytest.raises(ValueError, match="must hold a token and nothing else") as error:
        token(written(tmp_path, content))
    assert content.decode("utf-8", "replace") not in str(error.value)


def test_a_token_is_not_shown_when_it_is_printed():
    assert "secret" not in f"{Token('secret', 'x')!r} {Token('secret', 'x')}"
