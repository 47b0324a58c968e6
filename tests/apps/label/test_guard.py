"""The guard: every row of the security list of the labelling page is a test here, or in test_media.py."""

import base64
import hashlib
import json
import re
import socket
import subprocess
import sys

import pytest
from helpers.labelling_page import (
    HOME,
    PORT,
    client_of,
    event,
    journal,
    of_rows,
    pool,
    served,
    shown,
    token_of,
)
from starlette.testclient import TestClient

from balent.apps.label.guard import LARGEST
from balent.apps.label.people import People
from balent.apps.label.serving import Address, bound

COOKIE = f"balent-{PORT}"
POLICY = "default-src 'none'"


@pytest.fixture
def client(desk):
    """A browser that has opened its link."""
    return client_of(desk)


@pytest.fixture
def stranger(desk):
    """A browser that has not."""
    return client_of(desk, cookie=False)


@pytest.fixture
def token(desk):
    return token_of(People(desk.project.path))


def good(desk, **more):
    return event("label", pool(desk)[0], label="cat", **more)


# ── the link ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_token_of_a_link_becomes_a_cookie_and_leaves_the_address(stranger, token):
    """An address with a token would end up in the history, in screenshots and in mails."""
    answer = stranger.get("/history", params={"token": token, "show": "mine"})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/history?show=mine"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}={token};")
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert token not in answer.text
    assert stranger.get("/api/status").status_code == 200


def test_the_cookie_is_named_after_the_port(desk, token):
    """Cookies are shared by all ports of a machine: two projects would overwrite each other's."""
    app, _ = served(desk)
    assert app.cookie == COOKIE
    other = TestClient(app, base_url=HOME, cookies={"balent-8766": token})
    assert other.get("/api/status").status_code == 401


@pytest.mark.parametrize("wrong", ["", "x", "0" * 40, "é", "\u202e", "🙂" * 20])
def test_a_wrong_token_opens_nothing(stranger, wrong):
    answer = stranger.get("/", params={"token": wrong})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "needs its link" in answer.text


def test_a_token_of_another_project_opens_nothing(tmp_path, stranger):
    (tmp_path / "other").mkdir()
    other = People(of_rows(tmp_path / "other").path)
    assert stranger.get("/", params={"token": token_of(other)}).status_code == 401
    stranger.cookies.set(COOKIE, token_of(other))
    assert stranger.get("/api/status").status_code == 401


def test_a_wrong_token_does_not_help_even_with_a_good_cookie(client):
    assert client.get("/", params={"token": "x"}).status_code == 401


def test_each_person_has_a_link_and_is_known_by_it(desk):
    app, people = served(desk, ["ann", "bob"])
    for name in ("ann", "bob"):
        browser = TestClient(app, base_url=HOME, follow_redirects=False)
        browser.get("/", params={"token": token_of(people, name)})
        assert browser.get("/api/status").json()["who"] == name
    assert len(people.tokens) == 2


def test_the_command_that_opens_a_browser_has_a_link_that_works_once(desk):
    """Other users of the machine can read the arguments of commands: what they see is worth nothing afterwards."""
    app, people = served(desk)
    ticket = people.ticket(HOME)
    assert token_of(people) not in ticket
    browser = TestClient(app, base_url=HOME, follow_redirects=False)
    assert browser.get(ticket).status_code == 303
    assert browser.get("/api/status").status_code == 200
    assert browser.cookies[COOKIE] == token_of(people), "the cookie is valid when the server is started again"
    stranger = TestClient(app, base_url=HOME, follow_redirects=False)
    assert stranger.get(ticket).status_code == 401
    assert stranger.get("/api/status").status_code == 401


def test_two_people_in_one_browser_are_never_taken_for_each_other(desk):
    """The second link changes the cookie of the first person's tab: what that tab sends waits for its own link."""
    app, people = served(desk, ["ann", "bob"])
    browser = TestClient(app, base_url=HOME, cookies={COOKIE: token_of(people, "bob")}, follow_redirects=False)
    answer = browser.post("/api/event", json=good(desk) | {"who": "ann"})
    assert answer.status_code == 401
    assert "your own" in answer.json()["error"]
    assert not desk.project.state.last
    assert browser.post("/api/event", json=good(desk) | {"who": "bob"}).status_code == 200
    assert [label.who for label in desk.project.state.last.values()] == ["bob"]


