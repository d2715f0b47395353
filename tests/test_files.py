"""A file is replaced whole or not at all."""

import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from recsys import InputError
from recsys.utils import files
from recsys.utils.files import check_target, replacing


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """Set the umask, and put the old one back."""
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a [1].csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
        raise ZeroDivisionError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with replacing(path) as file:
        assert file.write(b"") == 0 and file.write(b"new") == 3 and file.tell() == 3
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_the_file_and_its_folder_are_flushed_to_disk(tmp_path, monkeypatch):
    flushed, sync = [], os.fsync
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda handle: flushed.append(handle) or sync(handle))
        write(tmp_path / "x", b"0123456789")
    assert (tmp_path / "x").read_bytes() == b"0123456789" and len(flushed) == 2


def test_a_killed_process_leaves_the_old_file(tmp_path):
    killed = """
import os, signal, sys
from recsys.utils.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    subprocess.run([sys.executable, "-c", killed, path], timeout=60, check=False)
    assert path.read_bytes() == b"old"
    (left,) = set(tmp_path.iterdir()) - {path}
    assert left.name.startswith(".") and left.name.endswith(files.TEMPORARY)


def test_two_processes_may_write_one_file(tmp_path):
    path = tmp_path / "x"
    with replacing(path) as theirs:
        theirs.write(b"theirs")
        write(path, b"ours")
        assert path.read_bytes() == b"ours"
    assert path.read_bytes() == b"theirs" and list(tmp_path.iterdir()) == [path]


def test_many_threads_save_to_one_path(tmp_path):
    path, ready = tmp_path / "x", threading.Barrier(8)
    contents = {bytes([k]) * 100_000 for k in range(8)}

    def save(content):
        ready.wait(timeout=30)
        for _ in range(15):
            write(path, content)
            assert path.read_bytes() in contents

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, contents))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["n" * 255, "ä" * 127, "n" * 240])
def test_a_name_may_be_as_long_as_the_system_lets_it(tmp_path, name):
    for content in (b"old", b"new"):
        write(tmp_path / name, content)
    assert (tmp_path / name).read_bytes() == b"new" and len(list(tmp_path.iterdir())) == 1


def test_the_umask_says_who_reads_a_new_file_and_the_old_file_who_reads_another(tmp_path, umask):
    for mask, wanted in ((0o077, 0o600), (0o022, 0o644), (0o002, 0o664)):
        umask(mask)
        path = tmp_path / f"{mask:o}"
        write(path)
        assert mode_of(path) == wanted
    for mode in (0o600, 0o640, 0o444, 0o666):
        path.chmod(mode)
        write(path, b"newer")
        assert mode_of(path) == mode
    path.chmod(0o600)
    with replacing(path):
        (half,) = (p for p in tmp_path.iterdir() if p.name.endswith(".recsys-tmp"))
        assert mode_of(half) == 0o600, "nor may others read what is not whole yet"


def test_links_are_followed_and_odd_targets_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"x"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "device").symlink_to(os.devnull)
    before = {p: (p.lstat().st_ino, p.lstat().st_mode) for p in tmp_path.iterdir()}
    for name, told in (
        ("", "is a folder"),
        ("device", "not a regular file"),
        ("loop", "cannot be written"),
        ("pipe", "not a regular file"),
        ("absent/x", "cannot be written"),
    ):
        with pytest.raises(InputError, match=told), replacing(tmp_path / name):
            raise AssertionError("not reached")
        with pytest.raises(InputError, match="does not exist" if "absent" in name else told):
            check_target(tmp_path / name)
    assert {p: (p.lstat().st_ino, p.lstat().st_mode) for p in tmp_path.iterdir()} == before


def test_what_cannot_be_written_is_told_before_the_work(tmp_path):
    check_target(tmp_path / "x")
    with pytest.raises(InputError, match=r"y: the folder .*absent does not exist"):
        check_target(tmp_path / "absent" / "y")
    with pytest.raises(InputError, match="cannot be written") as caught:
        check_target(tmp_path / ("x" * 5000))
    assert len(str(caught.value)) < 400
