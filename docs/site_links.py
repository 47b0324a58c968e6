"""A hook of mkdocs: pages beside docs/, such as the change log, become pages of the site. Links lead there.

In the repository a page links to `../README.md` or `../examples/own_measure.py`. On the site the former is a page of
its own, and the latter a file to download.
"""

import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = ["CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "benchmarks/README.md", "results/README.md"]
README = "README.md"  # its place on the site is the first page
LINK = re.compile(r"\]\((?P<target>[^)#:\s]+)(?P<rest>#[^)]*)?\)")


def on_files(files: Files, config) -> Files:
    beside = [*PAGES, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "examples").iterdir() if path.is_file())]
    for name in beside:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for picture in sorted((ROOT / "benchmarks").glob("*.png")):
        files.append(File.generated(config, f"benchmarks/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page, config, files: Files) -> str:
    """Links as they are in the repository, from where the page is on the site."""
    name = page.file.src_uri
    outside = (ROOT / name).exists() and not (ROOT / "docs" / name).exists()
    here = PurePosixPath(name if outside else f"docs/{name}").parent

    def led(link: re.Match) -> str:
        target = resolved(here / link["target"])
        if target == README:
            target = "index.md"
        elif target.startswith("docs/"):
            target = target.removeprefix("docs/")
            target += "/index.md" if (ROOT / "docs" / target).is_dir() else ""
        elif files.get_file_from_path(target) is None:
            return link[0]
        up = "../" * (len(PurePosixPath(name).parts) - 1)
        return f"]({up}{target}{link['rest'] or ''})"

    return LINK.sub(led, markdown)


def resolved(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def on_post_page(output: str, page, config) -> str:
    """The theme would fetch this script from elsewhere; ours does the same without a network."""
    up = "../" * (len(PurePosixPath(page.file.dest_uri).parts) - 1)
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}reference/worker.js")