@pytest.mark.parametrize("who", [True, 1, [], {}, "", "nobody"], ids=repr)
def test_a_name_that_is_not_the_sender_s_is_refused(desk, client, who):
    assert client.post("/api/event", json=good(desk) | {"who": who}).status_code == 401
    assert not desk.project.state.last


def test_the_secret_is_readable_by_its_owner_only_and_stays(desk):
    first = People(desk.project.path).tokens
    assert (desk.project.path / "secret").stat().st_mode & 0o077 == 0
    assert People(desk.project.path).tokens == first
    assert not [*desk.project.path.glob(".secret-*")]


def test_a_damaged_secret_is_refused_in_words(desk):
    """Half a secret could be guessed."""
    (desk.project.path / "secret").write_bytes(b"abc")
    with pytest.raises(ValueError, match="remove it"):
        People(desk.project.path)


@pytest.mark.parametrize("names", [["a", "a"], ["a\nb"], ["x" * 61], ["\u202eann"], ["\ud800"]])
def test_names_of_people_are_checked(desk, names):
    with pytest.raises(ValueError, match="name"):
        People(desk.project.path, names)


@pytest.mark.parametrize("path", ["/", "/grid", "/history", "/progress", "/classes", "/resolve", "/unknown"])
def test_a_page_without_its_cookie_loads_itself_again_once(stranger, path):
    """A link opened from a mail arrives without its cookie, which is for this site only; loading again sends it."""
    answer = stranger.get(path)
    assert answer.status_code == 401
    place = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', answer.text).group(1)
    assert place == "?again"
    again = stranger.get(path + place)
    assert again.status_code == 401
    assert "refresh" not in again.text
    assert "needs its link" in again.text


@pytest.mark.parametrize(
    "path", ["/api/next?tab=a", "/api/status", "/api/export", "/media/0", "/static/main.js", "/api/x"]
)
def test_without_the_cookie_nothing_is_served(stranger, path):
    answer = stranger.get(path)
    assert (answer.status_code, answer.json()) == (401, {"error": "open the link from the terminal again"})


def test_without_the_cookie_nothing_is_written(desk, stranger):
    before = len(journal(desk.project))
    for path, body in (("/api/event", good(desk)), ("/api/classes", {"action": "add", "name": "fish"})):
        assert stranger.post(path, json=body).status_code == 401
    assert len(journal(desk.project)) == before


@pytest.mark.parametrize(
    "others",
    [
        "theme=dark; ",
        'settings={"a":1}; ',
        "x=a b; ",
        '_xsrf=2|1a|2b; username-127-0-0-1-8888="2|1:0|10:1|23:x"; ',
        "föö=bär; ",
        "[]=1; ",
        'half="a; ',
        "=; ;; ",
        "expires=Wed, 01 Jan 2020 00:00:00; ",
    ],
)
def test_cookies_of_other_programs_do_not_hide_ours(stranger, token, others):
    """A browser sends the cookies of every port of 127.0.0.1: those of notebooks, of other people's servers."""
    for cookies in (f"{others}{COOKIE}={token}", f"{COOKIE}={token}; {others}"):
        answer = stranger.get("/api/status", headers={"cookie": cookies.encode("utf-8")})
        assert answer.status_code == 200, cookies


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "///evil.example",
        "/%2Fevil.example",
        "//evil.example/%2e%2e",
        "/\\evil.example",
        "/%5Cevil.example",
        "/%09/evil.example",
        "/%0d%0aSet-Cookie:a=b",
        "/@evil.example",
        "/https://evil.example",
    ],
)
def test_a_link_does_not_lead_to_another_site(stranger, token, path):
    from urllib.parse import urljoin, urlsplit

    answer = stranger.get(f"{HOME}{path}?token={token}")
    assert answer.status_code == 303
    place = answer.headers["location"]
    assert urlsplit(urljoin(HOME, place)).netloc == f"127.0.0.1:{PORT}"
    assert not re.match(r"[/\\]{2}", place)
    assert not re.search(r"[\\\s]", place)
    assert len(answer.headers.get_list("set-cookie")) == 1


