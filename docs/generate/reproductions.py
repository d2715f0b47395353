"""The pages of reproductions and measurements, from `benchmarks/results` and the printed values."""

import csv
import re
import shutil
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = ROOT / "docs" / "reproductions"
PAPERS = {
    "polato2018": "Polato 2018, Boolean kernels",
    "blondel2016": "Blondel et al. 2016, higher-order factorization machines",
    "atarashi2021sparse": "Atarashi et al. 2021, sparse factorization machines",
    "atarashi2021thesis": "Atarashi 2021, thesis: links and random features",
    "atarashi2019": "Atarashi et al. 2019, random feature maps",
}
# Printed beside ours: (paper, table, columns that name a row, compared columns with their factor).
KERNELS = ("mdnf", "mcnf", "dnf", "cnf", "rank")
RULES = {"machine": 100, "train": 100, "test": 100, "fidelity": 100, "generation": 1}
BESIDE: dict[str, tuple[str, str, tuple[str, ...], dict[str, float]]] = {
    "table_6_3.csv": ("Polato 2018", "Table 6.3", ("kernel",), dict.fromkeys(KERNELS, 1)),
    "table_7_2_means.csv": ("Polato 2018", "Table 7.2", ("task",), RULES),
    "links_table_3_3.csv": ("Atarashi 2021, thesis", "Table 3.3", ("model",), {"accuracy": 1}),
}
ERRORS = {
    "random_features_errors.csv": ("Atarashi 2021, thesis", "Table 4.2"),
    "random_features_errors_phishing.csv": ("Atarashi 2021, thesis", "Table 4.3"),
}
LONGEST, FOLDED = 260, 48  # rows of a table: longer ones are in the file only, or folded


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def printed() -> dict[tuple[str, str], dict[tuple[str, str], float]]:
    """Return the printed values: by paper and table, then by row and column."""
    out: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    for row in read(PAGES / "printed.csv"):
        out[row["paper"], row["table"]][row["row"], row["column"]] = float(row["value"])
    return out


def coverage() -> list[dict[str, str]]:
    """Return the entries of `coverage.csv`."""
    return read(PAGES / "coverage.csv")


def is_measured(entry: dict[str, str]) -> bool:
    """Return whether an entry is a table or figure, and no equation, theorem or algorithm."""
    return entry["element"].startswith(("Table", "Figure"))


def cell(text: str) -> str:
    """Return a cell: numbers with four digits, other text escaped."""
    try:
        value = float(text)
    except ValueError:
        return re.sub(r"([|*_$])", r"\\\1", text)
    return text if value.is_integer() and "e" not in text.lower() else f"{value:.4g}"


def markdown(rows: list[dict[str, str]]) -> str:
    """Return a table; empty columns are left out."""
    heads = [head for head in rows[0] if any(row.get(head) for row in rows)]
    lines = [
        "| " + " | ".join(head.replace("_", " ") for head in heads) + " |",
        "|---" * len(heads) + "|",
    ]
    return "\n".join(
        [*lines, *("| " + " | ".join(cell(row[head] or "") for head in heads) + " |" for row in rows)]
    )


def table(name: str) -> str:
    """Return a result as a table, with the printed values beside ours."""
    rows = read(RESULTS / name)
    if name in ERRORS:
        theirs = printed()[ERRORS[name]]
        for row in rows:
            row["printed"] = str(theirs.get((f"{row['kernel']}, {row['map']}", row["D over d"]), ""))
    elif name in BESIDE:
        source, label, keys, compared = BESIDE[name]
        theirs = printed()[source, label]
        for k, row in enumerate(rows):
            out: dict[str, str] = {}
            for column, value in row.items():
                out[column] = value
                if column in compared:
                    out[column] = repr(float(value) * compared[column])
                    ours_only = row.get("method", "ga") != "ga"  # printed is the genetic search
                    found = (
                        None if ours_only else theirs.get((", ".join(row[key] for key in keys), column))
                    )
                    out[f"{column}, printed"] = "" if found is None else repr(found)
            rows[k] = out
    if len(rows) > LONGEST:
        return f"{len(rows)} rows, in the file only."
    text = markdown(rows)
    return text if len(rows) <= FOLDED else f"::::{{dropdown}} {len(rows)} rows\n{text}\n::::"


