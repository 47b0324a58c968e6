"""Imports point inward: mathematics knows nothing of learning, and neither of applications."""

import ast
import subprocess
import sys
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import version
from pathlib import Path

import pytest

import balent

ROOT = Path(balent.__file__).parent
# From the inside out. A module of a ring imports its own ring and those before it. A new file must be put into one.
RINGS = {
    "mathematics": {
        "types",
        "names",
        "by_name",
        "checks",
        "lookup",
        "adapt",
        "batches",
        "notebook_cards",
        "maths",
        "kernels",
        "geometry",
        "strategies",
    },
    "learning": {"predictors", "data", "acquisition", "loop"},
    "applications": {"contracts", "project", "simulation", "vision", "text", "report", "paper", "apps"},
}
FACADE = "balent"  # __init__: public names, re-exported
MATHEMATICS_NEEDS = {"torch", "numpy", "jaxtyping", "balent"}


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(tree):
    """Modules that are imported when the program runs, those within functions too."""
    for node in ast.iter_child_nodes(tree):
        if is_for_type_checkers(node):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in FILES else node.module for name in full)
        else:
            yield from imports(node)


IMPORTS = {name: set(imports(ast.parse(path.read_text(encoding="utf-8")))) for name, path in FILES.items()}


def ring_of(module):
    if module == FACADE:
        return None
    part = module.split(".")[1]
    found = [ring for ring, parts in RINGS.items() if part in parts]
    assert found, f"{module} stands in no ring: put it into RINGS, or into a file that has one"
    return found[0]


@pytest.mark.parametrize("module", [name for name in FILES if name != FACADE])
def test_imports_point_inward(module):
    order = list(RINGS)
    for other in IMPORTS[module]:
        if other.startswith("balent.") and (ring := ring_of(other)) is not None:
            assert order.index(ring) <= order.index(ring_of(module)), f"{module} imports {other}, which is further out"


@pytest.mark.parametrize("module", [name for name in FILES if name != FACADE and ring_of(name) == "mathematics"])
def test_mathematics_needs_torch_and_numpy_only(module):
    roots = {other.split(".")[0] for other in IMPORTS[module]}
    assert roots - MATHEMATICS_NEEDS <= set(sys.stdlib_module_names)


def test_no_module_imports_itself_in_a_circle():
    known = {name: {other for other in found if other in FILES and other != FACADE} for name, found in IMPORTS.items()}
    # A package is imported before its modules, which may import each other but not what the package re-exports.
    try:
        TopologicalSorter({name: others - {name} for name, others in known.items()}).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(error.args[1])) from None


def package_of(module):
    return ".".join(module.split(".")[:2])


def test_no_packages_import_each_other_in_a_circle():
    packages = {}
    for name, found in IMPORTS.items():
        if name != FACADE:
            others = {package_of(other) for other in found if other.startswith("balent.")}
            packages.setdefault(package_of(name), set()).update(others - {package_of(name)})
    try:
        TopologicalSorter(packages).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(error.args[1])) from None


@pytest.mark.parametrize("module", [name for name in FILES if package_of(name) not in ("balent.paper", "balent.apps")])
def test_the_paper_is_outermost(module):
    """Only applications with a command of their own show the paper's experiments. Names in strings are no imports."""
    assert not [other for other in IMPORTS[module] if package_of(other) == "balent.paper"]


def test_no_two_files_share_a_name():
    count = Counter(path.name for path in FILES.values() if path.name != "__init__.py")
    assert [name for name, files in count.items() if files > 1] == []


PLUG_INS = {"sampled", "predictor", "strategy", "chosen", "pool", "made"}
MAY_ASK = {"balent.adapt", "balent.names", "balent.checks"}


def test_one_place_asks_what_plug_ins_offer():
    """Elsewhere a protocol says it: no getattr or hasattr on an object that may be a user's own."""
    for name in FILES.keys() - MAY_ASK:
        for node in ast.walk(ast.parse(FILES[name].read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
                asked = ast.unparse(node.args[0]).removeprefix("self.").lstrip("_")
                assert asked not in PLUG_INS, f"{name}, line {node.lineno}: {ast.unparse(node)}"


def test_inside_the_package_nobody_goes_through_the_facade():
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "balent" and name != FACADE:
                for alias in node.names:
                    assert f"balent.{alias.name}" in FILES, f"{name} takes {alias.name} from the facade"


def test_the_library_neither_seeds_nor_prints():
    """Randomness is an argument; only applications speak."""
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("torch.manual_seed", "np.random.seed", "random.seed"), f"{name} seeds everybody"
                assert called != "print" or ring_of(name) == "applications", f"{name} prints"


def python(*words):
    """What this Python prints, in a process of its own."""
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout


HEAVY = "sorted({name.split('.')[0] for name in sys.modules} & {'torch', 'numpy', 'pyarrow', 'scipy', 'matplotlib'})"


def test_the_command_line_is_imported_without_torch():
    assert python("-c", f"import sys, balent.apps.cli; print({HEAVY})").strip() == "[]"


@pytest.mark.parametrize(
    "words", [["--help"], ["score", "--help"], ["list", "--help"], ["run", "--help"], ["report", "--help"]]
)
def test_help_does_not_wait_for_torch(words):
    script = f"import sys, balent.apps.cli; balent.apps.cli.app({words}, standalone_mode=False); print({HEAVY})"
    said = python("-c", script)
    assert "Usage" in said
    assert said.splitlines()[-1] == "[]"


def test_the_version_stands_in_one_place():
    said = python("-c", "from balent.apps.cli import app; app(['--version'], standalone_mode=False)")
    assert said == f"balent {version('balent')}\n"
    assert balent.__version__ == version("balent")


def test_the_package_is_imported_without_torch_until_it_is_used():
    assert python("-c", f"import sys, balent; print({HEAVY})").strip() == "[]"
    assert python("-c", f"import sys, balent; balent.score; print({HEAVY})").strip() == "['numpy', 'torch']"