# ── from where ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_local_names_are_allowed(client, host):
    assert client.get("/api/status", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost",
        f"127.0.0.1.evil.example:{PORT}",
        f"evil.example@127.0.0.1:{PORT}",
        "",
        ":",
        f":{PORT}",
        f"127.0.0.1:{PORT}.evil.example",
        "[",
        f"[::2]:{PORT}",
    ],
)
def test_any_other_name_is_refused(client, host):
    """DNS rebinding: a site may give its own name the address 127.0.0.1."""
    answer = client.get("/api/status", headers={"host": host})
    assert answer.status_code == 421
    assert "--allowed-host" in answer.json()["error"]


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}:99", f"localhost:{PORT}:", "labels.example.org:80:80", "x:1"])
def test_a_name_with_something_after_its_port_is_refused(desk, host):
    client = client_of(desk, hosts=("labels.example.org",))
    assert client.get("/api/status", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/api/event", "/api/status", "/media/0"])
def test_other_methods_are_refused(desk, client, method, path):
    answer = client.request(method, path, json=good(desk), headers={"origin": "http://evil.example"})
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert not desk.project.state.last


def test_a_wrong_name_is_refused_before_the_token_is_looked_at(stranger, token):
    answer = stranger.get("/", params={"token": token}, headers={"host": "evil.example"})
    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers


def test_a_name_that_was_allowed_is_allowed_with_any_port(desk):
    client = client_of(desk, hosts=("Labels.example",))
    for host, status in (("labels.example", 200), ("labels.example:8443", 200), ("x.labels.example", 421)):
        assert client.get("/api/status", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        f"http://127.0.0.1:{PORT}.evil.example",
        f"http://evil@127.0.0.1:{PORT}",
        "",
        "http://",
        "http://[",
        "http://[::1",
        "evil",
    ],
)
@pytest.mark.parametrize("path", ["/api/event", "/api/classes"])
def test_a_post_from_another_origin_is_refused(desk, client, path, origin):
    before = len(journal(desk.project))
    answer = client.post(path, json=good(desk), headers={"origin": origin})
    assert answer.status_code == 403
    assert answer.json()["error"]
    assert len(journal(desk.project)) == before


def test_a_post_from_our_own_origin_is_accepted(desk, client):
    assert client.post("/api/event", json=good(desk), headers={"origin": HOME}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "nonsense"])
@pytest.mark.parametrize("mode", ["cors", "no-cors", "websocket"])
def test_requests_that_another_site_makes_are_refused(desk, client, site, mode):
    """A page of another port of this machine is the same site: its requests carry our cookie."""
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
    assert client.get("/api/export", headers=headers).status_code == 403
    assert client.get("/media/0", headers=headers).status_code == 403
    assert client.post("/api/event", json=good(desk), headers=headers).status_code == 403


def test_another_site_may_link_to_the_page_but_not_post(desk, client):
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=headers).status_code == 200
    assert client.post("/api/event", json=good(desk), headers=headers).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_our_own_page_is_served(desk, client, site):
    headers = {"sec-fetch-site": site, "sec-fetch-mode": "cors"}
    assert client.get("/api/status", headers=headers).status_code == 200
    assert client.post("/api/event", json=good(desk), headers=headers | {"origin": HOME}).status_code == 200


def test_no_other_origin_is_ever_allowed(desk, client):
    preflight = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answers = [
        client.options("/api/event", headers=preflight),
        client.get("/api/status", headers={"origin": "http://evil.example"}),
        client.post("/api/event", json=good(desk), headers={"origin": "http://evil.example"}),
    ]
    assert answers[0].status_code >= 400
    assert not any(name.startswith("access-control") for answer in answers for name in answer.headers)


