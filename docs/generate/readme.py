"""The measured table of the README, from `benchmarks/results/libraries.csv`: `python -m docs.generate.readme` writes it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "libraries.csv"
MARKED = re.compile(
    r"(<!-- generated: python -m docs\.generate\.readme -->\n).*?(<!-- end -->)", re.DOTALL
)
SETTINGS = {
    "movielens-1m/half-profile": "MovieLens 1M, at random",
    "bookcrossing/half-profile": "BookCrossing, at random",
    "movielens/half-profile-time": "MovieLens 100K, in time",
}
COSTS = {"fit seconds": ("fit", "s"), "list ms": ("a list", "ms"), "memory MB": ("memory", "MB")}


def rounded(value: float) -> str:
    """Return a number with about two digits."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def table() -> str:
    """Return one row per model: AUC and nDCG@10 in each setting, and what it costs in the first."""
    with open(RESULTS, encoding="utf-8", newline="") as file:
        found = {(row["setting"], row["library"], row["model"]): row for row in csv.DictReader(file)}
    first = next(iter(SETTINGS))
    heads = ["model", *SETTINGS.values(), *(label for label, _ in COSTS.values())]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for setting, library, model in found:
        if setting != first:
            continue
        label = f"`{model}`" if library == "recsys" else f"{library} `{model}`"
        scores = [found[other, library, model] for other in SETTINGS]
        cells = [f"{float(row['auc']):.3f} / {float(row['ndcg@10']):.3f}" for row in scores]
        costs = [f"{rounded(float(scores[0][key]))} {unit}" for key, (_, unit) in COSTS.items()]
        lines.append(f"| {label} | " + " | ".join([*cells, *costs]) + " |")
    return "\n".join(lines) + "\n"


def filled(text: str) -> str:
    """Return the README's text with the table as it is now."""
    return MARKED.sub(lambda marks: marks[1] + table() + marks[2], text)


if __name__ == "__main__":
    page = ROOT / "README.md"
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
