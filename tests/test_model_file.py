"""Ranker files under crashes, faults, mutation and forgery."""

import errno
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import InputError, ModelFileError, load_ranker, make_ranker
from recsys.data import Interactions
from recsys.rankers import fit_package, load_package
from recsys.utils import model_file


@pytest.fixture
def model(liked):
    return make_ranker("cf-komd", kernel="md", degree=3).fit(liked)


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model"
    model.save(path)
    return path


def scores(ranker, liked):
    return ranker.scores(np.arange(60), liked)


def test_the_file_is_plain_safetensors(saved):
    content = saved.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    manifest = json.loads(header["__metadata__"]["recsys"])
    assert manifest["ranker"] == "cf-komd" and manifest["params"]["kernel"] == "md"
    assert header["gram_"]["dtype"] == "F32"


KILLED = """
import sys, numpy as np, scipy.sparse as sp
from recsys import make_ranker
rng = np.random.default_rng(0)
model = make_ranker("ease").fit(sp.csr_matrix(rng.random((60, 400)) < 0.2, dtype=np.float32))
print("ready", flush=True)
while True:
    model.save(sys.argv[1])
"""


def two_models(folder, liked):
    """Return two rankers of other families and the bytes of their files."""
    models = [
        make_ranker("ease").fit(liked),
        make_ranker("blend", models="msdw+popularity").fit(liked, show_progress=False),
    ]
    contents = []
    for k, ranker in enumerate(models):
        ranker.save(folder / f"alone{k}")
        contents.append((folder / f"alone{k}").read_bytes())
    return models, contents


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("kills", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_during_a_save_leave_the_old_or_the_new(liked, tmp_path, kills):
    models, contents = two_models(tmp_path, liked)
    folder = tmp_path / "target"
    folder.mkdir()
    path = folder / "model"
    models[0].save(path)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(kills):
        child = os.fork()
        if child == 0:  # only writes files until it is killed
            while True:
                for ranker in models:
                    ranker.save(path)
        time.sleep(0.002 + 0.04 * rng.random())  # also a busy machine writes both at times
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = path.read_bytes()
        assert found in contents
        seen.add(contents.index(found))
        load_ranker(path)
    assert seen == {0, 1}
    models[0].save(path)
    left = [p for p in folder.iterdir() if p.name != "model"]  # by the killed
    assert all(p.name.endswith(".recsys-tmp") for p in left)


CALLS = ("open", "write", "fsync", "close", "fchmod", "replace", "unlink")


class Faults:
    """Stands in for the system calls of a save; the n-th one fails, once or with all that follow."""

    def __init__(self, monkeypatch, n, code, forever):
        self.made = 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self.shim(name, getattr(os, name), n, code, forever))

    def shim(self, name, real, n, code, forever):
        def call(*args, **kwargs):
            self.made += 1
            if self.made == n or (forever and self.made > n):
                if name == "close":
                    real(*args, **kwargs)
                raise OSError(code, os.strerror(code))
            return real(*args, **kwargs)

        return call


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EINTR])
def test_a_fault_in_any_system_call_keeps_the_old_file_or_the_new(
    liked, monkeypatch, tmp_path, code, forever
):
    (old, new), contents = two_models(tmp_path, liked)
    folder = tmp_path / "target"
    folder.mkdir()
    path = folder / "model"
    old.save(path)
    with monkeypatch.context() as patched:
        count = Faults(patched, 0, code, False)
        new.save(path)
    assert count.made >= 5
    for n in range(1, count.made + 1):
        old.save(path)
        with monkeypatch.context() as patched:
            Faults(patched, n, code, forever)
            with pytest.raises(InputError, match="cannot be written"):
                new.save(path)
        assert path.read_bytes() in contents
        load_ranker(path)
        new.save(path)
        left = {p.name for p in folder.iterdir()} - {"model"}
        assert path.read_bytes() == contents[1]
        # Where even removing the temporary file fails, it is left.
        assert all(forever and name.endswith(".recsys-tmp") for name in left)


