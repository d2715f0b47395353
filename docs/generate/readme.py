"""The measured table of the README, from `benchmarks/results/auto.csv`: `python -m docs.generate.readme` writes it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "auto.csv"
MARKED = re.compile(
    r"(<!-- generated: python -m docs\.generate\.readme -->\n).*?(<!-- end -->)", re.DOTALL
)
SETTINGS = {
    "movielens-1m/half-profile": "MovieLens 1M, at random",
    "bookcrossing/half-profile": "BookCrossing, at random",
    "movielens/half-profile-time": "MovieLens 100K, in time",
}
MODELS = {
    "auto": "`auto`, a blend",
    "cf-komd:kernel=linear": "`cf-komd`, linear kernel",
    "msdw": "`msdw`",
    "ease": "`ease` (EASE)",
    "slim": "`slim` (SLIM)",
    "als": "`als` (implicit)",
    "bpr": "`bpr` (implicit)",
    "popularity": "popularity",
}


def rounded(seconds: float) -> str:
    """Return seconds with about two digits."""
    if seconds < 0.05:
        return "< 0.05 s"
    return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f} s"


def table() -> str:
    """Return one row per model, one column per setting: AUC, nDCG@10 and seconds of a fit."""
    with open(RESULTS, encoding="utf-8", newline="") as file:
        found = {(row["setting"], row["peer"]): row for row in csv.DictReader(file)}
    lines = ["| model | " + " | ".join(SETTINGS.values()) + " |", "|---|" + "---|" * len(SETTINGS)]
    for model, label in MODELS.items():
        cells = []
        for setting in SETTINGS:
            row = found[setting, model]
            auc, ndcg, seconds = (float(row[name]) for name in ("auc", "ndcg@10", "fit seconds"))
            cells.append(f"{auc:.3f} / {ndcg:.3f} / {rounded(seconds)}")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def filled(text: str) -> str:
    """Return the README's text with the table as it is now."""
    return MARKED.sub(lambda marks: marks[1] + table() + marks[2], text)


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
