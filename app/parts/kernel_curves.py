"""Kernels over their degree: which parameters grow, what each kernel counts, and the values."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pandas as pd

from app.jobs import Progress
from recsys import InputError, make_ranker
from recsys.data import Interactions
from recsys.evaluation import evaluate
from recsys.kernels import item_gram, make_kernel, spectral_ratio
from recsys.kernels.base import KERNELS

GROWS = ("degree", "d", "c", "arity")  # parameters that are the degree on the axis


def growing(name: str) -> tuple[str, ...]:
    """Return the parameters of a kernel that follow the degree; none where it has no degree."""
    fields = [field.name for field in dataclasses.fields(KERNELS.get(name))]
    return tuple(field for field in GROWS if field in fields)


def spelled_out(name: str) -> str:
    """Return what a kernel counts, as its own description begins; parameters stand in quotes."""
    first = (KERNELS.get(name).__doc__ or "").strip().split("\n")[0]
    symbol, colon, rest = first.partition(": ")
    if colon and symbol.lower() == name:  # "mC: " says no more than the name
        first = rest
    return re.sub(r"`+([^`]*)`+", r"“\1”", first)


def curves(
    data: Interactions, matrix: Any, kernels: list[str], top: int, progress: Progress
) -> pd.DataFrame:
    """Return the spectral ratio and the AUC of item kernels over their degree.

    Parameters
    ----------
    data : Interactions
    matrix : (users, items) CSR
        Of the same interactions.
    kernels : list of str
    top : int
        Highest degree; a kernel without one is measured once and repeated.

    Returns
    -------
    DataFrame
        `kernel`, `degree`, `has degree`, `spectral ratio`, `AUC` (NaN where the model cannot be
        fitted), `why`: what was said then. A kernel's rows end where a degree is refused.
    """
    steps = [(name, d) for name in kernels for d in range(1, (top if growing(name) else 1) + 1)]
    rows: list[dict[str, Any]] = []
    refused: set[str] = set()
    for step, (name, degree) in enumerate(steps):
        if name in refused:
            continue
        grows = growing(name)
        text = f"{name} of degree {degree}" if grows else name
        progress(text, step, len(steps))
        params = dict.fromkeys(grows, degree)
        row: dict[str, Any] = {
            "kernel": name, "degree": degree, "has degree": bool(grows), "spectral ratio": np.nan,
            "AUC": np.nan, "why": "",
        }  # fmt: skip
        try:
            kernel = make_kernel(name, **params)
            row["spectral ratio"] = spectral_ratio(item_gram(matrix, kernel), standardized=True)
            model = make_ranker("cf-komd", kernel=name, **params)
            report = evaluate(data, {text: model}, metrics=("auc",), folds=5, only_folds=1)
            row["AUC"] = report.results[0].metrics["auc"].mean
        except InputError as error:
            row["why"] = str(error)
            refused.add(name)
        rows += [row] if grows else [row | {"degree": d} for d in range(1, top + 1)]
    return pd.DataFrame(rows)
