"""Ranker files mapped, by their checksum, and of object storage."""

import os
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from recsys import EASE, InputError, load_dataset, load_ranker
from recsys.errors import ModelFileError
from recsys.utils import model_file, remote


@pytest.fixture(scope="module")
def fitted():
    return EASE().fit(load_dataset("sample").matrix)


@pytest.fixture
def path(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    return tmp_path / "m"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(remote.FOLDER, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_mapped_arrays_are_of_the_types_that_are_compiled_for(path, fitted):
    mapped, copied = load_ranker(path, mmap=True), load_ranker(path)
    rows = load_dataset("sample").matrix
    np.testing.assert_array_equal(
        mapped.scores(np.arange(9), rows[:9]), fitted.scores(np.arange(9), rows[:9])
    )
    one, other = mapped.get_state().arrays, copied.get_state().arrays
    assert one.keys() == other.keys() and one
    assert {k: numba.typeof(v) for k, v in one.items()} == {k: numba.typeof(v) for k, v in other.items()}
    before = path.read_bytes()
    next(iter(one.values())).flat[0] = 9
    assert path.read_bytes() == before, "what is changed is this process's own"


def test_a_checksum_that_was_found_is_not_computed_again(path):
    digest = model_file.checksum(path)
    assert digest == model_file.read(path)[0]["sha256"]
    with pytest.raises(ModelFileError, match="another file than the one that was checked"):
        model_file.read(path, checked="0" * 64)
    with open(path, "r+b") as file:  # an altered byte, which nobody looks for twice
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    assert model_file.read(path, mapped=True, checked=digest)[0]["sha256"] == digest
    with pytest.raises(ModelFileError, match="was altered"):
        model_file.read(path, mapped=True)
    with pytest.raises(ModelFileError, match="is not a file"):
        model_file.checksum(path.parent / "absent")


def test_the_head_of_a_file_that_is_not_written(path, fitted):
    assert model_file.head_of(fitted.save) == model_file.read(path)[0]


def test_urls():
    assert remote.url_of(Path("s3://bucket/a/m")) == "s3://bucket/a/m"
    assert remote.url_of(Path("file:///a/m")) == "file:///a/m" == remote.url_of("file:///a/m")
    for other in ("/a/b", "a:b", "C:/a", 5, b"s3://a"):
        assert remote.url_of(other) is None


def test_a_file_of_object_storage_is_fetched_once(fitted, path, cache, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.pipe("/models/m", path.read_bytes())
    opened = []
    open_ = type(system).open
    monkeypatch.setattr(type(system), "open", lambda *a, **k: opened.append(1) or open_(*a, **k))
    for url in ("memory://models/m", Path("memory://models/m")):
        assert load_ranker(url, mmap=True).name == "ease"
    copies = list(cache.glob("*.recsys"))
    assert len(opened) == len(copies) == 1 and copies[0].read_bytes() == path.read_bytes()
    EASE(7.0).fit(load_dataset("sample").matrix).save(path)
    system.pipe("/models/m", path.read_bytes())
    assert model_file.checksum("memory://models/m") == model_file.checksum(path)
    assert len(list(cache.glob("*.recsys"))) == 1, "the one before is gone"
    with pytest.raises(InputError, match="memory://models/other is not a file"):
        load_ranker("memory://models/other")
    with pytest.raises(InputError, match=r"^foo://a/m cannot be read: .*foo"):
        load_ranker("foo://a/m")
    (cache.parent / "plain").write_text("")
    monkeypatch.setenv(remote.FOLDER, str(cache.parent / "plain"))
    with pytest.raises(InputError, match="RECSYS_MODEL_CACHE names another folder"):
        load_ranker("memory://models/m")


def test_one_line_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InputError, match="^s3://a/m needs fsspec: pip install"):
        load_ranker("s3://a/m")


@pytest.fixture
def web(monkeypatch):
    """A storage that calls itself https and tells of a file what a test says."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    class Web(MemoryFileSystem):
        protocol = ("http", "https")
        headers, opened = {}, []
        store, pseudo_dirs = {}, [""]

        @classmethod
        def _strip_protocol(cls, path):
            return "/" + path.partition("://")[2].partition("?")[0].rpartition("@")[2].strip("/")

        def ukey(self, path):
            return "the address alone"

        def info(self, path, **_):
            return {**super().info(path), **self.headers}

        def open(self, path, *given, **named):
            self.opened += [path] if given[:1] == ("rb",) else []
            return super().open(path, *given, **named)

    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (Web(), Web._strip_protocol(url)))
    return Web()


def test_a_file_of_the_web_is_fetched_when_it_has_changed(fitted, path, cache, web):
    url = "https://host/m"
    web.pipe("/host/m", path.read_bytes())
    web.headers["ETag"] = "one"
    first = model_file.checksum(url)
    assert model_file.checksum(url) == first and len(web.opened) == 1
    other = path.parent / "other"
    EASE(7.0).fit(load_dataset("sample").matrix).save(other)
    web.pipe("/host/m", other.read_bytes())
    web.headers["ETag"] = "two"
    assert model_file.checksum(url) == model_file.checksum(other) != first and len(web.opened) == 2
    web.headers.clear()  # it does not tell: every time
    assert model_file.checksum(url) == model_file.checksum(url) and len(web.opened) == 4
    assert len(list(cache.glob("*.recsys"))) == 1


def test_a_copy_that_came_altered_is_not_kept(path, cache, web):
    web.headers["ETag"] = "one"
    content = path.read_bytes()
    web.pipe("/host/m", content[:-1] + bytes([content[-1] ^ 1]))
    for reader in (model_file.checksum, lambda url: model_file.read(url, checked="0" * 64)):
        with pytest.raises(ModelFileError, match=r"^https://host/m\?… was altered"):
            reader("https://host/m?token=secret")
    assert not [one for one in cache.iterdir() if one.suffix != ".lock"]


def test_messages_hold_no_secrets(cache, web, monkeypatch):
    url = "https://me:secret@host/m?token=hidden"
    with pytest.raises(InputError, match=r"^https://…@host/m\?… is not a file$"):
        load_ranker(url)

    def fails(*_, **__):
        raise RuntimeError(f"403 for {url} (me:secret, token=hidden)")

    monkeypatch.setattr(type(web), "info", fails)
    with pytest.raises(InputError, match="cannot be read: RuntimeError: 403 for") as told:
        load_ranker(url)
    assert "secret" not in str(told.value) and "hidden" not in str(told.value)
