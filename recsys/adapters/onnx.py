"""Item-item rankers as ONNX files, for runtimes without Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys.errors import CapabilityError, InputError
from recsys.utils.atomic import replacing

PRODUCTS = ("ease", "slim", "msdw", "cosine", "tfidf", "bm25")
LARGEST = 2**31 - 2**20  # bytes of weights: a file of ONNX holds two gigabytes
OPSET, IR_VERSION = 13, 8  # of 2020 and 2021, which most runtimes read


def export_onnx(path: str | Path, ranker: Any, item_ids: Any = None) -> Path:
    """Write a ranker whose scores are the product of a user's row and a matrix of weights.

    The graph has an input `user_items`, (users, items) float32 of zeros and ones, and an output `scores`
    of the same shape. A row of zeros has scores of 0, where the ranker gives popularity. Items that the
    user has are scored like all others.

    Parameters
    ----------
    path : path
    ranker : fitted ease, slim, msdw, cosine, tfidf or bm25
    item_ids : sequence, optional
        Kept as JSON text in the metadata `item_ids`, in the order of the columns.

    Raises
    ------
    InputError
        If onnx is not installed, the weights are above 2 GB, or the ids are of another number.
    CapabilityError
        If the scores of the ranker are no such product: with `recency` they depend on times.
    NotFittedError

    Examples
    --------
    >>> from recsys import Recommender, load_dataset
    >>> model = Recommender("ease").fit(load_dataset("sample"))
    >>> file = export_onnx("ease.onnx", model.ranker, model.item_ids)  # doctest: +SKIP
    """
    name = getattr(ranker, "name", type(ranker).__name__)
    if name not in PRODUCTS:
        raise CapabilityError(
            f"{name} cannot be written as ONNX: only the scores of {', '.join(PRODUCTS)} are a product "
            "of a row and item weights"
        )
    ranker._check_fitted()
    if not isinstance(path, str | Path):
        raise InputError(f"path must name a file, not {type(path).__name__}")
    if item_ids is not None and not hasattr(item_ids, "__len__"):
        raise InputError("item_ids must be a sequence with an id for each item")
    if ranker._reads_times():
        raise CapabilityError(f"{ranker.name} cannot be written as ONNX with recency: it reads times")
    items = ranker.n_items_
    if 4 * items * items > LARGEST:
        raise InputError(f"the weights of {items:,} items are above the 2 GB of an ONNX file")
    if item_ids is not None and len(item_ids) != items:
        raise InputError(f"{len(item_ids)} ids for {items} items")
    try:
        import onnx
    except ImportError:
        raise InputError("ONNX files need the package onnx: pip install onnx") from None
    found = ranker.weights_.toarray() if sp.issparse(ranker.weights_) else ranker.weights_
    weights = onnx.numpy_helper.from_array(np.ascontiguousarray(found, np.float32), "weights")
    given, made = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["users", items])
        for name in ("user_items", "scores")
    )
    node = onnx.helper.make_node("MatMul", ["user_items", "weights"], ["scores"])
    graph = onnx.helper.make_graph([node], ranker.name, [given], [made], [weights])
    model = onnx.helper.make_model(
        graph, producer_name="recsys", ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )  # fmt: skip
    if item_ids is not None:
        onnx.helper.set_model_props(model, {"item_ids": json.dumps([str(one) for one in item_ids])})
    with replacing(Path(path)) as file:
        file.write(model.SerializeToString())
    return Path(path)
