"""What the library tells goes to `logging`, and nothing is printed unless progress is on."""

import ast
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import recsys
from recsys import Recommender, list_rankers

SOURCES = Path(recsys.__file__).parent
# Programs of their own, whose output this is, and the one line on compiling.
MAY_PRINT = {"_jit.py", "service/supervisor.py", "service/background.py", "service/server.py"}
ROWS = pd.DataFrame({"user": list("aabbcc"), "item": list("xyyzxz")})


def printing(source):
    """Return the lines of calls of print."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


@pytest.mark.thorough
def test_nothing_is_printed_outside_of_programs():
    assert printing("x = 1\nprint(x)") == [2]
    names = {path.relative_to(SOURCES).as_posix(): path for path in SOURCES.rglob("*.py")}
    found = {name for name, path in names.items() if printing(path.read_text(encoding="utf-8"))}
    assert {name for name in found if not name.startswith("cli/")} <= MAY_PRINT


def test_loggers_are_named_as_modules_are():
    for path in SOURCES.rglob("*.py"):
        for given in re.findall(r"getLogger\(([^)]*)\)", path.read_text(encoding="utf-8")):
            others = path.parent.name == "engines" or path.parent.name == "cli"  # of other libraries
            assert given == "__name__" or others, f"{path}: getLogger({given})"


def test_a_fit_and_an_update_are_told_to_logging(caplog):
    rows = pd.concat([ROWS, ROWS.iloc[:1]])
    with caplog.at_level(logging.INFO, logger="recsys"):
        model = Recommender("slim").fit(rows)
        model.update(pd.DataFrame({"user": ["d"], "item": ["x"]}))
    told = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert all(name.startswith("recsys.") and level == "INFO" for name, level, _ in told)
    texts = [text for *_, text in told]
    assert any("repeated pair" in text for text in texts)
    assert any(text.startswith("fitted Recommender: slim on 3 users, 3 items, 6 ") for text in texts)
    assert any(text.startswith("fitted Recommender: slim on 4 users, 3 items, 7 ") for text in texts)


def run(code):
    script = f"import pandas as pd, recsys\nrows = pd.DataFrame({ROWS.to_dict('list')!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=True
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("als", "cosine", "slim") else pytest.mark.slow)
        for name in list_rankers()
    ],
)
def test_no_ranker_prints_when_progress_is_off(name, capfd):
    model = Recommender(name).fit(recsys.load_dataset("sample"))
    model.recommend_all(n=2)
    model.recommend("u0001", n=2)
    told = capfd.readouterr()
    assert told.out == "" and told.err == ""


@pytest.mark.slow
def test_a_process_that_sets_nothing_up_is_told_nothing():
    code = "m = recsys.Recommender('slim').fit(rows)\nm.update(pd.DataFrame({'user': ['d'], 'item': ['x']}))"
    assert run(code) == ("", "")
    out, err = run(f"import logging\nlogging.basicConfig(level='INFO')\n{code}")
    assert out == "" and "INFO:recsys.recommender.recommender:fitted Recommender: slim" in err
