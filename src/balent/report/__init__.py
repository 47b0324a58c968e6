"""Reads records; writes tables, curves, comparisons with random and one HTML page. Needs no torch.

runs = load("runs")
print(*summary(runs).sentences, sep="\\n")
write_html(runs, "report.html")
"""

from balent.report.figure import write_figure as write_figure
from balent.report.load import Run as Run
from balent.report.load import Runs as Runs
from balent.report.load import load as load
from balent.report.page import write_html as write_html
from balent.report.plots import write_plot as write_plot
from balent.report.summary import Summary as Summary
from balent.report.summary import summary as summary
from balent.report.two_sets import TwoSets as TwoSets
from balent.report.two_sets import in_common as in_common
from balent.report.two_sets import two_sets as two_sets