def section(name: str) -> str:
    """Return picture, table and file of one result."""
    if name.endswith(".md"):
        text = (RESULTS / name).read_text(encoding="utf-8")
        return re.sub(
            r"^##", "###", text[text.index("\n") :], flags=re.M
        )  # the page has its own heading
    if name.endswith(".json"):
        text = (RESULTS / name).read_text(encoding="utf-8")
        return f"::::{{dropdown}} {name}\n```json\n{text[:20000]}\n```\n::::"
    picture = Path(name).with_suffix(".png").name
    parts = [f"![{picture}](results/{picture})"] if (RESULTS / picture).exists() else []
    return "\n\n".join([*parts, table(name), f"The file: {{download}}`{name} <results/{name}>`"])


def paper(key: str) -> str:
    """Return the page of one paper."""
    lines = [f"# {PAPERS[key]}", "", f"{{cite:t}}`{key}`. Our results beside the printed ones.", ""]
    shown: dict[str, str] = {}
    for entry in coverage():
        if entry["paper"] != key or not is_measured(entry):
            continue
        lines += [f"## {entry['element']}: {entry['about']}", ""]
        if entry["why"]:
            lines += [f"{entry['why'][0].upper()}{entry['why'][1:].rstrip('.')}.", ""]
        if entry["state"] == "no":
            lines[-2:] = [f"Not rerun: {entry['why']}.", ""]
        for name in entry["result"].split():
            lines += [f"See {shown[name]}." if name in shown else section(name), ""]
            shown.setdefault(name, entry["element"])
    text = "\n".join(lines)
    return text.replace("(results/", "(../results/").replace("<results/", "<../results/")


def index() -> str:
    """Return the list of all tables and figures, and of all statements with their tests."""
    entries = coverage()
    measured = [entry for entry in entries if is_measured(entry)]
    count = {
        state: sum(entry["state"] == state for entry in measured) for state in ("there", "in part", "no")
    }
    summary = (
        f"Of the {len(measured)} tables and figures that measure something, {count['there']} are rerun in "
        f"full, {count['in part']} in part and {count['no']} not."
    )
    lines = [(PAGES / "index.md").read_text(encoding="utf-8").replace("<!-- summary -->", summary)]
    for key, title in PAPERS.items():
        own = [entry for entry in entries if entry["paper"] == key]
        lines += [
            "",
            f"## {title}",
            "",
            f"Results: [](papers/{key}.md).",
            "",
            "| | what | rerun? | |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {e['element']} | {e['about']} | {e['state']} | {e['why']} |"
            for e in own
            if is_measured(e)
        ]
        lines += ["", ":::{dropdown} Equations, theorems and algorithms, each with its test", ""]
        lines += ["| | what | tested? | test | |", "|---|---|---|---|---|"]
        for e in own:
            if not is_measured(e):
                tests = ", ".join(f"`{name}`" for name in e["test"].split())
                lines.append(f"| {e['element']} | {e['about']} | {e['state']} | {tests} | {e['why']} |")
        lines += [":::", ""]
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """Write the pages, and put the results beside them."""
    shutil.copytree(RESULTS, folder / "results", ignore=shutil.ignore_patterns("*.md"))
    (folder / "papers").mkdir()
    for key in PAPERS:
        (folder / "papers" / f"{key}.md").write_text(paper(key), encoding="utf-8")
    (folder / "index.md").write_text(index(), encoding="utf-8")
    page = folder / "measurements.md"
    text = page.read_text(encoding="utf-8")
    filled = re.sub(r"<!-- result: (\S+) -->", lambda match: section(match[1]), text)
    page.write_text(filled, encoding="utf-8")
