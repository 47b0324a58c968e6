"""Is the wheel fit for release?  `make wheel` first.

Installs dist/*.whl, without extras, into an empty environment with no compiler on its path. Then the tests of the
kernel and of a bare install run against the installed wheel, in a folder that has the tests but not the sources.
Prints sizes, auditwheel's tag, the install time, the kernel and the tests that passed; the exit code says whether all
is well.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
TESTED = ("tests/kernels", "tests/apps/test_bare_install.py")
TOOLS = ("pytest", "hypothesis", "mpmath", "beartype")
COMPILERS = ("cc", "gcc", "c++", "g++", "clang", "cmake", "ninja", "make")
KEPT = ("HOME", "LANG", "TMPDIR", "PIP_", "SSL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")  # of the environment
NEEDED = ("CMakeLists.txt", "LICENSE", "README.md", "src/balent/kernels/native/bindings.cpp", "tests/kernels")
UNWANTED = ("results", "docs", "benchmarks", "build")


def main() -> None:
    sdist, wheel = only("*.tar.gz"), only("*.whl")
    check_sdist(sdist)
    check_wheel(wheel)
    with tempfile.TemporaryDirectory() as place:
        check_installed(wheel, Path(place))


def only(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"{DIST} must hold one {pattern}, but holds {len(found)}; run: make wheel")
    return found[0]


def check_sdist(path: Path) -> None:
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    lacking = [needed for needed in NEEDED if not any(name.startswith(needed) for name in names)]
    unwanted = sorted({name.partition("/")[0] for name in names} & set(UNWANTED))
    if lacking or unwanted:
        raise SystemExit(f"{path.name} lacks {lacking} and has {unwanted}, which nobody needs to build it")
    report("sdist", f"{path.name}, {size(path)}, {len(names)} files")


def check_wheel(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        kernels = [file for file in archive.infolist() if "/_native" in file.filename]
        licences = [name for name in archive.namelist() if name.endswith("/LICENSE")]
    if len(kernels) != 1 or not licences:
        raise SystemExit(f"{path.name} must have one compiled kernel and the LICENSE, but has {kernels}, {licences}")
    report("wheel", f"{path.name}, {size(path)}; the kernel in it {kernels[0].file_size / 1e3:,.0f} kB")
    if sys.platform == "linux":
        shown = said([sys.executable, "-m", "auditwheel", "show", str(path)]).replace("\n", " ")
        report("auditwheel", shown.partition('platform tag: "')[2].partition('"')[0])


def check_installed(wheel: Path, place: Path) -> None:
    """In an environment of its own, with only that environment on its path."""
    said([sys.executable, "-m", "venv", str(place / "venv")])
    bin = place / "venv" / "bin"
    env = {name: value for name, value in os.environ.items() if name.upper().startswith(KEPT)} | {"PATH": str(bin)}
    compilers = [name for name in COMPILERS if shutil.which(name, path=env["PATH"])]
    if compilers:
        raise SystemExit(f"the environment must have no compiler, but has {compilers}")
    held = ["--quiet", "--constraint", str(ROOT / "constraints.txt")]
    start = perf_counter()
    said([bin / "python", "-m", "pip", "install", *held, "--only-binary", ":all:", str(wheel)], env=env)
    report("install", f"{perf_counter() - start:.0f} s with torch and numpy, no compiler on the path")
    report("version", said([bin / "balent", "--version"], env=env, cwd=place).strip())
    kernel = said([bin / "balent", "list"], env=env, cwd=place).splitlines()[-1]
    report("kernel", kernel.removeprefix("kernel").strip())
    if "compiled" not in kernel:
        raise SystemExit("the wheel works, but without its compiled kernel")
    said([bin / "python", "-m", "pip", "install", *held, *TOOLS], env=env)
    report("tests", tested(bin, env, place))


def tested(bin: Path, env: dict[str, str], place: Path) -> str:
    """The last line of pytest, beside the tests but not the sources."""
    shutil.copytree(ROOT / "tests", place / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    home = said([bin / "python", "-c", "import balent; print(balent.__file__)"], env=env, cwd=place).strip()
    if not Path(home).is_relative_to(bin.parent):
        raise SystemExit(f"the tests must use the installed wheel, but would use {home}")
    return said([bin / "python", "-m", "pytest", *TESTED], env=env, cwd=place).splitlines()[-1]


def said(words: list[str | Path], env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a program prints; where it fails, all it printed is shown and this ends."""
    done = subprocess.run(words, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout[-5000:])
        raise SystemExit(f"failed with exit code {done.returncode}: {' '.join(map(str, words))}")
    return done.stdout


def size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.2f} MB"


def report(what: str, how: str) -> None:
    print(f"{what:11}{how}", flush=True)


if __name__ == "__main__":
    main()