def test_headers_of_a_proxy_mean_nothing_without_one(desk, token):
    forwarded = {"x-forwarded-host": "labels.example", "x-forwarded-proto": "https", "x-forwarded-for": "127.0.0.1"}
    plain, behind = (client_of(desk, cookie=False, hosts=("labels.example",), proxy=proxy) for proxy in (False, True))
    for browser, secure in ((plain, False), (behind, True)):
        answer = browser.get("/", params={"token": token}, headers=forwarded)
        assert ("secure" in answer.headers["set-cookie"].lower().split("; ")) is secure
        assert answer.headers["location"] == "/"
    evil = {"host": "evil.example", "x-forwarded-host": f"127.0.0.1:{PORT}"}
    assert plain.get("/", headers=evil).status_code == 421
    assert behind.get("/", headers=evil).status_code == 421


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────


def test_every_answer_forbids_whatever_the_page_does_not_need(desk, client, stranger, token):
    answers = {
        "page": client.get("/"),
        "script": client.get("/static/main.js"),
        "icon": client.get("/static/icon.svg"),
        "json": client.get("/api/status"),
        "written": client.post("/api/event", json=good(desk)),
        "download": client.get("/api/export"),
        "missing": client.get("/nothing"),
        "no picture": client.get("/media/7"),
        "method": client.get("/api/event"),
        "delete": client.delete("/api/event"),
        "refused": client.post("/api/event", json={}),
        "broken": client.post("/api/event", content=b"{", headers={"content-type": "application/json"}),
        "form": client.post("/api/event", data={"a": "b"}),
        "slash": client.get("/grid/"),
        "host": client.get("/", headers={"host": "evil.example"}),
        "origin": client.post("/api/event", json={}, headers={"origin": "http://evil.example"}),
        "again": stranger.get("/"),
        "locked": stranger.get("/?again"),
        "unknown": stranger.get("/api/status"),
        "welcome": stranger.get("/", params={"token": token}),
        "too large": client.post("/api/event", json={"note": "x" * LARGEST}),
    }
    for name, answer in answers.items():
        headers = answer.headers
        policy = {part.strip() for part in headers["content-security-policy"].split(";")}
        assert {
            POLICY,
            "script-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "require-trusted-types-for 'script'",
        } <= policy, name
        assert "unsafe" not in headers["content-security-policy"], name
        assert headers["x-content-type-options"] == "nosniff", name
        assert headers["referrer-policy"] == "no-referrer", name
        assert headers["x-frame-options"] == "DENY", name
        assert headers["cross-origin-resource-policy"] == "same-origin", name
        assert headers["cache-control"], name
        assert len(headers.get_list("content-security-policy")) == 1, name


def test_the_page_without_its_link_is_styled_by_the_one_style_that_the_policy_names(stranger):
    answer = stranger.get("/?again")
    [style] = re.findall(r"<style>(.*?)</style>", answer.text)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'self' 'sha256-{digest}';" in answer.headers["content-security-policy"]


