"""What a release needs agrees: versions, the oldest packages, workflows and make."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RELEASE = ROOT / "release" / "version.py"


def lower_bounds():
    """The oldest version of each package that users may have; tools of developers are not among them."""
    extras = PROJECT["optional-dependencies"]
    lists = [PROJECT["dependencies"], *(needed for extra, needed in extras.items() if extra not in ("dev", "docs"))]
    found = [needed.split(">=") for needs in lists for needed in needs if not needed.startswith("balent[")]
    return {name: tuple(map(int, version.split("."))) for name, version in found}


def oldest():
    """The versions of constraints-lowest.txt."""
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if "==" in line]
    return {name: tuple(map(int, version.split("."))) for name, version in pins}


def test_the_citation_names_the_version():
    release = runpy.run_path(str(RELEASE))
    assert release["cited"]() == release["version"]() == PROJECT["version"]


def test_a_tag_of_another_version_is_refused():
    release = runpy.run_path(str(RELEASE))
    with pytest.raises(SystemExit, match=f"must be v{re.escape(PROJECT['version'])}, as in pyproject.toml, but is v9"):
        release["main"]("v9")


@pytest.mark.parametrize("name", lower_bounds())
def test_the_oldest_version_of_each_package_is_the_one_that_is_tried(name):
    """1.26 and 1.26.0 are the same version."""
    bound, tried = lower_bounds()[name], oldest()[name]
    assert tried[: len(bound)] == bound
    assert not any(tried[len(bound) :])


@pytest.mark.parametrize("workflow", ["tests", "wheels"])
def test_workflows_call_make(workflow):
    """The same commands for a person and for a machine."""
    text = (ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    called = re.findall(r"run: make (\S+)", text)
    assert called
    assert set(called) <= set(targets)
