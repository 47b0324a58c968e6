"""What the documentation says is so: its examples run, and every command stands in it."""

import ast
import contextlib
import doctest
import importlib
import io
import json
import math
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import balent
from balent import MEASURES, STRATEGIES, kernels
from balent.apps import cli
from balent.data.sources import DATASETS

ROOT = Path(__file__).parent.parent
SOURCES = Path(balent.__file__).parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
COMMANDS = typer.main.get_command(cli.app).commands


def blocks(page, *languages):
    """(line, text) of each fenced block in one of these languages."""
    text = page.read_text(encoding="utf-8")
    return [(text[: b.start()].count("\n") + 1, b[2]) for b in FENCE.finditer(text) if b[1] in languages]


def named(path):
    return str(path.relative_to(ROOT))


# ── manifests ────────────────────────────────────────────────────────────────────────────────────


def manifests():
    """Those of docs/scale.md by kind: KubeRay's, and that of `ray up`."""
    yaml = pytest.importorskip("yaml", reason="manifests are read with PyYAML, which comes with ray")
    found = [yaml.safe_load(text) for _, text in blocks(ROOT / "docs" / "scale.md", "yaml")]
    return {manifest.get("kind", "ray up"): manifest for manifest in found}


def pinned():
    """The version of Ray that tests run with."""
    return re.search(r"^ray==(.+)$", (ROOT / "constraints.txt").read_text(), re.M)[1]


def test_the_job_of_kuberay_runs_a_command_that_there_is():
    """Options are parsed as the command line does it; one that does not exist would end with an exit code."""
    spec = manifests()["RayJob"]["spec"]
    program, name, *words = shlex.split(spec["entrypoint"])
    assert (program, name) == ("balent", "acquire")
    given = COMMANDS[name].make_context(name, words).params
    assert (given["engine"], given["address"], given["k"]) == ("ray", "auto", 500)
    kept = {mount["mountPath"] for mount in head_of(spec)["volumeMounts"]}
    assert all(any(str(given[name]).startswith(path) for path in kept) for name in ("resume", "output"))


def head_of(spec):
    return spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]


def test_all_machines_of_a_manifest_have_one_image_one_level_and_the_version_that_is_tested():
    spec, version = manifests()["RayJob"]["spec"], pinned()
    groups = [worker["template"]["spec"]["containers"][0] for worker in spec["rayClusterSpec"]["workerGroupSpecs"]]
    assert all((one["image"], one["env"]) == (head_of(spec)["image"], head_of(spec)["env"]) for one in groups)
    assert {item["name"] for item in head_of(spec)["env"]} >= {"OMP_NUM_THREADS", "BALENT_KERNEL"}
    assert spec["rayClusterSpec"]["rayVersion"] == version
    assert f"rayproject/ray:{version}-" in (ROOT / "docs" / "scale.md").read_text()
    assert f"ray[default]=={version}" in manifests()["ray up"]["setup_commands"][0]


def test_the_manifest_of_ray_up_obeys_the_schema_of_ray():
    ray = pytest.importorskip("ray", reason="the schema comes with ray")
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    jsonschema.validate(manifests()["ray up"], schema)


# ── Python ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=named)
def test_examples_in_python_run_one_after_the_other(page, tmp_path, monkeypatch):
    """Blocks of a page share their variables, as a reader who types them in would have it."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code in blocks(page, "python"):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile("\n" * line + code, str(page), "exec"), names)


def test_the_readme_has_an_example():
    assert blocks(ROOT / "README.md", "python")


NEEDS = {
    "hugging_face.py": "transformers",
    "label_tokens.py": "transformers",
    "own_estimator.py": "sklearn",
    "several_labels.py": "sklearn",
}  # packages that are not required


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=named)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    needs = NEEDS.get(example.name)
    if needs:
        pytest.importorskip(needs, reason=f"{example.name} shows a model of {needs}, which is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHORT", "1")  # examples that compare strategies run a part of it
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


def documented(path):
    """Docstrings of a file with examples in them; read from the source, since decorators hide them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, kinds) and ">>>" in (ast.get_docstring(node) or "")]
    return [(getattr(node, "name", path.stem), ast.get_docstring(node)) for node in nodes]


DOCTESTS = [(path, name, text) for path in sorted(SOURCES.rglob("*.py")) for name, text in documented(path)]


