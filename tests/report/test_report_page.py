"""What is written: table, CSV, plots, and a page that works in a browser without a network."""

import csv
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from helpers import made_up
from rich.console import Console

from balent.report import load, summary, tables, write_html, write_plot
from balent.report.load import Run
from balent.report.look import look

STRATEGIES = {"balentacq": 1.6, "power:bald": 1.2, "random": 1.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three strategies, two seeds, images; and a second experiment without images."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    images = [made_up.png(rng.integers(0, 255, (8, 8))) for _ in range(40)]
    for name, speed in STRATEGIES.items():
        for seed in (0, 1):
            made_up.write(folder, made_up.records(name, seed, speed, noise=0.003, images=images))
    made_up.write(folder, made_up.records("bald", 0, 1.3, experiment="</script><b>odd"))
    return load(folder)


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(runs, path)
    return path


def test_the_table_has_accuracy_area_gain_and_labels_saved(runs):
    screen = Console(file=io.StringIO(), width=160)
    screen.print(summary(runs, at=[100, 200]).table())
    said = screen.file.getvalue()
    gain, saved = r"\+\d\.\d \(.?\d+\.\d to \d+\.\d\)", r"3\d % \("
    assert re.search(rf"balentacq\s+\d\d\.\d ± \d\.\d\s+\d\d\.\d ± \d\.\d\s+\d\d\.\d\s+{gain}\s+{saved}", said)
    assert "100 labels" in said
    assert "95 % CI corrected for 2 comparisons (Holm). saved: labels saved, secondary, 95 % CI" in " ".join(
        said.split()
    )
    assert said.index("balentacq") < said.index("power:bald") < said.index("random")  # the largest area first


def test_gains_are_shown_from_the_first_labels_on(runs):
    """A line per label count with an interval; where labels are the same there is nothing to compare."""
    screen = Console(file=io.StringIO(), width=160)
    screen.print(summary(runs).table())
    said = screen.file.getvalue().split("points ahead of random")[1]
    counts = [line.split()[0] for line in said.splitlines() if re.match(r"\s*\d+ .*to", line)]
    assert len(counts) >= 4
    assert counts == sorted(counts, key=int)
    assert tables.gain_at(np.zeros(3)) == "0.0"
    assert tables.gain_at(np.array([0.01, 0.02, 0.03])) == "+2.0 (−0.5 to 4.5)"  # 2 ± 4.303 · 1 / √3


def test_the_table_fits_into_a_narrow_terminal(tmp_path):
    for name, speed in {"power_bald": 1.2, "balentacq": 1.6, "random": 1.0}.items():
        for seed in range(3):
            made_up.write(tmp_path, made_up.records(name, seed, speed, noise=0.01))
    screen = Console(file=io.StringIO(), width=80)
    screen.print(summary(load(tmp_path)).table())
    rows = screen.file.getvalue().split("area: mean accuracy")[0].splitlines()
    assert len(rows) == 5  # title, heading and a line for each: nothing is broken


def test_the_csv_has_every_number(runs, tmp_path):
    s = summary(runs)
    s.csv(tmp_path / "report.csv")
    rows = list(csv.DictReader((tmp_path / "report.csv").read_text(encoding="utf-8").splitlines()))
    mine = [row for row in rows if (row["experiment"], row["strategy"]) == ("digits", "balentacq")]
    (at_100,) = [row for row in mine if row["quantity"] == "accuracy" and row["at"] == "100"]
    expected = [run.series("accuracy")[4] for run in runs if run.strategy == "balentacq"]
    assert float(at_100["mean"]) == pytest.approx(np.mean(expected))
    assert float(at_100["std"]) == pytest.approx(np.std(expected, ddof=1))
    (saved,) = [row for row in mine if row["quantity"] == "labels_saved"]
    assert float(saved["low"]) < float(saved["mean"]) < float(saved["high"])
    assert saved["p"] == ""  # secondary: not tested
    (gain,) = [row for row in mine if row["quantity"] == "area_gain"]
    c = s.findings[1].comparisons["balentacq"]
    shown = [float(gain[key]) for key in ("mean", "low", "high", "p")]
    assert shown == pytest.approx([c.gain, c.low, c.high, c.p])
    (end,) = [row for row in mine if row["quantity"] == "final_gain"]
    assert (end["at"], end["p"]) == ("400", "")
    assert {row["quantity"] for row in mine} >= {"nll", "brier", "ece", "epistemic", "area", "seconds_train"}
    odd = [row for row in rows if row["strategy"] == "bald"]
    assert {row["std"] for row in odd} == {""}  # one seed has no spread
    assert [path.name for path in tmp_path.iterdir()] == ["report.csv"]


def test_plots_are_light_and_the_same_every_time(runs, tmp_path):
    first, second, other = (tmp_path / name for name in ("a.svg", "b.svg", "a.png"))
    write_plot(runs, first, metrics=["accuracy"])
    write_plot(runs, second, metrics=["accuracy"])
    write_plot(runs, other)
    assert first.read_bytes() == second.read_bytes()
    assert b"balentacq" in first.read_bytes()
    assert 10_000 < other.stat().st_size < 400_000


def test_a_plot_of_another_kind_is_refused_in_words(runs, tmp_path):
    with pytest.raises(ValueError, match=r"must end in .png, .svg, .pdf, but is curves.txt"):
        write_plot(runs, tmp_path / "curves.txt")
    with pytest.raises(ValueError, match="unknown metric 'acuracy'"):
        write_plot(runs, tmp_path / "curves.png", metrics=["acuracy"])
    with pytest.raises(ValueError, match="no runs to report on"):
        write_plot([], tmp_path / "curves.png")


# ── the page ─────────────────────────────────────────────────────────────────────────────────────


class Addresses(HTMLParser):
    """Everything by which a page could fetch something."""

    def __init__(self):
        super().__init__()
        self.found = []
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.found += [value for name, value in attrs if name in ("src", "href", "action", "data", "srcset", "poster")]


def test_the_page_fetches_nothing(page):
    text = page.read_text(encoding="utf-8")
    parser = Addresses()
    parser.feed(text)
    assert parser.found == []
    assert not {"link", "iframe", "object", "embed", "b"} & set(parser.tags)  # "<b>odd" stayed text
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")


def carried(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    return json.loads(found[1])


def test_the_page_carries_the_data(page, runs):
    odd, digits = carried(page)
    assert odd["title"] == "</script><b>odd"
    first = digits["strategies"][0]
    assert first["name"] == "balentacq"
    assert first["curves"]["accuracy"]["labels"] == made_up.LABELS.tolist()
    assert len(first["runs"][0]["rounds"]) == 19  # the last round queries nothing
    assert len(digits["images"]) == 40  # each image once, however often it was picked
    for said in summary(runs).sentences:
        assert said.split(": ", 1)[1] in page.read_text(encoding="utf-8")


def test_the_primary_result_comes_first_and_the_chart_next(page):
    text = page.read_text(encoding="utf-8").split("<main>")[1]
    order = ['<p class="headline">', 'class="chart"', "Bands: ± one standard deviation", "<table>", 'class="sentences"']
    places = [text.index(part, text.index('data-group="1"')) for part in order]
    assert places == sorted(places)


def test_remarks_are_folded_behind_the_results(tmp_path):
    made_up.write(tmp_path, made_up.records("bald", 0))
    made_up.write(tmp_path, made_up.records("bald", 1, labels=made_up.LABELS[:5]))
    write_html(load(tmp_path), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    folded = text.index('<details class="remarks"><summary>1 remark on the records</summary>')
    assert text.index("</section>") < folded < text.index("bald, seed 1, ends at 100 of 400 labels")


def test_colours_are_those_of_every_other_report(page):
    for group in carried(page):
        for strategy in group["strategies"]:
            own = look([strategy["name"]])[strategy["name"]]
            assert (strategy["light"], strategy["dark"]) == (own.light, own.dark)


def test_the_page_has_a_style_for_dark_screens(page):
    """Every colour that is not a variable is set for both, or would be the same in both."""
    text = page.read_text(encoding="utf-8")
    style = text[text.index("<style>") : text.index("</style>")]
    assert style.count("@media screen and (prefers-color-scheme: dark)") == 2
    named = set(re.findall(r"(?:color|background|stroke|fill|border[a-z-]*):[^;}]*?(#[0-9a-f]{3,6})\b", style))
    assert named <= {"#e69f00"}  # the edge of remarks


def test_scores_that_json_has_no_number_for_are_shown_as_words(tmp_path):
    made = made_up.records()[:2]
    made[0]["scores"][:2] = ["inf", "-inf"]
    made[0]["thumbnails"] = ["javascript:alert(1)", "bm8gcG5n"]  # neither is a PNG
    made_up.write(tmp_path, made)
    write_html(load(tmp_path), tmp_path / "r.html")
    picks = carried(tmp_path / "r.html")[0]["strategies"][0]["runs"][0]["rounds"][0]["picks"]
    assert [pick[1] for pick in picks[:2]] == ["inf", "-inf"]
    assert [pick[3] for pick in picks[:2]] == [None, None]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--virtual-time-budget=3000", "--dump-dom"),
]
CLICKS = """<script>
addEventListener("error", (event) => { document.title = "error: " + event.message; });
addEventListener("load", () => {
  const section = document.querySelector('section[data-group="1"]');
  const all = (query) => [...section.querySelectorAll(query)];
  const lines = () => all(".line").map((line) => line.dataset.strategy);
  const chart = section.querySelector(".chart");
  const seen = { sections: document.querySelectorAll("section .chart svg").length, lines: lines() };
  const button = all(".legend button")[0];
  button.click();
  seen.hidden = [lines(), button.getAttribute("aria-pressed")];
  button.click();
  seen.shown = lines();
  const before = all(".line")[0].getAttribute("points");
  all(".metrics input")[1].click();
  const after = all(".line")[0].getAttribute("points");
  seen.metric = [chart.querySelector("svg").getAttribute("aria-label"), before !== after];
  const { left, top, width } = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent("pointermove", { clientX: left + width, clientY: top + 50 }));
  seen.hover = section.querySelector(".tip").innerText;
  chart.dispatchEvent(new PointerEvent("pointerleave"));
  seen.left = section.querySelector(".tip").hidden;
  for (const key of ["ArrowRight", "ArrowRight"]) chart.dispatchEvent(new KeyboardEvent("keydown", { key }));
  seen.keys = section.querySelector(".readout").textContent;
  const strategy = section.querySelector("select.strategy");
  const pictures = () => all(".round img").map((image) => image.alt).join();
  const first = pictures();
  strategy.value = "random";
  strategy.dispatchEvent(new Event("change"));
  const second = pictures();
  const seed = section.querySelector("select.seed");
  seed.value = "1";
  seed.dispatchEvent(new Event("change"));
  seen.classes = [all(".round li b")[0].textContent, all(".classes")[0].textContent];
  seen.picks = [all(".round").length, all(".round img").length, first !== "", second !== pictures()];
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const result = document.createElement("pre");
  result.id = "seen";
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
});
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
def test_a_browser_draws_the_page_and_its_controls_work(page, tmp_path):
    copy = tmp_path / "clicked.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", CLICKS), encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", copy.as_uri()],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
    assert found, re.findall(r"<title>.*?</title>", done.stdout) or done.stderr[-2000:]
    seen = json.loads(found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    names = ["balentacq", "power:bald", "random"]
    assert seen["sections"] == 2
    assert seen["lines"] == seen["shown"] == names
    assert seen["hidden"] == [names[1:], "false"]
    assert seen["metric"] == ["negative log-likelihood by number of labels", True]
    assert seen["hover"].startswith("400 labels")
    assert all(name in seen["hover"] for name in names)
    assert seen["left"] is True
    assert seen["keys"].startswith("40 labels")  # the second of the label counts
    assert seen["classes"][0] in map(str, range(10))
    assert seen["classes"][1].startswith("Classes: ")
    assert seen["picks"] == [19, 19 * 20, True, True]
    assert seen["overflow"] == 0


def test_seconds_of_scoring_leave_out_the_round_that_queries_nothing():
    """The last round of a run only trains and evaluates."""
    records = [
        {"labels": 20, "accuracy": 0.5, "picks": [1, 2], "seconds": {"train": 1.0, "evaluate": 0.5, "score": 8.0}},
        {"labels": 40, "accuracy": 0.6, "picks": [], "seconds": {"train": 3.0, "evaluate": 0.5, "score": 0.0}},
    ]
    (f,) = summary([Run("digits", "bald", 0, tuple(records), Path())]).findings
    assert f.seconds("bald") == {"train": 2.0, "evaluate": 0.5, "score": 8.0}
    assert f.seconds_in_all("bald") == 13.0
