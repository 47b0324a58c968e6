"""JSON over HTTP: what is tried again, what is not, and what never leaves."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from helpers.label_studio import LEGACY, PERSONAL, served

from balent.apps.connect.http_json import Away, Denied, Server, Unsure, checked
from balent.apps.connect.secret_token import Token


def server(url, secret=PERSONAL, **options):
    options = {"sleep": lambda _: None, **options}
    return Server(url, Token(secret, "token.txt"), **options)


@pytest.mark.parametrize("secret", [PERSONAL, LEGACY])
def test_both_kinds_of_tokens_are_taken(url, secret):
    assert len(server(url, secret).ask("GET", "/api/users/")) == 4


def test_an_access_token_that_has_ended_is_replaced(url, stub):
    stub.lives = 2
    here = server(url)
    for _ in range(7):
        here.ask("GET", "/api/users/")
    assert sum(path == "/api/token/refresh/" for _, path in stub.requests) == 4


@pytest.mark.parametrize("secret", ["wrong.token.here", "wronglegacy"])
def test_a_wrong_token_is_refused_in_a_sentence_without_it(url, secret):
    """The stand-in repeats the token in its answer."""
    with pytest.raises(Denied) as error:
        server(url, secret).ask("GET", "/api/users/")
    said = str(error.value)
    assert "refuses the token from token.txt" in said
    assert "make a new one in Label Studio" in said
    assert secret not in said
    assert secret not in repr(server(url, secret))


@pytest.mark.parametrize("trouble", ["429", "502", "503", "lost"])
def test_pauses_double_and_have_an_end(url, stub, trouble):
    stub.trouble = lambda method, path: trouble
    pauses = []
    with pytest.raises(Away, match=r"does not answer: .*is Label Studio running there"):
        server(url, LEGACY, sleep=pauses.append, patience=10.0).ask("GET", "/api/users/")
    if trouble != "429":  # whose pause the server names: one second
        assert all(0.5 * 0.5 * 2**i <= pause <= 0.5 * 2**i for i, pause in enumerate(pauses))
    assert 10 <= sum(pauses) < 40


def test_a_server_that_comes_back_is_asked_again(stub, url):
    left = iter(["503", "502", "429", "lost"])
    stub.trouble = lambda method, path: next(left, None)
    assert len(server(url).ask("GET", "/api/users/")) == 4


@pytest.mark.parametrize("trouble", ["502", "lost"])
def test_what_must_not_be_done_twice_is_not_repeated(url, stub, trouble):
    stub.create({"title": "one", "label_config": ""}, {})
    stub.trouble = lambda method, path: trouble if path.endswith("/import") else None
    with pytest.raises(Unsure):
        server(url).ask("POST", "/api/projects/1/import", [{"data": {}}], once=True)
    assert len(stub.tasks) == (trouble == "lost")


def test_what_was_refused_for_a_moment_is_repeated(url, stub):
    stub.create({"title": "one", "label_config": ""}, {})
    left = iter(["429", "503"])
    stub.trouble = lambda method, path: next(left, None) if path.endswith("/import") else None
    server(url).ask("POST", "/api/projects/1/import", [{"data": {}}], once=True)
    assert len(stub.tasks) == 1


def test_nobody_there_is_said(stub):
    with served(stub) as url:
        pass
    with pytest.raises(Away, match="Connection refused"):
        server(url, patience=0.0).ask("GET", "/api/users/")


def test_a_redirect_is_refused_since_it_would_take_the_token_along(url, stub):
    stub.trouble = lambda method, path: "moved"
    with pytest.raises(Denied, match=r"sends us on to 'http://127\.0\.0\.1:1/elsewhere'; give that address as --url"):
        server(url, LEGACY).ask("GET", "/api/users/")


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8080", "ftp://a", "http://", "http://a:99999", "http://a/?x=1", "http://a/#x", "file:///etc"]
)
def test_an_address_is_one(url):
    with pytest.raises(ValueError, match="the address must be like"):
        checked(url)


def test_an_address_has_no_password():
    with pytest.raises(ValueError, match="must not have a name or a password") as error:
        checked("http://ann:secret@host")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "open"),
    [("http://127.0.0.1:8080", False), ("https://labels.example.org", False), ("http://10.0.0.7", True)],
)
def test_an_address_without_encryption_is_known(url, open):
    assert server(url).is_open is open


class Odd(BaseHTTPRequestHandler):
    """Answers with whatever the path says."""

    def do_GET(self):
        content = {"/html": b"<html>", "/deep": b"[" * 100_000, "/cut": b'{"a": 1}'}.get(self.path, b"")
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) + 9 * (self.path == "/cut")))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def odd():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Odd)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server(f"http://127.0.0.1:{made.server_address[1]}", LEGACY, patience=0.0)
    made.shutdown()
    made.server_close()


@pytest.mark.parametrize("path", ["/html", "/deep", "/cut"])
def test_an_answer_that_is_not_json_is_trouble(odd, path):
    with pytest.raises(Away):
        odd.ask("GET", path)


def test_no_content_is_nothing(odd):
    assert odd.ask("GET", "/empty") is None
