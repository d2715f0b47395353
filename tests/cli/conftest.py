"""A command, run in this process."""

import pytest

from recsys import cli


@pytest.fixture
def recsys(capfd, monkeypatch, tmp_path):
    """Return what runs a command in an empty folder: its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        code = cli.call([str(part) for part in arguments])
        out, err = capfd.readouterr()
        return code, out, err

    return invoke
