"""The pages use the words of the glossary in CONTRIBUTING.md; what still has another one is listed by file."""

import re

import pytest

from tests.docs.pages import ROOT

# The right column of the glossary, as it would stand in prose; code, printed output and link targets are not looked at.
PRIVATE = {
    "like": r"\b(?:[Aa]|[Ee]ach|every|one|no|new|newer|last|latest|older|oldest|of) likes?\b|\blikes\b|\bunlike[ds]?\b(?= item)",
    "place": r"(?<!\b[Ii]n )(?<!take the )(?<!takes the )\bplaces?\b(?! of\b)",
    "people": r"\b(?:people|persons?|somebody|someone else|everybody|nobody|whoever)\b",
    "figure": r"(?<!table and )\bfigures?\b",
    "leads": r"\btold apart\b|\bleads?\b(?! to\b)",
    "by lot": r"\bby lot\b",
    "strength": r"(?<![Rr]egularization )\bstrengths?\b",
    "operator": r"(?<![Pp]roximal )\boperators?\b",
    "slope": r"\bslopes?\b",
    "totals": r"\btotals\b",
    "cuts": r"\bcuts\b",
    "bundle": r"\bbundles?\b",
    "course": r"(?<!of )\bcourses?\b",
    "unit": r"\bunits?\b(?= of work| that| does| takes)",
    "taste": r"\btastes?\b|\bheaviest formulas?\b",
    "twin": r"\btwins?\b",
    "attack": r"\b(?:campaign|attack)s?\b",
    "mend": r"\bmend(?:s|ed)?\b",
    "whole number": r"\bwhole numbers?\b",
    "crowding": r"\bcrowding\b|\bshort of\b",
}
PAGES = {
    str(path.relative_to(ROOT)): path
    for path in [
        ROOT / "README.md",
        ROOT / "notebooks" / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
}
# How often a page has such a word still, each with the reason.
EXCEPTIONS: dict[str, dict[str, int]] = {
    "docs/howto/clusters.md": {"operator": 1},  # of Kubernetes
    "docs/howto/factorization-machines.md": {"figure": 1},  # of a paper
    "docs/reproductions/measurements.md": {"figure": 1},  # of a paper
}


def prose(text):
    """Return the words that a reader reads: no code, no output, no targets of links, no comments."""
    text = re.sub(r"^(```+)(?!\{)[^\n]*\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4,}\S.*$|<!--.*?-->", "", text, flags=re.MULTILINE)
    text = re.sub(r"``.*?``|`[^`]*`|\]\([^)]*\)|https?://\S+", " ", text)
    return " ".join(text.split())


def found(path):
    """Return how often a page has each private word."""
    text = prose(path.read_text(encoding="utf-8"))
    counts = {word: len(re.findall(pattern, text, re.IGNORECASE)) for word, pattern in PRIVATE.items()}
    return {word: count for word, count in counts.items() if count}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_private_words_but_those_listed(page):
    assert found(PAGES[page]) == EXCEPTIONS.get(page, {})


def test_every_exception_is_of_a_page():
    assert not set(EXCEPTIONS) - set(PAGES)


def test_the_words_are_seen_in_prose_and_not_in_code(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Ordered by lot.\n\n```python\nlikes = 'mend'\n```\n\nSee `figures`. In place.\n")
    assert found(page) == {"by lot": 1}
    page.write_text("There each like is a place in a list, and nobody mends figures.\n")
    assert found(page) == {"like": 1, "place": 1, "people": 1, "figure": 1, "mend": 1}


if (
    __name__ == "__main__"
):  # python -m tests.docs.test_glossary: the list as it is now, with the words in their context
    for name, path in PAGES.items():
        for word, pattern in PRIVATE.items():
            for hit in re.finditer(pattern, prose(path.read_text(encoding="utf-8"))):
                text = prose(path.read_text(encoding="utf-8"))
                print(f"{name}: {word}: …{text[max(0, hit.start() - 40) : hit.end() + 30]}…")
