"""A file is replaced whole or not at all, whoever writes it."""

import os
import stat
import subprocess
import sys
import threading
import time
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


def test_short_writes_are_gone_on_with_and_all_is_flushed(tmp_path, monkeypatch):
    real, flushed = os.write, []
    sync = os.fsync
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda handle, part: real(handle, part[:3]))
        patched.setattr(os, "fsync", lambda handle: flushed.append(handle) or sync(handle))
        with replacing(tmp_path / "x") as file:
            assert file.write(b"0123456789") == 10
    assert (tmp_path / "x").read_bytes() == b"0123456789" and len(flushed) == 2, "the file, the folder"


def test_what_a_killed_process_left_is_swept_at_once(tmp_path):
    killed = """
import os, signal, sys
from recsys.utils.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    path = tmp_path / "x"
    subprocess.run([sys.executable, "-c", killed, path], timeout=60, check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".x.") and left.name.endswith(".recsys-tmp")
    write(path)
    assert list(tmp_path.iterdir()) == [path]


def test_what_another_process_is_writing_is_not_swept(tmp_path):
    writing = """
import sys
from recsys.utils.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"theirs")
    print("writing", flush=True)
    sys.stdin.readline()
"""
    path = tmp_path / "x"
    arguments = [sys.executable, "-c", writing, path]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "writing\n"
        write(path, b"ours")
        assert path.read_bytes() == b"ours" and len(list(tmp_path.iterdir())) == 2
        child.communicate("\n", timeout=60)
    assert child.returncode == 0
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


def test_what_another_host_left_goes_when_it_is_old(tmp_path):
    fresh, old = (tmp_path / f".x.{'ab' * 8}.{digit * 16}.recsys-tmp" for digit in "12")
    fresh.write_text("")
    old.write_text("")
    then = time.time() - files.OLD_SECONDS - 60
    os.utime(old, (then, then))
    write(tmp_path / "x")
    assert sorted(tmp_path.iterdir()) == sorted([fresh, tmp_path / "x"])


def test_files_of_others_are_left_alone(tmp_path):
    host = files._host()
    names = [
        f".y.{host}.{'1' * 16}.recsys-tmp",  # another target's
        ".*.anything.recsys-tmp", ".x.anything.recsys-tmp", f".x.{os.getpid()}.abc.recsys-tmp",
        f".x.{host}.{'1' * 17}.recsys-tmp", f"x.{host}.{'1' * 16}.recsys-tmp",
    ]  # fmt: skip
    for name in names:
        (tmp_path / name).write_text("mine")
    (tmp_path / f".x.{host}.{'2' * 16}.recsys-tmp").mkdir()
    (tmp_path / f".x.{host}.{'3' * 16}.recsys-tmp").symlink_to(tmp_path / names[0])
    before = sorted(tmp_path.iterdir())
    for target in ("x", "*", "[xy]", "?"):
        write(tmp_path / target)
        (tmp_path / target).unlink()
    assert sorted(tmp_path.iterdir()) == before


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_of_a_replaced_file_keeps_it(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    os.chown(path, 12345, 23456)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 23456)


def test_null_and_standard_output_are_written_through(tmp_path):
    before = os.stat(os.devnull)
    (tmp_path / "link").symlink_to(os.devnull)
    for path in (os.devnull, tmp_path / "link"):
        write(path)
    assert os.path.samestat(before, os.stat(os.devnull)) and os.listdir(tmp_path) == ["link"]
    script = """
import sys
from recsys.utils.files import check_target, replacing
print("before")
for path in sys.argv[1:]:
    check_target(path)
    with replacing(path) as file:
        file.write(b"in it at %d\\n" % file.tell())
print("after")
"""
    told = b"before\nin it at 0\nin it at 0\nafter\n"
    names = (
        ["/dev/stdout", "/proc/self/fd/1"] if os.path.exists("/proc/self/fd/1") else ["/dev/stdout"] * 2
    )
    arguments = [sys.executable, "-c", script, *names]
    found = subprocess.run(arguments, stdout=subprocess.PIPE, timeout=60, check=True)
    assert found.stdout == told
    with (tmp_path / "redirected").open("wb") as out:
        subprocess.run(arguments, stdout=out, timeout=60, check=True)
    assert (tmp_path / "redirected").read_bytes() == told


def test_links_are_followed_and_odd_targets_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"x"
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    device = tmp_path / "device"
    if os.geteuid() == 0:
        os.mknod(device, stat.S_IFCHR | 0o666, os.stat(os.devnull).st_rdev)
    else:
        os.mkfifo(device)
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
