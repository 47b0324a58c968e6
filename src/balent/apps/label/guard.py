"""The guard: who may talk to the page, and how. Every request passes here first, before any route.

    Host            must be on the list (421), against DNS rebinding
    method          GET, HEAD or POST (405)
    Sec-Fetch-Site  must be same-origin or none, where a browser sends it (403)
    Origin          of a POST must be ours (403)
    cookie          made of the token in a link, which a redirect then removes from the address (401 without)
    body            JSON only (415), limited while it is read, chunked or not (413)

Answers carry a policy that lets the page load nothing from elsewhere, be framed by nobody, and run no inline code.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from balent.apps.label.people import People

LARGEST = 64 * 1024  # bytes of a body
LOCAL = ("127.0.0.1", "localhost", "[::1]")
METHODS = ("GET", "HEAD", "POST")
STYLE = (
    "body{margin:0;min-height:100vh;display:grid;place-content:center;justify-items:center;gap:12px;padding:24px;"
    "box-sizing:border-box;text-align:center;font:16px/1.5 system-ui,sans-serif;color:#66635b;background:#faf9f6}"
    "h1,p{margin:0;max-width:44ch;text-wrap:balance}h1{font-size:22px;font-weight:600;color:#22211e}"
    "@media(prefers-color-scheme:dark){body{color:#a5a29a;background:#171816}h1{color:#e9e7e1}}"
)
DIGEST = f"sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}"  # the one style in a page
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' '{DIGEST}'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
TOO_LARGE = f"the body is too large: at most {LARGEST:,} bytes are read"
# A link that is opened from a mail arrives without its cookie, which is for this site only: loading again sends it.
AGAIN = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>balent</title>'
LOCKED = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    f'<meta name="color-scheme" content="light dark"><title>balent</title><style>{STYLE}</style>'
    "<h1>This page needs its link</h1><p>Open the link that <code>balent label</code> printed in the terminal, or the "
    "one that you were sent.</p></html>"
)


@dataclass(frozen=True)
class Guard:
    """Wraps an application.

    hosts       names by which this server may be called, with or without a port; local names are always allowed
    proxy       a proxy in front speaks TLS, and says so in X-Forwarded-Proto
    """

    app: ASGIApp
    people: People
    port: int
    hosts: Iterable[str] = ()
    proxy: bool = False
    allowed: set[str] = field(init=False)
    anywhere: set[str] = field(init=False)  # names that are allowed with any port

    def __post_init__(self) -> None:
        local = {f"{name}:{self.port}" for name in LOCAL} | (set(LOCAL) if self.port == 80 else set())
        object.__setattr__(self, "anywhere", {host.lower() for host in self.hosts})
        object.__setattr__(self, "allowed", local | self.anywhere)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets
        headers = Headers(scope=scope)
        response = self._refusal(scope, headers)
        if response is None:
            response = await self._body(scope, headers, receive)
        await (response or self.app)(scope, receive, self._with_headers(send))

    # ── who, and from where ─────────────────────────────────────────────────────────────────────────

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Why this request is not answered; None if it is."""
        host = headers.get("host", "").lower()
        name, _, port = host.rpartition(":")
        if host not in self.allowed and not (name in self.anywhere and port.isdecimal()):
            return error(
                421, f"this page may not be called {host!r}; if that is a name of its machine, give --allowed-host NAME"
            )
        if scope["method"] not in METHODS:
            return error(405, "there is nothing here")
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not _is_navigation(scope, headers):
            return error(403, "another site may not use this page")
        if scope["method"] == "POST" and not self._is_ours(headers, host):
            return error(403, "another site may not send here")
        return self._known(scope, headers)

    def _is_ours(self, headers: Headers, host: str) -> bool:
        """Browsers name the origin of every POST; other clients have none."""
        return headers.get("origin", f"http://{host}").lower() in (f"http://{host}", f"https://{host}")

    def _known(self, scope: Scope, headers: Headers) -> Response | None:
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        token = query.pop("token", None)
        if token is not None and scope["method"] == "GET":
            return self._welcome(scope, headers, token, query)
        good, who = self.people.who(_cookie(headers, self.cookie))
        scope["balent.who"] = who
        return None if good else _locked(scope, query)

    @property
    def cookie(self) -> str:
        """Of this port: pages of several projects on one machine do not overwrite each other's."""
        return f"balent-{self.port}"

    def _welcome(self, scope: Scope, headers: Headers, given: str, query: dict[str, str]) -> Response:
        """The token becomes a cookie, and disappears from the address."""
        token = self.people.redeemed(given)
        if not self.people.who(token)[0]:
            return _locked(scope, {"again": ""})
        place = scope["path"] + (f"?{urlencode(query)}" if query else "")
        response = RedirectResponse(place if place.startswith("/") and not place.startswith("//") else "/", 303)
        secure = self.proxy and headers.get("x-forwarded-proto") == "https"
        response.set_cookie(self.cookie, token, httponly=True, samesite="strict", secure=secure, max_age=90 * 86400)
        return response

    # ── bodies ──────────────────────────────────────────────────────────────────────────────────────

    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> Response | None:
        """Reads the body; returns an answer that refuses it, or None."""
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            return error(415, "the body must be JSON: Content-Type: application/json")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST:
            return error(413, TOO_LARGE)
        parts, size = [], 0
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > LARGEST:
                return error(413, TOO_LARGE)
            if not message.get("more_body"):
                break
        try:
            scope["balent.body"] = json.loads(b"".join(parts))
        except (ValueError, RecursionError):
            return error(422, "the body is not JSON")
        return None

    def _with_headers(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        return sent


class Json(JSONResponse):
    """In ASCII: names of files may hold bytes that are not UTF-8, as half characters."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def error(status: int, sentence: str) -> Json:
    """A refusal in words."""
    return Json({"error": sentence}, status)


def _is_navigation(scope: Scope, headers: Headers) -> bool:
    """A link that a person opened, from a mail say: it shows the page, and no other site sees anything of it."""
    return scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"


def _cookie(headers: Headers, name: str) -> str:
    """Browsers send the cookies of all ports of a host, so those of other programs, in any form, are passed over."""
    for part in ";".join(headers.getlist("cookie")).split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""


def _locked(scope: Scope, query: dict[str, str]) -> Response:
    """401. A page loads itself again once; everything else gets a sentence."""
    if scope["path"].startswith(("/api", "/media", "/static")) or scope["method"] != "GET":
        return error(401, "open the link from the terminal again")
    if "again" in query:
        return HTMLResponse(LOCKED, 401)
    return HTMLResponse(AGAIN.format("?again"), 401)
