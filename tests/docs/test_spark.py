"""The page about Spark, in local mode; where pyspark and Java are."""

import shutil
import subprocess
import sys

import pandas as pd
import pytest

import recsys
from tests.docs.pages import FENCE, ROOT, prepare


@pytest.mark.slow  # Java and its Python processes take half a minute to start
def test_lists_of_spark_are_those_of_this_process(tmp_path):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    text = (ROOT / "docs" / "howto" / "spark.md").read_text(encoding="utf-8")
    (code,) = [block for _, language, block in FENCE.findall(text) if language == "py"]
    prepare(tmp_path)
    model = recsys.Recommender("ease").fit(recsys.load_dataset("sample"))
    model.save(tmp_path / "model.recsys")
    code = code.replace('"model.recsys"', repr(str(tmp_path / "model.recsys")))
    (tmp_path / "spark.py").write_text(f"{code}\nspark.stop()\n")
    done = subprocess.run(
        [sys.executable, "spark.py"], cwd=tmp_path, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "top" / "_SUCCESS").exists()
    there = pd.read_parquet(tmp_path / "top").sort_values(["user", "rank"], ignore_index=True)
    here = model.recommend_all(None, n=10).sort_values(["user", "rank"], ignore_index=True)
    assert len(there) == 4000
    for column in ("user", "rank", "item"):
        assert there[column].tolist() == here[column].tolist()
    assert (there["score"] - here["score"]).abs().max() < 1e-5
