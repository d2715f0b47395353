"""Rankers as ONNX files: the same scores through onnxruntime."""

import json
import sys

import numpy as np
import pytest

import recsys
from recsys import cli, make_ranker
from recsys.adapters.onnx import export_onnx
from recsys.errors import CapabilityError, InputError, NotFittedError

DATA = recsys.load_dataset("sample")
PRODUCTS = {
    "ease": "ease", "ease-sparse": "ease:top_k=20", "slim": "slim:iterations=5", "cosine": "cosine", "tfidf": "tfidf",
    "bm25": "bm25", "msdw": "msdw",
}  # fmt: skip


@pytest.mark.parametrize("spec", PRODUCTS.values(), ids=PRODUCTS)
def test_scores_are_those_of_the_ranker(spec, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = recsys.Recommender(spec).fit(DATA)
    path = export_onnx(tmp_path / "m.onnx", model.ranker, model.item_ids)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rows = DATA.matrix[:50]
    for part in (rows, rows[:1]):
        (found,) = session.run(["scores"], {"user_items": part.toarray().astype(np.float32)})
        expected = model.ranker.scores(np.arange(part.shape[0]), part)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    (none,) = session.run(None, {"user_items": np.zeros((2, DATA.n_items), np.float32)})
    assert none.shape == (2, DATA.n_items) and not none.any()
    known = session.get_modelmeta().custom_metadata_map
    assert json.loads(known["item_ids"]) == [str(one) for one in DATA.item_ids]


def test_the_command_writes_it(tmp_path, capfd):
    onnx = pytest.importorskip("onnx")
    recsys.Recommender("bm25").fit(DATA).save(tmp_path / "m.recsys")
    out = str(tmp_path / "m.onnx")
    assert cli.call(["export", "--ranker", str(tmp_path / "m.recsys"), "--onnx", out]) == 0
    onnx.checker.check_model(onnx.load(out), full_check=True)
    assert "m.onnx" in capfd.readouterr().out


def test_what_is_no_product_is_refused(tmp_path):
    R = DATA.matrix
    for spec in ("popularity", "slist", "als:factors=4,iterations=1", "cosine:recency=0.5"):
        ranker = recsys.Recommender(spec).fit(DATA).ranker
        with pytest.raises(CapabilityError, match="cannot be written as ONNX"):
            export_onnx(tmp_path / "m.onnx", ranker)
    with pytest.raises(NotFittedError):
        export_onnx(tmp_path / "m.onnx", make_ranker("ease"))
    with pytest.raises(InputError, match="2 ids for 300 items"):
        export_onnx(tmp_path / "m.onnx", make_ranker("cosine").fit(R, show_progress=False), ["a", "b"])
    assert not (tmp_path / "m.onnx").exists()


def test_without_onnx_a_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    ranker = make_ranker("cosine").fit(DATA.matrix, show_progress=False)
    with pytest.raises(InputError, match="pip install onnx"):
        export_onnx(tmp_path / "m.onnx", ranker)