def test_an_error_that_nobody_expected_carries_the_policy_and_no_traceback(desk, client, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(desk, "disagreements", fail)
    answer = client.get("/api/disagreements")
    assert answer.status_code == 500
    assert POLICY in answer.headers["content-security-policy"]
    assert "secret detail" not in answer.text
    assert "Traceback" not in answer.text


def test_a_full_disk_is_said_in_a_sentence_and_may_be_tried_again(desk, client, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(desk.project, "happen_together", full)
    answer = client.post("/api/event", json=good(desk))
    assert answer.status_code == 503
    assert "No space left" in answer.json()["error"]


def test_the_page_has_no_inline_code_and_names_no_other_site(client):
    """The policy would stop it: then the page would be broken."""
    text = client.get("/").text
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\S", text)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text)
    for name in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert name.startswith(("/", "#", "data:"))
        assert not name.startswith("//")


def test_scripts_are_served_by_name_only(client):
    for name in (
        "..%2Fserver.py",
        "%2e%2e/server.py",
        "../server.py",
        "server.py",
        "page.html%00.js",
        ".",
        "%2F",
        "main.js/",
    ):
        answer = client.get(f"{HOME}/static/{name}")
        assert answer.status_code in (307, 404), name
        assert "import" not in answer.text


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "application/jsonp",
        "text/json",
        "application/json2",
        "application/ld+json",
    ],
)
def test_a_body_that_is_not_json_is_refused(desk, client, kind):
    """Forms of other sites can send the other types without asking first."""
    answer = client.post("/api/event", content=json.dumps(good(desk)), headers={"content-type": kind})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["error"]
    assert not desk.project.state.last


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_json_is_accepted(desk, client, kind):
    answer = client.post("/api/event", content=json.dumps(good(desk)), headers={"content-type": kind})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[",
        b"nul",
        b'{"a": 1}{',
        b"\xff\xfe\xfd",
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"'",
        b'"\\ud8',
        b"1" * 5000,
    ],
    ids=lambda body: repr(body[:8]),
)
@pytest.mark.parametrize("path", ["/api/event", "/api/classes"])
def test_broken_json_is_refused(client, path, body):
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_a_large_body_is_refused_by_its_length_and_while_it_is_read(desk, client):
    """A chunked body does not say how long it is."""
    headers = {"content-type": "application/json"}
    answer = client.post("/api/event", content=b" " * (LARGEST + 1), headers=headers)
    assert answer.status_code == 413
    answer = client.post("/api/event", content=iter([b" " * LARGEST, b" "]), headers=headers)
    assert answer.status_code == 413
    assert "65,536 bytes" in answer.json()["error"]
    padded = json.dumps(good(desk)).encode().ljust(LARGEST)
    assert client.post("/api/event", content=padded, headers=headers).status_code == 200
    padded = iter([padded[:1000], padded[1000:]])
    assert client.post("/api/event", content=padded, headers=headers).status_code == 200


async def called(app, method, path, token, body, headers=()):
    """One request by ASGI itself: the parts of its body, one by one. Returns the status and how many were read."""
    parts, sent = [*body], []
    count = 0

    async def receive():
        nonlocal count
        count += 1
        return {"type": "http.request", "body": parts[count - 1], "more_body": count < len(parts)}

    async def send(message):
        sent.append(message)

    found = [(b"host", f"127.0.0.1:{PORT}".encode()), (b"cookie", f"{COOKIE}={token}".encode()), *headers]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    await app({**scope, "headers": found, "http_version": "1.1", "scheme": "http", "root_path": ""}, receive, send)
    return sent[0]["status"], count


