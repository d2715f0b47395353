"""Discovery of modules from several threads at once."""

import threading

import pytest

from recsys.errors import InputError
from recsys.registry import Registry


def test_who_asks_while_another_thread_discovers_waits_for_the_modules(tmp_path, monkeypatch):
    package = tmp_path / "slow_things"
    package.mkdir()
    (package / "__init__.py").write_text("things = None\n")
    (package / "one.py").write_text(
        "import time, slow_things\n"
        "slow_things.things.names()  # a module that asks while it is imported is answered\n"
        "time.sleep(0.5)\n"
        "slow_things.things.add('late')(object())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import slow_things

    slow_things.things = Registry("thing", package="slow_things")
    found = []

    def ask():
        try:
            found.append(slow_things.things.get("late"))
        except InputError as error:
            found.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len(set(map(id, found))) == 1, found
    assert slow_things.things.names() == ["late"]
    with pytest.raises(InputError, match="unknown thing 'lte': did you mean 'late'"):
        slow_things.things.get("lte")
