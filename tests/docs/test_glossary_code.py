"""Docstrings, comments and messages of the package and the app use the glossary's words; exceptions are by file."""

import ast
import io
import re
import tokenize

import pytest

from tests.docs.pages import ROOT
from tests.docs.test_glossary import PRIVATE

FILES = {
    str(path.relative_to(ROOT)): path
    for folder in ("recsys", "app")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
# Calls whose texts users read: errors, warnings, notes, and the help of options, fields and commands.
TELLING = re.compile(r"\w*(?:Error|Warning|Exception|Refused)|warn|say|Option|Argument|Field|Meta")
# Calls whose texts the app shows.
SHOWING = re.compile(
    r"caption|info|text|\w*header|expander|\w*button|title|markdown|toast|popover|ask|counted"
)
# How often a file has such a word still, each with the reason.
EXCEPTIONS: dict[str, dict[str, int]] = {
    "app/views/interactions.py": {"strength": 1},  # a key of the address
    "recsys/data/reading.py": {"totals": 2},  # of a table
    "recsys/data/statistics.py": {"figure": 2},  # of the thesis
    "recsys/explain/association.py": {"people": 1},  # a sentence of the reasons
    "recsys/explain/rules/all_users.py": {"like": 1},  # a value
    "recsys/explain/rules/discovery.py": {"like": 1},  # a value
    "recsys/explain/rules/top_formulas.py": {"people": 2},  # sentences of the reasons
    "recsys/explain/text.py": {"like": 1, "people": 5},  # sentences of the reasons
    "recsys/fm/study_settings.py": {"strength": 2},  # the name of a parameter
    "recsys/kernels/propositional.py": {"operator": 5},  # of logic
}


def docstrings(tree):
    """Yield the docstrings of a module, also those of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.value.value


def messages(tree):
    """Yield the texts in calls of `TELLING`, with … for what is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if TELLING.fullmatch(name) or SHOWING.fullmatch(name):
                for given in [*node.args, *(word.value for word in node.keywords)]:
                    yield text_of(given)


def text_of(node):
    """Return the text of an expression: constants of strings, and … for all else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.FormattedValue):
        return "…"
    joint = "" if isinstance(node, ast.JoinedStr) else " "
    return joint.join(text_of(part) for part in ast.iter_child_nodes(node))


def comments(source):
    """Return the comments of a source, those of adjacent lines joined."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = (token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT)
    return " ".join(text for text in found if not text.startswith("type: "))


def prose(text):
    """Return the words that a reader reads: no examples, names of parameters and options, or code."""
    text = re.sub(r"^ *>>> .*?(?=^\s*$|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *[\w*`., ]+ : ", "", text, flags=re.MULTILINE)
    text = re.sub(r"``.*?``|`[^`]*`", " ", text, flags=re.DOTALL)
    return " ".join(re.sub(r"--[\w-]+", " ", text).split())


def found(source):
    """Return how often a source has each private word."""
    tree = ast.parse(source)
    texts = [prose(text) for text in [*docstrings(tree), *messages(tree), comments(source)]]
    counts = {
        word: sum(len(re.findall(pattern, text, re.IGNORECASE)) for text in texts)
        for word, pattern in PRIVATE.items()
    }
    return {word: count for word, count in counts.items() if count}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FILES)
def test_a_module_has_no_private_words_but_those_listed(name):
    here = found(FILES[name].read_text(encoding="utf-8"))
    if name.startswith("app/"):
        here.pop("like", None)  # a word of the app
    assert here == EXCEPTIONS.get(name, {})


def test_every_exception_is_of_a_module():
    assert not set(EXCEPTIONS) - set(FILES)


def test_the_words_are_seen_in_docstrings_messages_and_comments_and_not_in_code():
    source = '''"""Mend `likes`.

>>> print("by lot")
by lot
"""

figures = ["a twin", "the campaign"]  # nobody reads it


def f(bundle):
    """Return a bundle.

    Parameters
    ----------
    bundle : Bundle
        By ``attack``.
    """
    raise InputError(f"{bundle} is no whole " + "number: " f"a whole number {bundle} is at a place, --people")
'''
    assert found(source) == {"mend": 1, "people": 1, "bundle": 2, "whole number": 2, "place": 1}


if __name__ == "__main__":  # python -m tests.docs.test_glossary_code: the words in their context
    for name, path in FILES.items():
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        for text in map(prose, [*docstrings(tree), *messages(tree), comments(source)]):
            for word, pattern in PRIVATE.items():
                for hit in re.finditer(pattern, text):
                    print(f"{name}: {word}: …{text[max(0, hit.start() - 40) : hit.end() + 30]}…")
