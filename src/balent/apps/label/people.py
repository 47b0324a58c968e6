"""People and their links. A link has a token that only this project's server can make and check.

Tokens are made of the name and of a secret in the project's folder, which only its owner can read. So a link stays
valid when the server is started again, and removing the file `secret` ends all links.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

NAME = "secret"
LONGEST = 60  # characters of a person's name


class People:
    """Who may use the page: people by name, or one person without a name."""

    def __init__(self, folder: Path, names: Sequence[str] = ()) -> None:
        secret = secret_of(folder / NAME)
        self.tokens = {token(secret, name): name or None for name in checked(names) or [""]}
        self._tickets: dict[str, str] = {}  # for one use each: the token it stands for

    def who(self, given: str) -> tuple[bool, str | None]:
        """Whether a token is valid, and whose it is. All are compared, in constant time."""
        found = [name for known, name in self.tokens.items() if hmac.compare_digest(known.encode(), given.encode())]
        return bool(found), found[0] if found else None

    def links(self, address: str) -> dict[str | None, str]:
        """A link for each person."""
        return {name: f"{address}/?token={token}" for token, name in self.tokens.items()}

    def ticket(self, address: str) -> str:
        """A link that works once, for the command that opens a browser: other users can see commands."""
        once = secrets.token_hex(20)
        self._tickets[once] = next(iter(self.tokens))
        return f"{address}/?token={once}"

    def redeemed(self, given: str) -> str:
        """The token that a ticket stands for; anything else as it is."""
        return self._tickets.pop(given, given)


def token(secret: bytes, name: str) -> str:
    return hmac.new(secret, name.encode("utf-8", "backslashreplace"), hashlib.sha256).hexdigest()[:40]


def checked(names: Sequence[str]) -> list[str]:
    """Names of people: each once, one line, not too long."""
    for name in names:
        if not name or len(name) > LONGEST or not name.isprintable():
            raise ValueError(f"a person's name must be 1 to {LONGEST} printable characters, but one is {name!r}")
        if names.count(name) > 1:
            raise ValueError(f"people need different names, but {name!r} is given twice")
    return list(names)


def secret_of(path: Path) -> bytes:
    """Made once, complete or not there, and readable by its owner only."""
    if not path.exists():
        made = path.with_name(f".{NAME}-{secrets.token_hex(4)}")
        handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(32).encode())
            file.flush()
            os.fsync(file.fileno())
        made.rename(path)
    found = path.read_bytes()
    if len(found) < 32:
        raise ValueError(f"{path} is damaged; remove it: a new one is made, and with it new links")
    return found
