"""Compiled code: cached on disk, safe from many threads, the same bits on one and on two."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import recsys
from recsys._jit import code_digest, compiling, in_threads, jit, processors

PROGRAM = """
import numpy as np, scipy.sparse as sp
from recsys._jit import AT_ONCE, cache_dir
AT_ONCE["on"] = True
from recsys.kernels import item_gram, make_kernel
from recsys.kernels.item_gram import _count
R = sp.csr_matrix(np.random.default_rng(0).random((30, 20)) < 0.3, dtype=np.float32)
gram = item_gram(R, make_kernel("tanimoto"))
print(hash(gram.tobytes()), sum(_count.stats.cache_hits.values()),
      sum(_count.stats.cache_misses.values()), cache_dir())
"""


NO_FOLDER = """
import tempfile
def refuse(*args, **kwargs): raise OSError("read-only")
tempfile.TemporaryFile = refuse
"""


def run(program, **env):
    out = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "0"} | env,
    )
    assert out.returncode == 0, out.stderr[-2000:]
    return out.stdout.split()


@pytest.mark.slow
def test_a_second_process_takes_compiled_code_from_disk(tmp_path):
    first = run(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path))
    second = run(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path))
    assert first[1:3] == ["0", "1"] and second[1:3] == ["1", "0"]
    assert first[0] == second[0] and first[3].startswith(str(tmp_path))


@pytest.mark.slow
def test_a_cache_folder_that_cannot_be_written_and_no_home(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    out = run(
        PROGRAM, NUMBA_CACHE_DIR=str(blocked), HOME="", XDG_CACHE_HOME=str(blocked), TMPDIR=str(tmp_path)
    )
    assert out[3].startswith(str(tmp_path))
    nowhere = run(
        PROGRAM.replace("from recsys._jit", NO_FOLDER + "from recsys._jit"),
        NUMBA_CACHE_DIR=str(blocked),
    )
    assert nowhere[3] == "None" and nowhere[0] == out[0]


THREADS = """
import threading, numpy as np, scipy.sparse as sp
from recsys import make_ranker
R = sp.csr_matrix(np.random.default_rng(0).random((60, 40)) < 0.3, dtype=np.float32)
models = [make_ranker(n).fit(R, show_progress=False) for n in ("cf-komd", "ease", "msdw")]
users = np.arange(60)
expected = [(m.scores(users, R), m.recommend(3, R[3])) for m in models]
wrong = []
def work(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        k = int(rng.integers(3))
        if rng.random() < 0.5:
            same = np.array_equal(models[k].scores(users, R), expected[k][0])
        else:
            got = models[k].recommend(3, R[3])
            same = np.array_equal(got[0], expected[k][1][0]) and np.array_equal(got[1], expected[k][1][1])
        if not same: wrong.append(k)
threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(len(wrong))
"""


@pytest.mark.slow
def test_eight_threads_on_one_ranker():
    assert run(THREADS) == ["0"]


FORKED = """
import os, sys, warnings, numpy as np, scipy.sparse as sp
warnings.simplefilter("ignore")
from recsys import make_ranker
from recsys._jit import AT_ONCE
AT_ONCE["on"] = True  # small inputs are computed without threads
X = sp.csr_matrix((np.random.default_rng(0).random((300, 200)) < 0.1) * 1.0)
ranker = make_ranker("cf-komd").fit(X)
expected = ranker.scores(np.arange(50), X[:50])
child = os.fork()
if child == 0:
    os._exit(int(not np.allclose(ranker.scores(np.arange(50), X[:50]), expected, rtol=1e-6)))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


# Threads of OpenMP, in implicit; a single one is not started, and nothing is lost.
FORKED_IMPLICIT = """
import os, sys, warnings, numpy as np
warnings.simplefilter("ignore")
from recsys import InputError, make_ranker
name, threads = sys.argv[1], int(sys.argv[2])
X = (np.random.default_rng(0).random((60, 40)) < 0.2) * 1.0
make_ranker(name, num_threads=threads).fit(X, show_progress=False)
child = os.fork()
if child == 0:
    code = 1
    try:
        make_ranker(name, num_threads=1).fit(X, show_progress=False)
        code = 2
        make_ranker(name, num_threads=threads).fit(X, show_progress=False)
        code = 4 if threads > 1 else 0
    except InputError as error:
        code = 0 if "spawn" in str(error) and threads > 1 and code == 2 else 3
    os._exit(code)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
def test_a_fork_after_a_fit_scores_as_before():
    done = subprocess.run([sys.executable, "-c", FORKED], timeout=120, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["als", "bpr", "lmf", "cosine", "tfidf", "bm25"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_fork_after_a_fit_of_implicit_is_told_what_to_do(name, threads):
    command = [sys.executable, "-c", FORKED_IMPLICIT, name, threads]
    done = subprocess.run(command, timeout=120, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_an_installed_package_is_told_apart_without_being_read(tmp_path, monkeypatch):
    for place in ("site-packages", "checkout"):
        folder = tmp_path / place / "recsys"
        folder.mkdir(parents=True)
        for name in ("_jit", "a", "b"):
            (folder / f"{name}.py").write_text("@jit\n")

    digest = code_digest.__wrapped__
    installed, checkout = tmp_path / "site-packages" / "recsys", tmp_path / "checkout" / "recsys"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
        first = digest(installed)
        os.utime(installed / "b.py", ns=(1, 1))
        assert digest(installed) != first
    before = digest(checkout)
    os.utime(checkout / "a.py", ns=(1, 1))
    assert digest(checkout) == before
    (checkout / "c.py").write_text("x = 1\n")  # nothing is compiled
    assert digest(checkout) == before
    (checkout / "b.py").write_text("@jit\nx = 2\n")
    assert digest(checkout) != before


@pytest.mark.slow
def test_an_edit_of_a_compiled_function_compiles_its_callers_again(tmp_path):
    package = tmp_path / "recsys"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for name in ("_jit", "errors"):
        shutil.copy(Path(recsys.__file__).parent / f"{name}.py", package)
    (package / "callee.py").write_text(
        "from recsys._jit import jit\n@jit\ndef twice(x):\n    return 2 * x\n"
    )
    (package / "caller.py").write_text(
        "from recsys._jit import jit\nfrom recsys.callee import twice\n@jit\ndef more(x):\n    return twice(x) + 1\n"
    )
    program = (
        "import sys; sys.path.insert(0, '.')\nfrom recsys.caller import more\n"
        "print(more(3), sum(more.stats.cache_hits.values()))"
    )

    def ran():
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.split()

    assert ran() == ["7", "0"] and ran() == ["7", "1"]
    (package / "callee.py").write_text((package / "callee.py").read_text().replace("2 * x", "5 * x"))
    assert ran() == ["16", "0"]


@jit(cache=False)
def share(first, stride, out):
    for i in range(first, len(out), stride):
        out[i] += first + 1


@jit
def refuse(first, stride, which):
    if first == which:
        raise ValueError("no")


def test_parts_are_shares_of_one_compiled_function():
    out = np.zeros(7, dtype=np.int64)
    first, second = [], []
    with compiling(first.append):
        in_threads(2, share, out)
    parts = 1 + np.arange(7) % min(2, processors())
    assert out.tolist() == parts.tolist()
    with compiling(second.append):
        in_threads(1, share, out)
    assert out.tolist() == (parts + 1).tolist()
    assert len(share.overloads) == 1 and sum(first) > 0 and not second


@pytest.mark.parametrize("which", range(min(2, processors())))
def test_what_a_part_raises_is_raised(which):
    with pytest.raises(ValueError, match="no"):
        in_threads(2, refuse, which)


COMPILES = """
import sys, numpy as np
from recsys._jit import jit
from recsys.utils.progress import listening
{terminal}
@jit(cache=False)
def double(x): return 2 * x
heard = []
with listening(lambda *told: heard.append(told)):
    double(1)
    double(1.5)
print(*sorted(set(heard)), sep="|")
"""


@pytest.mark.thorough
@pytest.mark.parametrize("person", [True, False])
def test_a_person_is_told_of_the_first_compilation_once(tmp_path, person):
    program = COMPILES.format(terminal="sys.stderr.isatty = lambda: True" if person else "")
    out = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        check=True,
    )
    assert out.stdout.strip() == "('compiling once, for some seconds', 0.0, 1)"
    assert out.stderr.count("for the first time on this machine") == person


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_damaged_files_of_compiled_code_are_compiled_again(tmp_path, ending):
    program = (
        "from recsys.utils.topn import _sift; import numpy as np\n"
        "_sift(np.zeros(3, np.float32), np.zeros(3, np.int32), np.int64(0), 3); print('fine')"
    )
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(program, **env) == ["fine"]
    damaged = [path for path in tmp_path.rglob(f"*{ending}")]
    assert damaged
    for path in damaged:
        path.write_bytes(b"\0" * 40)
    assert run(program, **env) == ["fine"]
    assert run(program, **env) == ["fine"]