@pytest.mark.parametrize(("path", "name", "text"), DOCTESTS, ids=[f"{p.stem}.{name}" for p, name, _ in DOCTESTS])
def test_examples_in_docstrings_say_what_comes_out(path, name, text):
    module = importlib.import_module(".".join(path.relative_to(SOURCES.parent).with_suffix("").parts))
    test = doctest.DocTestParser().get_doctest(text, dict(vars(module)), name, str(path), 0)
    said = io.StringIO()
    doctest.DocTestRunner(verbose=False).run(test, out=said.write)
    assert said.getvalue() == ""


def test_docstrings_of_the_mathematics_have_examples():
    assert {"balentacq", "entropy", "score", "select", "Moments"} <= {name for _, name, _ in DOCTESTS}


# ── the command line ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_stands_in_the_documentation(name):
    command = COMMANDS[name]
    assert len(command.help) > 20
    for parameter in command.params:
        assert parameter.help, f"balent {name} {parameter.name} has no help"
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"## balent {name}\n" in page
    for parameter in command.params:
        assert all(option in page for option in parameter.opts if option.startswith("--") and option != "--help")


def test_tables_of_options_are_up_to_date():
    subprocess.run([sys.executable, str(ROOT / "docs" / "build.py"), "--check"], check=True)


def said_by(command, monkeypatch):
    """What a command of a transcript prints: ours in this process, others in a shell."""
    words = shlex.split(command)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
        kernels.active.cache_clear()
    if words[0] == "balent":
        return CliRunner().invoke(cli.app, words[1:], catch_exceptions=False).output
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout


def is_same(came, expected):
    """Equal cells, numbers to five digits: the last ones depend on the instruction set."""
    try:
        return came == expected or math.isclose(float(came), float(expected), rel_tol=1e-5)
    except ValueError:
        return (came, expected) == (kernels.active(), "avx512")  # the machine on which the page was written


def matches(came, expected):
    """Line by line and cell by cell; a line of … stands for any lines."""
    if "…" in expected:
        before, after = (part.splitlines() for part in expected.split("…"))
        lines = came.splitlines()
        return matches(
            "\n".join(lines[: len(before)] + lines[len(lines) - len(after) + 1 :]), "\n".join(before + after[1:])
        )
    cells = [[re.split(r"[,\s]+", line.strip()) for line in text.strip().splitlines()] for text in (came, expected)]
    return [len(line) for line in cells[0]] == [len(line) for line in cells[1]] and all(
        is_same(x, y) for one, other in zip(*cells, strict=True) for x, y in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", ["cli.md", "doctor.md"])
def test_transcripts_of_the_command_line_are_what_it_prints(name, tmp_path, monkeypatch, use_kernel):
    """`$ command` and what it prints. A `cat` of a file that is not there says what is in it."""
    monkeypatch.delitem(DATASETS, "few", raising=False)  # which tests/runs.py adds, if it came first in this process
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.out, "width", 200)
    page = ROOT / "docs" / name
    for _, script in blocks(page, "sh"):
        subprocess.run(["sh", "-ec", script.replace("python ", f"{shlex.quote(sys.executable)} ")], check=True)
    for _, transcript in blocks(page, "text"):
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", transcript, re.M):
            if command.startswith("cat ") and not Path(command[4:]).exists():
                Path(command[4:]).write_text(expected)
            else:
                came = said_by(command, monkeypatch)
                assert matches(came, expected.strip()), f"$ {command}\n{came}"


# ── names ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", {**MEASURES, **STRATEGIES})
def test_every_measure_and_strategy_is_described(name):
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert f"### {name}\n" in pages or f"`{name}`" in pages


def test_every_file_has_a_line_in_the_architecture():
    """Files that hold nothing but a docstring need none."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("## One line per file") :]
    listed = {name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`([^`]+)`", row)}
    assert [name for name in sorted(listed) if not (SOURCES / name).exists()] == []
    modules = [path for path in SOURCES.rglob("*.py") if len(ast.parse(path.read_text(encoding="utf-8")).body) > 1]
    assert [name for path in modules if (name := path.relative_to(SOURCES).as_posix()) not in listed] == []


def test_every_decision_stands_in_the_index():
    index = (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "decisions").glob("0*.md"):
        assert re.search(rf"^- {page.name[:4]} \[.*\({page.name}\)", index, re.M)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"`[^`]+`", "", FENCE.sub("", page.read_text(encoding="utf-8")))
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{named(page)} links to {target}"