def test_a_body_that_does_not_end_is_not_read_to_its_end(desk, token):
    import asyncio

    app, _ = served(desk)
    parts = [b" " * 1024] * 1000
    json_only = [(b"content-type", b"application/json")]
    status, read = asyncio.run(called(app, "POST", "/api/event", token, parts, json_only))
    assert (status, read) == (413, LARGEST // 1024 + 1)


@pytest.mark.parametrize(
    "change",
    [
        {"label": True},
        {"label": 1},
        {"label": 1.5},
        {"label": None},
        {"label": ["cat"]},
        {"label": {"name": "cat"}},
        {"label": "unknown"},
        {"label": ""},
        {"item": True},
        {"item": 1.0},
        {"item": "1"},
        {"item": None},
        {"item": [1]},
        {"item": {}},
        {"items": [1], "item": 1},
        {"id": ""},
        {"id": "x" * 65},
        {"id": 12345678},
        {"id": None},
        {"id": "12345678\n"},
        {"id": "../../etc"},
        {"event": "delete"},
        {"event": True},
        {"event": ["label"]},
        {"event": {"label": 1}},
        {"event": None},
        {"event": "skip"},
        {"tab": ""},
        {"tab": "x" * 65},
        {"tab": "a b"},
        {"tab": "a\n"},
        {"tab": 1},
        {"tab": None},
        {"seconds": -1},
        {"seconds": "1"},
        {"seconds": True},
        {"seconds": 1e300},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": 10**400},
        {"seconds": []},
        {"note": 1},
        {"note": None},
        {"note": "x" * 2001},
        {"replace": 1},
        {"replace": "true"},
        {"replace": None},
        {"__proto__": {}},
        {"\ud800": 1},
    ],
    ids=repr,
)
def test_types_are_strict(desk, client, change):
    """`true` is not a label, and 1.0 is not an item. Nothing of it is recorded."""
    body = json.dumps({**good(desk), **change})
    answer = client.post("/api/event", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert len(answer.json()["error"].split()) > 2
    assert not desk.project.state.last
    assert not desk.project.state.asked


@pytest.mark.parametrize(
    "body", [{}, {"tab": "one"}, {"tab": "one", "page": True}, {"tab": "one", "page": -1}, {"tab": "<", "page": 1}, []]
)
def test_the_farewell_of_a_page_is_checked(desk, client, body):
    held = shown(desk, "one")
    assert client.post("/api/leave", json=body).status_code == 422
    assert desk.leases.held() == {*held}


@pytest.mark.parametrize("name", ["id", "event", "item", "label", "tab"])
def test_what_is_missing_is_refused(desk, client, name):
    body = {key: value for key, value in good(desk).items() if key != name}
    assert client.post("/api/event", json=body).status_code == 422


@pytest.mark.parametrize(
    "items", [[], [True], [1, 1], [1.0], ["1"], [None], [[1]], {}, "1", 1, None, [*range(201)]], ids=repr
)
def test_lists_of_items_are_checked(desk, client, items):
    body = {key: value for key, value in good(desk).items() if key != "item"} | {"items": items}
    assert client.post("/api/event", json=body).status_code == 422
    assert not desk.project.state.last


@pytest.mark.parametrize("item", [-1, 60, 10**9, 2**63, 10**100])
def test_an_item_that_does_not_exist_is_not_found(desk, client, item):
    answer = client.post("/api/event", json=good(desk) | {"item": item})
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("there is no item")


@pytest.mark.parametrize("body", [None, True, 1, "label", [], [{}], {}], ids=repr)
@pytest.mark.parametrize("path", ["/api/event", "/api/classes"])
def test_a_body_that_is_no_object_of_ours_is_refused(client, path, body):
    answer = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"action": "drop", "name": "cat"},
        {"action": True, "name": "cat"},
        {"action": ["add"], "name": "cat"},
        {"action": "add"},
        {"action": "add", "name": True},
        {"action": "add", "name": 1},
        {"action": "add", "name": None},
        {"action": "add", "name": ["x"]},
        {"action": "add", "name": "x" * 3000},
        {"action": "add", "name": "a\u0000b"},
        {"action": "add", "name": "fish", "key": 1},
        {"action": "add", "name": "fish", "note": {}},
        {"action": "rename", "name": "cat"},
        {"action": "rename", "name": "cat", "to": 1},
        {"action": "merge", "name": "cat", "to": "cat"},
    ],
    ids=repr,
)
def test_changes_of_classes_are_checked(desk, client, body):
    answer = client.post("/api/classes", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]
    assert [look.name for look in desk.looks()] == ["cat", "dog", "bird"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/next",
        "/api/next?tab=",
        "/api/next?tab=a%20b",
        "/api/next?tab=a&n=-1",
        "/api/next?tab=a&n=x",
        "/api/next?tab=a&n=1.5",
        "/api/next?tab=a&n=",
        "/api/next?tab=a&n=%C2%B2",
        "/api/next?tab=a&n=99999999999",
        f"/api/next?tab={'a' * 65}",
        "/api/grid?class=cat",
        "/api/grid?class=cat&tab=a&without=1,x",
        "/api/history?show=x",
        "/api/history?from=-1",
        "/api/history?n=x",
        "/api/export?format=zip",
        "/api/export?format=folders",
        "/api/export?format=../x",
    ],
)
def test_queries_are_checked(client, path):
    answer = client.get(path)
    assert answer.status_code == 422
    assert answer.json()["error"]


# ── the machine ──────────────────────────────────────────────────────────────────────────────────────


