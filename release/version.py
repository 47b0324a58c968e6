"""Does a tag name the version that is released?  python release/version.py v0.2.0

pyproject.toml holds the version. CITATION.cff repeats it, and CHANGELOG.md has a closed section of it, with a date.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def version() -> str:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def cited() -> str:
    """What CITATION.cff says."""
    return re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)[1]


def closed() -> list[str]:
    """Versions with a closed section in the change log."""
    return re.findall(r"^## \[(\d[^]]*)] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def main(tag: str) -> None:
    if tag != f"v{version()}":
        raise SystemExit(f"the tag must be v{version()}, as in pyproject.toml, but is {tag}")
    if cited() != version():
        raise SystemExit(f"CITATION.cff must name {version()}, but names {cited()}")
    if version() not in closed():
        raise SystemExit(f"CHANGELOG.md must have a line '## [{version()}] - YYYY-MM-DD'; rename [Unreleased]")
    print(f"balent {version()}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("name the tag: python release/version.py v1.2.3")
    main(sys.argv[1])
