"""A file is replaced whole or not at all, whoever writes it."""

import os

import pytest

from recsys import InputError
from recsys.utils.files import replacing


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
    assert path.stat().st_mode & 0o777 == 0o644


def test_short_writes_are_gone_on_with_and_all_is_flushed(tmp_path, monkeypatch):
    real, flushed = os.write, []
    sync = os.fsync
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda handle, part: real(handle, part[:3]))
        patched.setattr(os, "fsync", lambda handle: flushed.append(handle) or sync(handle))
        with replacing(tmp_path / "x") as file:
            assert file.write(b"0123456789") == 10
    assert (tmp_path / "x").read_bytes() == b"0123456789" and len(flushed) == 2, "the file, the folder"


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path):
    dead, alive = (
        tmp_path / f".x.{2**22 + 1}.abc.recsys-tmp",
        tmp_path / f".x.{os.getppid()}.abc.recsys-tmp",
    )
    dead.write_text("")
    alive.write_text("")
    with replacing(tmp_path / "x") as file:
        file.write(b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([alive.name, "x"])


def test_links_are_followed_and_odd_targets_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"x"
    os.mkfifo(tmp_path / "pipe")
    for name, told in (
        ("", "is a folder"),
        ("pipe", "not a regular file"),
        ("absent/x", "cannot be written"),
    ):
        with pytest.raises(InputError, match=told), replacing(tmp_path / name):
            raise AssertionError("not reached")
