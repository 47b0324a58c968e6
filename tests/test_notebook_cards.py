"""What objects look like in a notebook: true, escaped, small, and without anything to fetch."""

import html
import re

import numpy as np
import pytest
import torch
from helpers.made_up import LABELS, run

import balent
from balent.acquisition import notebook_bar
from balent.acquisition.progress import counting
from balent.notebook_cards import SHOWN, card
from balent.project.standing import Standing
from balent.report.summary import summary
from balent.types import Picks

COIN = torch.tensor([[[0.9, 0.1], [0.5, 0.5]]], dtype=torch.float64)  # 1 point, 2 draws, 2 classes


def cells(said):
    return re.findall(r"<td[^>]*>(.*?)</td>", said)


def test_all_text_of_a_card_is_escaped():
    said = card("<b>", ["<i>", "h"], [["<script>", '"&']], ["<img src=x>"])
    assert "&lt;b&gt;" in said
    assert cells(said) == ["&lt;script&gt;", "&quot;&amp;"]
    assert not re.search(r"<(b|i|script|img)\b", said)


def test_picks_are_shown_with_what_is_known_of_them():
    picks = Picks(np.array([7, 3]), np.array([0.5, 0.25]), errors=np.array([0.1, 0.2]), stability=0.5, plan="a <plan>")
    said = picks._repr_html_()
    assert cells(said) == ["7", "0.5", "0.1", "3", "0.25", "0.2"]
    assert "2 picks, best first" in said
    assert "two halves of the draws agree on 50% of the picks" in said
    assert "a &lt;plan&gt;" in said


def test_moments_are_shown_with_the_class_that_leads():
    """P = 0.9 and 0.5: mean 0.7, std 0.2; H(0.7) = 0.611 and the mean of H(0.9) and H(0.5) is (0.325 + 0.693) / 2."""
    assert cells(balent.Moments.of(COIN)._repr_html_()) == ["0", "0", "0.700 ± 0.200", "0.611", "0.509"]


def test_a_class_that_is_impossible_has_no_entropy_and_is_no_nan():
    certain = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    assert cells(balent.Moments.of(certain)._repr_html_()) == ["0", "0", "1.000 ± 0.000", "0.000", "0.000"]


@pytest.mark.parametrize("picks", [True, False])
def test_a_long_pool_is_cut_short_and_says_so(picks):
    draws = COIN.expand(1000, -1, -1)
    shown = balent.select(draws, "bald", k=1000) if picks else balent.Moments.of(draws)
    said = shown._repr_html_()
    assert said.count("<tr>") == SHOWN + 1
    assert "… and 990 more" in said
    assert len(said) < 4000


def test_a_project_is_shown_with_its_classes_and_its_accuracy(tmp_path):
    (tmp_path / "rows.csv").write_text("id,x\n" + "".join(f"{i},{i}\n" for i in range(40)))
    project = balent.Project.create(tmp_path / "p", tmp_path / "rows.csv", classes=["<low>", "high"], id="id")
    project.tell({str(i): "<low>" if i < 20 else "high" for i in range(30)}, who="<ann>")
    said = project.status()._repr_html_()
    assert "30 of 40 items labelled" in said
    assert cells(said)[:2] == ["&lt;low&gt;", "20"]
    assert "people: &lt;ann&gt; 30" in said
    assert project.status()["audit"]["sentence"] in said


def test_the_standing_of_a_project_is_a_dictionary_as_before(tmp_path):
    assert Standing({"items": 3})["items"] == 3


def test_a_report_is_shown_with_its_sentence_and_the_best_strategy_first():
    """A strategy that needs half the labels, whose curves are the same for all seeds."""
    runs = [run(name, seed, speed) for name, speed in (("random", 1), ("<own>", 2)) for seed in range(3)]
    shown = summary(runs)
    (found,) = shown.findings
    said = shown._repr_html_()
    assert [cells(said)[i] for i in (0, len(found.counts) + 1)] == ["&lt;own&gt;", "random"]
    assert cells(said)[1] == f"{100 * found.accuracy('<own>', found.counts[0])[0]:.1f}"
    assert html.escape(found.sentences[0]) in said


def test_what_was_not_evaluated_is_a_dash():
    (found,) = summary([run("random", 0), run("bald", 0, labels=LABELS[:5])], at=[400]).findings
    assert "–" in cells(found._repr_html_())


# ── progress in a notebook ───────────────────────────────────────────────────────────────────────


def test_a_script_is_no_notebook():
    assert not notebook_bar.is_notebook()


def test_progress_in_a_notebook_is_one_line_that_changes_in_place(monkeypatch):
    """IPython stands in: a shell that is not of a terminal, and a display that keeps what it shows."""
    shown = []

    class Handle:
        def update(self, line):
            shown.append(line)

    def display(line, display_id):
        shown.append(line)
        return Handle()

    class Shell:
        pass

    modules = {
        "IPython": type("IPython", (), {"get_ipython": staticmethod(Shell)}),
        "IPython.display": type("display", (), {"HTML": str, "display": staticmethod(display)}),
    }
    for name, module in modules.items():
        monkeypatch.setitem(notebook_bar.sys.modules, name, module)
    with counting(True, 30) as advance:
        for _ in range(3):
            advance(10)
    assert 'value="0" max="30"' in shown[0]
    assert 'value="30" max="30"' in shown[-1]
    assert "30 of 30 points" in shown[-1]