def test_places_that_cannot_be_written(model, tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        model.save(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        model.save(tmp_path / "absent" / "model")


def test_a_link_is_followed_and_stays(model, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and load_ranker(tmp_path / "real").name == "cf-komd"


FAMILIES = [
    ("cf-komd", {"kernel": "md", "degree": 3}),
    ("cf-komd", {"votes": 0.5}),
    ("blend", {"models": "slim+popularity"}),
    ("hofm", {"factors": 2, "iterations": 1}),
    ("bpr", {"factors": 4, "iterations": 2}),
]


@pytest.mark.thorough
@pytest.mark.parametrize("family", range(len(FAMILIES)))
def test_no_mutated_file_loads(liked, family, tmp_path):
    name, params = FAMILIES[family]
    make_ranker(name, **params).fit(liked, show_progress=False).save(tmp_path / "good")
    make_ranker("als", factors=4, iterations=2).fit(liked, show_progress=False).save(tmp_path / "other")
    good, other = (tmp_path / "good").read_bytes(), (tmp_path / "other").read_bytes()
    rng = np.random.default_rng(family)
    bad = tmp_path / "bad"
    for k in range(1000):
        mutated = bytearray(good)
        # half of the places in the header, which is short
        at = int(rng.integers(len(good) if k % 2 else min(len(good), 2000)))
        kind = rng.integers(6)
        if kind == 0:
            del mutated[at:]
        elif kind == 1:
            mutated[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            mutated.insert(at, int(rng.integers(256)))
        elif kind == 3:
            del mutated[at]
        elif kind == 4:
            mutated[at:] = other[min(at, len(other) - 1) :]
        else:
            mutated += b"\0" * int(rng.integers(1, 9))
        if bytes(mutated) == good:
            continue
        bad.write_bytes(mutated)
        with pytest.raises(ModelFileError):
            load_ranker(bad)


def forge(path, change):
    """Rewrite a file with a right checksum after `change(manifest, arrays)`."""
    manifest, arrays = model_file.read(path)
    change(manifest, arrays)
    manifest.pop("format")
    model_file.write(path, manifest, arrays)


def short(manifest, arrays):
    arrays["popularity_"] = arrays["popularity_"][:-1]


def other_kernel(manifest, arrays):
    manifest["params"] = {"kernel": "exec"}


def other_ranker(manifest, arrays):
    manifest["ranker"] = "os.system"


def no_ranker(manifest, arrays):
    del manifest["ranker"]


def sizes(manifest, arrays):
    manifest["state"]["n_items_"] = 10**12


def words(manifest, arrays):
    manifest["state"]["n_users_"] = "many"


def stray_method(manifest, arrays):
    manifest["state"]["recommend"] = 1


def bad_degree(manifest, arrays):
    manifest["params"]["degree"] = -1


@pytest.mark.parametrize(
    "change",
    [
        short,
        other_kernel,
        other_ranker,
        no_ranker,
        sizes,
        words,
        stray_method,
        bad_degree,
    ],
)
def test_forged_files_with_a_right_checksum_are_refused(saved, change):
    forge(saved, change)
    with pytest.raises(ModelFileError):
        load_ranker(saved)


def header_of(table):
    raw = json.dumps(table).encode()
    return struct.pack("<Q", len(raw)) + raw


HOSTILE = {
    "empty": b"",
    "html": b"<!doctype html><title>404</title>" * 20,
    "npz": b"PK\x03\x04" + b"\0" * 64,
    "huge header": struct.pack("<Q", 2**60) + b"{}",
    "deep json": struct.pack("<Q", 200_000) + b"[" * 200_000,
    "4 TB array": header_of(
        {
            "__metadata__": {"recsys": '{"format": 1}'},
            "a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]},
        }
    ),
    "negative shape": header_of(
        {
            "__metadata__": {"recsys": '{"format": 1}'},
            "a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]},
        }
    ),
    "many arrays": header_of(
        {"__metadata__": {"recsys": '{"format": 1}'}}
        | {f"a{k}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for k in range(9000)}
    ),
    "object dtype": header_of(
        {
            "__metadata__": {"recsys": '{"format": 1}'},
            "a": {"dtype": "O", "shape": [0], "data_offsets": [0, 0]},
        }
    ),
    "no manifest": header_of({"__metadata__": {}}),
    "list": header_of([1, 2]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_other_files_are_refused(tmp_path, kind):
    path = tmp_path / "x"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(ModelFileError, match=str(path)):
        load_ranker(path)


class Exploit:
    def __reduce__(self):
        return (Path.touch, (Path(os.environ["RECSYS_PROOF"]),))


def test_a_pickle_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setenv("RECSYS_PROOF", str(tmp_path / "proof"))
    (tmp_path / "x").write_bytes(pickle.dumps(Exploit()))
    with pytest.raises(ModelFileError):
        load_ranker(tmp_path / "x")
    assert not (tmp_path / "proof").exists()
    with pytest.raises(ModelFileError, match="not a file"):
        load_ranker(tmp_path)


def test_a_newer_format_names_its_writer(saved, monkeypatch):
    manifest, arrays = model_file.read(saved)
    model_file.write(saved, manifest | {"format": 3, "written_by": "recsys 2.1"}, arrays)
    with pytest.raises(
        ModelFileError, match=r"written by 'recsys 2.1' \(format 3\); this reads up to format 2"
    ):
        load_ranker(saved)


def test_the_wrong_class_says_what_the_file_holds(saved):
    with pytest.raises(ModelFileError, match="holds a cf-komd ranker, not a ease"):
        type(make_ranker("ease")).load(saved)


def test_a_package_round_trips_any_id(tmp_path):

    users = np.array(["NA", "001", "é🎬", "a\nb"], dtype=object)
    items = np.array(["1", "01", "x" * 10_000, "x x"], dtype=object)
    package = fit_package(make_ranker("popularity"), Interactions.from_ids(users, items))
    package.save(tmp_path / "m")
    again = load_package(tmp_path / "m")
    assert list(again.user_ids) == list(users) and list(again.item_ids) == list(items)
    assert (again.user_items != package.user_items).nnz == 0
    with pytest.raises(InputError, match="unknown user id 'nobody'; there are 4, such as 'NA'"):
        again.rows(["nobody"])


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b"\xff", b"[]"])
def test_tables_that_are_none_are_refused(tmp_path, planted, text):
    fit_package(make_ranker("popularity"), planted).save(tmp_path / "m")
    content = np.frombuffer(text, np.uint8)
    forge(tmp_path / "m", lambda manifest, arrays: arrays.update({"package.json": content}))
    with pytest.raises(ModelFileError):
        load_package(tmp_path / "m")


@pytest.mark.parametrize("kind", ["range", "falling", "absent", "times"])
def test_forged_histories_are_refused(tmp_path, planted, kind):
    package = fit_package(make_ranker("popularity"), planted)
    package.save(tmp_path / "m")

    def change(manifest, arrays):
        if kind == "range":
            arrays["history.indices"][-1] = 10_000
        elif kind == "falling":
            arrays["history.indptr"][1] = 10_000
        elif kind == "times":
            arrays["history.times"] = arrays["history.times"][:-1]
        else:
            del arrays["history.indptr"]

    forge(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match="histor|times"):
        load_package(tmp_path / "m")


def test_a_ranker_without_ids_is_no_package(saved):
    with pytest.raises(ModelFileError, match="without ids: write it with `recsys fit --out`"):
        load_package(saved)


@pytest.mark.slow
def test_concurrent_saves_and_loads_see_whole_models(tmp_path):
    path = tmp_path / "model"
    writers = [
        subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    for child in writers:
        assert child.stdout.readline() == b"ready\n"
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, "no model within a minute"
        time.sleep(0.01)
    for _ in range(40):
        assert load_ranker(path).n_items_ == 400
    for child in writers:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.mark.thorough
def test_loading_in_a_new_process_gives_the_same_bits(saved, model, liked, tmp_path):
    sp.save_npz(tmp_path / "rows.npz", liked)
    code = (
        "import sys, numpy as np, scipy.sparse as sp; from recsys import load_ranker;"
        "r = load_ranker(sys.argv[1]); m = sp.load_npz(sys.argv[2]);"
        "sys.stdout.buffer.write(r.scores(np.arange(60), m).tobytes())"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(saved), str(tmp_path / "rows.npz")],
        cwd=tmp_path,
        env=os.environ | {"NUMBA_NUM_THREADS": "1"},
        capture_output=True,
        check=True,
    )
    assert out.stdout == scores(model, liked).tobytes()


def header_of(table, **changes):
    """Return a file's bytes up to its arrays, the checksum not even tried."""
    manifest = {"format": 1, "ranker": "popularity", "params": {}, "state": {}} | changes
    header = json.dumps({"__metadata__": {"recsys": json.dumps(manifest)}} | table).encode()
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize(
    "shape",
    [
        [0, 2**63 - 1],
        [0, 2**62],
        [2**62, 0],
        [0, 2**64],
        [0, 10**30],
        [0] * 65,
        [1] * 65,
    ],
)
@pytest.mark.parametrize("dtype", ["F64", "U8"])
def test_shapes_that_numpy_cannot_have_are_refused(tmp_path, shape, dtype):
    size = 0 if 0 in shape else {"F64": 8, "U8": 1}[dtype]
    table = {"a_": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}
    (tmp_path / "m").write_bytes(header_of(table) + bytes(size))
    with pytest.raises(ModelFileError, match=str(tmp_path)):
        model_file.read(tmp_path / "m")


def test_messages_can_be_sent_on(model, liked, tmp_path):
    """What a file says of itself is repeated in /health, whose answer is UTF-8."""
    (tmp_path / "m").write_bytes(header_of({}, format=99, written_by="\ud800\n"))
    with pytest.raises(ModelFileError, match=r"\\ud800") as caught:
        load_package(tmp_path / "m")
    assert "\n" not in str(caught.value) and str(caught.value).encode()


@pytest.mark.parametrize(
    "fault", [MemoryError(), RecursionError("deep"), SystemError("x\ny"), KeyError("z" * 900)]
)
def test_whatever_reading_raises_is_a_model_file_error(saved, monkeypatch, fault):
    def fail(*args):
        raise fault

    monkeypatch.setattr(model_file, "_checksum", fail)
    for reader in (model_file.read, load_ranker, load_package):
        with pytest.raises(ModelFileError) as caught:
            reader(saved)
        told = str(caught.value)
        assert str(saved) in told and "\n" not in told and len(told) < 500


def test_row_starts_that_fall_at_the_end_are_refused_before_they_are_followed():
    indptr = np.append(np.arange(5_000_000, dtype=np.int32), 0)
    indptr[-2] += 2  # a row of entries that would be read far behind the arrays
    arrays = {
        "x_.data": np.ones(0, np.float32),
        "x_.indices": np.zeros(0, np.int32),
        "x_.indptr": indptr,
    }
    with pytest.raises(InputError, match="index arrays of x_ are broken"):
        model_file.csr("x_", arrays, (5_000_000, 9))
