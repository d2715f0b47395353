"""The page of reports: whole, without scripts or addresses, and the pictures where the figures are."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from recsys import EASE, Popularity
from recsys.datasets import load_dataset
from recsys.evaluation import evaluate
from recsys.evaluation.page import forest_plot, report_document


@pytest.fixture(scope="module")
def report():
    models = {"<b>pop</b>": Popularity(), "ease & co": EASE()}
    return evaluate(load_dataset("sample"), models, folds=2, metrics=["auc", "ndcg@10", "coverage@10"])


class Balanced(HTMLParser):
    """Whether every element that is opened is closed, in order."""

    void = {"meta", "circle", "line"}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_escaped(report):
    text = report_document(
        "A & B",
        [
            ("run <1>", report, report.intervals(), "recsys evaluate --model '<x>'"),
            ("2", report, report.intervals(), "y"),
        ],
    )
    page = Balanced()
    page.feed(text)
    assert not page.open and text.startswith("<!doctype html>")
    tags = [tag for tag, _ in page.seen]
    assert "script" not in tags and "b" not in tags and "x" not in tags and tags.count("section") == 2
    assert tags.count("svg") == 6 and not [
        a for _, attrs in page.seen for a in attrs if a in ("src", "href")
    ]
    assert "run &lt;1&gt;" in text and "A &amp; B" in text and "--model &#x27;&lt;x&gt;&#x27;" in text
    for sentence in report.verdicts():
        assert sentence.split(" over users")[0].split(": ")[0] in text


@pytest.mark.parametrize("metric", ["auc", "ndcg@10", "coverage@10"])
def test_marks_stand_where_the_figures_are(report, metric):
    svg = forest_plot(report, metric, report.intervals())
    low, high = report.intervals()
    means = [r.metrics[metric].mean for r in report.results]
    ends = [
        v
        for r in report.results
        for v in (low[r.model, metric], high[r.model, metric])
        if np.isfinite(v)
    ]
    values = np.array([*means, *ends])
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]
    bars = [float(x) for pair in re.findall(r'x1="([\d.]+)" x2="([\d.]+)"', svg) for x in pair]
    places = np.array([*dots, *bars])
    assert len(places) == len(values) and len(bars) == (0 if metric == "coverage@10" else 4)
    share = (values - values.min()) / (values.max() - values.min())
    drawn = (places - places.min()) / (places.max() - places.min())
    assert drawn == pytest.approx(share, abs=2e-3)
