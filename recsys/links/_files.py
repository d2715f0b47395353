"""Link predictors in files: their class by name, their parameters, and what they learned.

This is below the class `LinkPredictor`, whose `save` and `load` it is: it names no class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.errors import InputError, ModelFileError
from recsys.registry import Registry, check_parameters
from recsys.utils import model_file

__all__ = [
    "LINKS",
    "Learned",
    "made",
    "read_link_predictor",
    "taken",
    "taken_csr",
    "taken_flag",
    "taken_number",
    "write_link_predictor",
]

# Dtypes of labels, and the type that JSON gives their values
LABELS: dict[str, type] = {
    "bool": bool,
    "str": str,
    "object": str,
    "float32": float,
    "float64": float,
    **{f"{sign}int{bits}": int for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
HERE = ("device",)  # parameters of the machine, not of the model


class Learned(NamedTuple):
    """The learned state of a fit for a file: JSON values, and arrays, by names that end in _.

    Arrays `x_.0`, `x_.1`, … are those of a list.
    """

    scalars: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


LINKS: Registry[type[Any]] = Registry("link predictor", "recsys.links")  # classes of link predictors


def made(name: str, params: dict[str, Any]) -> Any:
    """Return an unfitted link predictor of a name, whose parameters are in range."""
    kind = LINKS.get(name)
    check_parameters(f"link predictor {name!r}", params, kind().get_params())
    model = kind(**params)
    model.check_parameters()
    return model


def write_link_predictor(path: model_file.Target, model: Any) -> None:
    """Write a fitted predictor whose class has a name, and whose labels are numbers or text."""
    name = next((name for name in LINKS if LINKS.get(name) is type(model)), None)
    if name is None:
        raise InputError(f"{type(model).__name__} cannot be saved: it is no link predictor with a name")
    params = {key: value for key, value in model._saved_parameters().items() if key not in HERE}
    if "random_state" in params and not isinstance(params["random_state"], (int, np.integer)):
        params["random_state"] = (
            None  # a generator is somewhere in its stream, and was of use to fit only
        )
    learned = model._learned()
    state = {
        "classes_": _encoded(model.classes_),
        "n_features_": [int(width) for width in model.n_features_],
        **learned.scalars,
    }
    manifest = {"link_predictor": name, "params": params, "state": state}
    model_file.write(path, manifest, learned.arrays)


@model_file.refuses
def read_link_predictor(path: model_file.Target, kind: type[Any] = object) -> Any:
    """Return a saved predictor of this kind."""
    manifest, arrays = model_file.read(path)
    file, name = model_file.name_of(path), manifest.get("link_predictor")
    if not isinstance(name, str):
        hint = ": read it with recsys.load_ranker" if "ranker" in manifest else ""
        raise ModelFileError(f"{file} holds no link predictor{hint}")
    try:
        found = LINKS.get(name)
        found().check_parameters()  # what even the defaults lack is not installed
    except InputError as error:
        raise ModelFileError(f"{file} holds the link predictor {name[:40]!r}: {error}") from None
    try:
        model = made(name, manifest["params"])
        _fill(model, Learned(dict(manifest["state"]), dict(arrays)))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(f"{file} does not describe a link predictor: {reason}") from None
    if not isinstance(model, kind):
        raise ModelFileError(f"{file} holds a {found.__name__}, not a {kind.__name__}")
    return model


def _fill(model: Any, learned: Learned) -> None:
    widths = learned.scalars.pop("n_features_")
    if not isinstance(widths, list) or len(widths) != 2:
        raise ValueError("n_features_ should be two integers")
    if not all(type(width) is int and width >= 1 for width in widths):
        raise ValueError("n_features_ should be two integers above 0")
    model.classes_ = _labels(learned.scalars.pop("classes_"))
    model.n_features_ = (widths[0], widths[1])
    model._restore(learned)
    for name in [*learned.arrays, *learned.scalars]:
        raise ValueError(f"{name} belongs to nothing")


def _encoded(classes: NDArray[Any]) -> dict[str, Any]:
    """Return two labels as JSON has them, with their dtype."""
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    values = [str(one) if isinstance(one, str) else one for one in classes.tolist()]
    known = name in LABELS and all(type(one) is LABELS[name] for one in values)
    if not known or not values[0] < values[1]:  # as NaN is not
        raise InputError(
            f"labels of {classes.dtype} cannot be saved: fit on finite numbers, truth values or text"
        )
    return {"dtype": name, "values": values}


def _labels(encoded: Any) -> NDArray[Any]:
    """Return the labels that `_encoded` made JSON of."""
    name, values = encoded["dtype"], encoded["values"]
    known = isinstance(name, str) and name in LABELS and isinstance(values, list) and len(values) == 2
    if not known or not all(type(one) is LABELS[name] for one in values):
        raise ValueError("classes_ should be two numbers, truth values or texts, and their dtype")
    labels = np.array(values, dtype=name)
    if not labels[0] < labels[1]:
        raise ValueError("classes_ should be two different labels in order")
    return labels


# ---- what `_restore` takes out, checked


def taken(learned: Learned, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Take an array out, of this shape and dtype, and finite."""
    array = learned.arrays.pop(name)
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(
            f"{name} should be {np.dtype(dtype).name} of shape {shape}, not {array.dtype.name} of "
            f"shape {array.shape}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return array


def taken_csr(learned: Learned, name: str, columns: int) -> sp.csr_matrix:
    """Take a float64 CSR matrix out, of finite numbers and `columns` columns."""
    shape = learned.scalars.pop(f"{name}.shape")
    matrix = model_file.csr(name, learned.arrays, shape)
    if matrix.shape[0] < 1 or matrix.shape[1] != columns or matrix.dtype != np.float64:
        raise ValueError(f"{name} should be float64 of {columns} columns")
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return matrix


def taken_flag(learned: Learned, name: str) -> bool:
    """Take a truth value out."""
    value = learned.scalars.pop(name)
    if type(value) is not bool:
        raise ValueError(f"{name} should be true or false")
    return value


def taken_number(learned: Learned, name: str) -> float:
    """Take a finite number out."""
    value = learned.scalars.pop(name)
    if type(value) not in (int, float) or not np.isfinite(value):
        raise ValueError(f"{name} should be a finite number")
    return float(value)
