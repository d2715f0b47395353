"""The blocks of a page, run in order in one folder, and what the commands print compared with the page.

`python` blocks share their names. A `pycon` block is a doctest among them. In a `console` block every line `$ recsys …`
is run, and what follows, if anything, is what it printed, up to figures and spaces.

    python -m tests.docs.pages [docs/tutorials/engineer.md …]

puts what commands and examples print now into the pages, into all of them unless some are named.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import recsys

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(```+)(\w+)[^\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
WIDTH = "96"
# Adding has blocks that change the sources: tests/test_adding.py follows it. The changelog has none.
APART = {"adding.md"}


def pages():
    """Return the pages with blocks that run, the README among them."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if path.name not in APART and any(list(blocks(path)))]


def blocks(path):
    """Yield language and text of each block that runs."""
    for _, language, text in FENCE.findall(path.read_text(encoding="utf-8")):
        if language in ("python", "pycon", "console"):
            yield language, text


def prepare(folder):
    """Put the files into a folder that the pages speak of: the sample's tables, and a model of them."""
    for name, source in (("likes", "interactions"), ("films", "items"), ("people", "users")):
        shutil.copy(ROOT / "data" / "sample" / f"{source}.csv", folder / f"{name}.csv")
    recsys.Recommender("ease").fit(folder / "likes.csv", items=folder / "films.csv").save(
        folder / "model.recsys"
    )


def call(line):
    """Run one command in this process; return what it printed."""
    from recsys import cli

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = cli.call(shlex.split(line)[1:])
    text = out.getvalue()
    assert code in (0, 2), f"{line}: {text}"
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def sections(text):
    """Return (command, what the page shows below it) of a console block; long commands go on after a \\."""
    out = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append([line[2:], []])
        elif out and out[-1][0].endswith("\\") and not out[-1][1]:
            out[-1][0] += "\n" + line
        else:
            out[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in out]


def joined(command):
    """Return a command on one line."""
    return command.replace("\\\n", " ")


def without_figures(text):
    """Return a text with every number as #, and lines and spaces of tables gone."""
    text = re.sub(r"[─━]+", " ", text)
    text = re.sub(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", "#", text)
    return " ".join(text.split())


def play(path):
    """Run a page in the working folder."""
    names, failures = {}, []
    os.environ["COLUMNS"] = WIDTH
    for number, (language, text) in enumerate(blocks(path)):
        where = f"{path.relative_to(ROOT)}, block {number}"
        if language == "python":
            exec(compile(text, where, "exec"), names)  # our own text, checked in
        elif language == "pycon":
            test = doctest.DocTestParser().get_doctest(text, names, where, str(path), 0)
            runner, told = doctest.DocTestRunner(optionflags=FLAGS), io.StringIO()
            runner.run(test, out=told.write, clear_globs=False)
            names.update(test.globs)
            if runner.failures:
                failures.append(told.getvalue())
        else:
            for command, shown in sections(text):
                assert command.startswith("recsys "), f"{where}: {command} is none of ours"
                printed = call(joined(command))
                if shown.strip() and without_figures(printed) != without_figures(shown):
                    failures.append(f"{where}: {command}\nshows\n{shown}\nand prints\n{printed}")
    return failures


def shown(text, names):
    """Return a pycon block with what its examples print now."""
    out = []
    for example in doctest.DocTestParser().get_examples(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example.source, "<page>", "single"), names)
        lines = example.source.rstrip("\n").split("\n")
        out += [f">>> {lines[0]}", *(f"... {line}" for line in lines[1:])]
        out += [line.rstrip() or "<BLANKLINE>" for line in printed.getvalue().splitlines()]
    return "\n".join(out) + "\n"


def rewritten(path):
    """Return a page with what its commands print now; its other blocks are run, too."""
    names = {}
    os.environ["COLUMNS"] = WIDTH

    def replaced(found):
        fence, language, text = found.groups()
        if language == "python":
            exec(compile(text, str(path), "exec"), names)
        if language == "pycon":
            return f"{fence}{language}\n{shown(text, names)}{fence}"
        if language != "console":
            return found.group(0)
        lines = []
        for command, _ in sections(text):
            printed = call(joined(command))
            lines += [f"$ {command}", *([printed] if printed else [])]
        return f"{fence}{language}\n" + "\n".join(lines) + f"\n{fence}"

    return FENCE.sub(replaced, path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    os.environ.pop("RECSYS_DATA", None)
    here = Path.cwd()
    for given in sys.argv[1:] or [str(path) for path in pages()]:
        path = (here / given).resolve()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            prepare(Path(folder))
            text = rewritten(path)
        os.chdir(here)
        path.write_text(text, encoding="utf-8")
        print(given)
