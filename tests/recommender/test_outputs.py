"""Lists of all users as JSON lines, and as a stream of arrow batches."""

import json

import pandas as pd
import pytest

import recsys
from recsys.errors import InputError
from recsys.recommender import lists as lists_module


@pytest.fixture(scope="module")
def model():
    return recsys.Recommender("ease").fit(recsys.load_dataset("sample"))


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(lists_module, "USERS", 150)


def test_json_lines(model, tmp_path, small_blocks):
    path = model.recommend_all(tmp_path / "top.jsonl", 3)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    every = model.recommend_all(n=3)
    assert list(lines[0]) == list(every.columns) and pd.DataFrame(lines).equals(every)


def test_a_stream_makes_a_block_at_a_time(model, small_blocks):
    reader = model.recommend_all(n=3, stream=True)
    batches = list(reader)
    assert [batch.num_rows for batch in batches] == [450, 450, 300]
    every = model.recommend_all(n=3)
    found = pd.concat([batch.to_pandas() for batch in batches], ignore_index=True)
    assert found.astype(every.dtypes).equals(every)
    with pytest.raises(InputError, match="stream"):
        model.recommend_all("top.csv", stream=True)