def test_the_page_listens_at_this_machine_only():
    with bound(Address(port=0)) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.org", ""])
def test_other_machines_are_let_in_only_with_a_name(host):
    with pytest.raises(ValueError, match="--allowed-host"):
        Address(host).check()
    Address(host, names=("labels.example",)).check()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_this_machine_needs_no_name(host):
    Address(host).check()


def test_a_port_that_is_taken_is_refused_in_words_or_the_next_one_is_taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="--port"):
            bound(Address(port=other.getsockname()[1]))


def test_two_servers_that_start_at_the_same_time_do_not_get_the_same_port():
    """A socket that is bound but does not listen yet can be bound once more, and then connections are refused."""
    with bound(Address(port=0)) as one:
        with pytest.raises(OSError, match="--port"), bound(Address(port=one.getsockname()[1])):
            pass
        with socket.create_connection(one.getsockname(), timeout=2):  # the browser may come before the server is ready
            pass


def test_a_port_that_does_not_exist_is_refused_in_words():
    with pytest.raises(OSError, match="--port"):
        bound(Address(port=70000))


def test_an_address_of_another_machine_is_refused_in_words():
    with pytest.raises(OSError, match="--host"):  # documentation only: nobody has it (RFC 5737)
        bound(Address("192.0.2.7", port=0))


@pytest.mark.parametrize("name", ["http://labels.example", "labels.example/", "a b", "", "x:y", "ann@labels.example"])
def test_what_is_no_name_of_a_machine_is_refused(name):
    with pytest.raises(ValueError, match="must be a name such as"):
        Address(names=(name,)).check()


@pytest.mark.parametrize("name", ["labels.example", "my-machine:8443", "10.0.0.7", "[fe80::1]", "[::1]:80"])
def test_names_and_addresses_of_machines_are_allowed(name):
    Address("0.0.0.0", names=(name,)).check()


def test_links_are_printed_as_others_call_this_machine():
    assert Address(port=1).url(8765) == "http://127.0.0.1:8765"
    assert Address("::1").url(8765) == "http://[::1]:8765"
    assert Address("0.0.0.0", names=("labels.example",)).url(8765) == "http://labels.example:8765"
    assert Address(names=("labels.example",), proxy=True).url(8765) == "https://labels.example"


SERVES = """
import sys
from pathlib import Path
from helpers.labelling_page import client_of, desk_of, label, of_rows, of_table, of_texts, shown
from helpers.labelling import of_pictures
from balent.apps.label import serving

folder = Path(sys.argv[1])
projects = [
    of_rows(folder),
    of_texts(folder, [f"text {i}" for i in range(30)]),
    of_table(folder, [{"age": i, "city": "Oslo"} for i in range(30)]),
    of_pictures(folder, [f"{i}.png" for i in range(30)]),
]
for project in projects:
    desk = desk_of(project)
    client = client_of(desk)
    items = client.get("/api/next?tab=a&n=3").json()["items"]
    assert len(items) == 3
    label(desk, items[0]["item"])
    paths = ("/", "/api/status", "/api/history", "/api/disagreements", "/api/grid?class=cat&tab=a", "/static/main.js")
    for path in paths:
        assert client.get(path).status_code == 200, path
    for format in ("csv", "jsonl", "labelstudio"):
        assert client.get(f"/api/export?format={format}").status_code == 200
    assert client.get(f"/media/{items[0]['item']}").status_code == (200 if project.settings.kind == "images" else 404)
    assert client.post("/api/classes", json={"action": "add", "name": "fish"}).status_code == 200
heavy = [name for name in ("torch", "sklearn", "scipy", "transformers", "onnxruntime") if name in sys.modules]
assert not heavy, heavy
"""


def test_the_server_imports_no_torch(tmp_path):
    """It starts in a second and takes little memory: whatever it serves, of every kind of data."""
    command = [sys.executable, "-c", SERVES, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=180, env=_environment())
    assert found.returncode == 0, found.stderr


def _environment():
    import os
    from pathlib import Path

    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
