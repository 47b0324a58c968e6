"""The token of a server: read from a file or from the environment, and never shown.

It is no argument of the command line, where other users of the machine could read it. No torch here.
"""

import os
from pathlib import Path

VARIABLE = "LABEL_STUDIO_TOKEN"
LONGEST = 8192  # characters


class Token:
    """A secret that does not appear when it is printed.

    Of Label Studio there are two kinds. A personal access token has the three parts of a JSON web token and is
    exchanged for access tokens that live for minutes; a legacy token is sent as it is.
    """

    def __init__(self, secret: str, source: str) -> None:
        self.secret, self.source = secret, source
        self.is_personal = secret.count(".") == 2

    def __repr__(self) -> str:
        return f"Token from {self.source}"


def token(file: Path | None) -> Token:
    """The token in a file, or in the environment."""
    source = str(file) if file is not None else f"the environment variable {VARIABLE}"
    text = _read(file) if file is not None else os.environ.get(VARIABLE, "")
    found = text.strip()
    if not found:
        raise ValueError(
            f"{source} has no token; make one in Label Studio (Account & Settings, Personal Access Token), and give "
            f"--token-file FILE or set {VARIABLE}"
        )
    if len(found) > LONGEST or not found.isascii() or not found.isprintable() or " " in found:
        raise ValueError(f"{source} must hold a token and nothing else: one line, letters, digits and dots")
    return Token(found, source)


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(LONGEST + 2).decode("utf-8", "replace")
