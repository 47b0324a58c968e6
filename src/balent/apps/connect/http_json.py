"""JSON over HTTP with a server that is sometimes busy, and sometimes away.

A server that is too busy (429, 503), fails (5xx) or is restarted is asked again, with pauses that double. A request
that must not be done twice is not repeated if it may have been done: then `Unsure` is raised, and the caller looks.
Redirects are refused, since they would take the token to another place. No torch here.
"""

import http.client
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from balent.apps.connect.secret_token import Token

TIMEOUT = 60.0  # seconds for an answer
FIRST, LONGEST = 0.5, 30.0  # seconds of a pause
PATIENCE = 60.0  # seconds of pauses in a row
LARGEST = 256 * 2**20  # bytes of an answer
LOCAL = ("127.0.0.1", "localhost", "::1")


class Away(OSError):
    """The server does not answer."""


class Unsure(OSError):
    """A request that must not be repeated may have been done."""


class Denied(ValueError):
    """The server has answered, and refuses the request."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class _Trouble(Exception):
    """Worth another try. `done` says whether the server may have done what was asked."""

    def __init__(self, reason: str, *, done: bool, pause: float | None = None) -> None:
        super().__init__(reason)
        self.done, self.pause = done, pause


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # urllib then raises the answer as an error


@dataclass
class Server:
    """A server by its address.

    url         with http:// or https://
    token       who we are
    patience    seconds of pauses in a row after which the server counts as away
    sleep       for tests
    """

    url: str
    token: Token
    patience: float = PATIENCE
    sleep: Callable[[float], None] = time.sleep
    _access: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.url = checked(self.url)
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if self.is_local:
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    @property
    def is_local(self) -> bool:
        """Is it on this machine?"""
        return urlsplit(self.url).hostname in LOCAL

    @property
    def is_open(self) -> bool:
        """Can others on the way read what is sent, the token among it?"""
        return not self.is_local and urlsplit(self.url).scheme == "http"

    def ask(self, method: str, path: str, body: object = None, *, once: bool = False) -> Any:
        """What the server answers, parsed.

        once        the request must not be done twice: raises Unsure where that could happen
        """
        waited, pause, renewed = 0.0, FIRST, False
        while True:
            try:
                return self._ask(method, path, body, self._header())
            except Denied as denied:
                if denied.status != 401 or renewed or not self.token.is_personal:
                    raise self._in_words(denied) from None
                self._access, renewed = None, True
            except _Trouble as trouble:
                if once and trouble.done:
                    raise Unsure(f"{self.url} did not say whether it did {method} {path}: {trouble}") from None
                if waited >= self.patience:
                    raise Away(f"{self.url} does not answer: {trouble}; is Label Studio running there?") from None
                wait = trouble.pause if trouble.pause is not None else pause * random.uniform(0.5, 1)
                self.sleep(wait)
                waited, pause = waited + wait, min(2 * pause, LONGEST)

    def _header(self) -> str:
        if not self.token.is_personal:
            return f"Token {self.token.secret}"
        if self._access is None:
            found = self._ask("POST", "/api/token/refresh/", {"refresh": self.token.secret}, None)
            access = found.get("access") if isinstance(found, dict) else None
            if not isinstance(access, str) or not access.isascii() or not access.isprintable():
                raise Denied(401, "it gave no access token")
            self._access = access
        return f"Bearer {self._access}"

    def _ask(self, method: str, path: str, body: object, header: str | None) -> Any:
        """One try."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        if header is not None:
            request.add_unredirected_header("Authorization", header)
        return self._parsed(self._read(request))

    def _read(self, request: urllib.request.Request) -> bytes:
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                content: bytes = answer.read(LARGEST + 1)
                left = answer.length  # of what it announced; None if it announced nothing
        except urllib.error.HTTPError as error:
            with error:
                raise self._error(error) from None
        except urllib.error.URLError as error:
            refused = isinstance(error.reason, ConnectionRefusedError)
            raise _Trouble(self._hidden(str(error.reason)), done=not refused) from None
        except (OSError, http.client.HTTPException) as error:
            raise _Trouble(self._hidden(str(error) or type(error).__name__), done=True) from None
        if len(content) > LARGEST:
            raise ValueError(f"{self.url} sent more than {LARGEST:,} bytes at once; nothing of it was used")
        if left:
            raise _Trouble("its answer was cut off", done=True)
        return content

    def _parsed(self, content: bytes) -> Any:
        try:
            return json.loads(content) if content else None
        except (ValueError, RecursionError):
            raise _Trouble("its answer is not JSON", done=True) from None

    def _error(self, error: urllib.error.HTTPError) -> Exception:
        """An answer that is not the one we want."""
        if error.code in (429, 503):
            pause = _seconds(error.headers.get("Retry-After"))
            return _Trouble(f"it is too busy ({error.code})", done=False, pause=pause)
        if error.code >= 500:
            return _Trouble(f"it failed ({error.code})", done=True)
        if 300 <= error.code < 400:
            target = error.headers.get("Location", "")
            return Denied(error.code, f"{self.url} sends us on to {target[:200]!r}; give that address as --url")
        return Denied(error.code, self._hidden(_reason(error.read(65536), error.code)))

    def _in_words(self, denied: Denied) -> Denied:
        if denied.status in (401, 403):
            return Denied(
                denied.status,
                f"{self.url} refuses the token from {self.token.source}: {denied}; make a new one in Label Studio "
                "(Account & Settings, Personal Access Token)",
            )
        return denied

    def _hidden(self, text: str) -> str:
        """Without secrets, whatever the server says."""
        for secret in filter(None, (self._access, self.token.secret)):
            text = text.replace(secret, "…")
        return text


def checked(url: str) -> str:
    """An address without what follows the last folder; names and passwords in it are refused."""
    parts = urlsplit(url)
    try:
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise ValueError(f"the address must be like http://127.0.0.1:8080, but is {url!r}")
    if parts.username or parts.password:
        raise ValueError("the address must not have a name or a password in it; a token is read from --token-file")
    return url.rstrip("/")


def _reason(content: bytes, status: int) -> str:
    """What an error says. Answers are those of Django: a detail, and sentences by field."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return f"answer {status}"
    fields = found.get("validation_errors")
    wrong = [f"{name}: {_first(said)}" for name, said in fields.items()] if isinstance(fields, dict) else []
    return "; ".join(wrong)[:500] or str(found.get("detail") or f"answer {status}")[:500]


def _first(said: object) -> object:
    return said[0] if isinstance(said, list) and said else said


def _seconds(header: str | None) -> float | None:
    """Of Retry-After; a date, which it may be too, is not read."""
    return min(float(header), LONGEST) if header is not None and header.isascii() and header.isdigit() else None
