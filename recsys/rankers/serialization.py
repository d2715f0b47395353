"""Registration of rankers, their parameters from text, and saving: what every ranker shares."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from recsys.errors import InputError, ModelFileError
from recsys.rankers.base import Ranker
from recsys.registry import Registry, check_parameters
from recsys.utils import model_file

RANKERS: Registry[type[SavedRanker]] = Registry("ranker", package="recsys.rankers")


class SavedRanker(Ranker):
    """A ranker whose fitted attributes (names ending in _) can be written and read back."""

    # Name of the dict field that takes parameters the class does not list, if any.
    extra_parameters: ClassVar[str | None] = None

    def params(self) -> dict[str, Any]:
        """Return the parameters, as `make_ranker` takes them."""
        out = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]
        return out | (out.pop(self.extra_parameters) or {}) if self.extra_parameters else out

    def save(self, path: model_file.Target, interactions: dict[str, Any] | None = None) -> None:
        """Write the fitted ranker to exactly `path`, atomically.

        Parameters
        ----------
        path : path, or file open for writing bytes
            An existing ranker file there is replaced in one step. To an open file the bytes are
            written where it stands, and it is left open.
        interactions : dict, optional
            Arrays to keep with it under names of their own, as the command line does with
            ids and histories.

        Raises
        ------
        NotFittedError, InputError
            If the ranker is not fitted, or the file cannot be written.
        """
        self._check_fitted()
        arrays, scalars = {}, {}
        for key, value in vars(self).items():
            if not key.endswith("_"):
                continue
            if isinstance(value, np.ndarray):
                arrays[key] = value
            elif sp.issparse(value):
                for part in ("data", "indices", "indptr"):
                    arrays[f"{key}.{part}"] = getattr(value, part)
                scalars[f"{key}.shape"] = list(value.shape)
            else:
                scalars[key] = value
        manifest = {"ranker": self.name, "params": self.params(), "state": scalars}
        model_file.write(path, manifest, arrays | (interactions or {}))

    @classmethod
    def load(cls, path: model_file.Target) -> Self:
        """Read a ranker that `save` wrote; its scores are the same to the bit.

        Parameters
        ----------
        path : path, or file open for reading bytes
            An open file is read from where it stands to its end, and left open.

        Raises
        ------
        ModelFileError
            If the file is truncated, altered, of another kind or too new.
        """
        ranker, _ = read_ranker(path)
        if not isinstance(ranker, cls):
            raise ModelFileError(
                f"{model_file.name_of(path)} holds a {ranker.name} ranker, not a {cls.name}"
            )
        return ranker

    def _check_state(self) -> None:
        """Refuse loaded arrays whose shapes do not fit each other."""


def read_ranker(path: model_file.Target) -> tuple[SavedRanker, dict[str, np.ndarray]]:
    """Return a saved ranker and the arrays that were kept with it.

    Raises
    ------
    ModelFileError
    """
    manifest, arrays = model_file.read(path)
    path = model_file.name_of(path)
    try:
        ranker = make_ranker(manifest["ranker"], **manifest["params"])
        state = dict(manifest["state"])
        users, items = int(state["n_users_"]), int(state["n_items_"])
        if not all(
            isinstance(key, str) and (key.endswith("_") or key.endswith("_.shape")) for key in state
        ):
            raise ValueError("its state has names that no ranker writes")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} does not describe a ranker: {error}") from None
    own: dict[str, Any] = {}
    for key in [key for key in state if key.endswith(".shape")]:
        name, shape = key.removesuffix(".shape"), state.pop(key)
        own[name] = model_file.sparse(path, name, arrays, shape)
    for name in [name for name in arrays if name.endswith("_")]:
        own[name] = arrays.pop(name)
    vars(ranker).update(state | own)
    popularity = own.get("popularity_")
    try:
        expect("popularity_", popularity, (items,), np.float32)
        fine = users >= 1 and items >= 1
    except ValueError:
        fine = False
    if popularity is None or not fine or (popularity < 0).any():
        raise ModelFileError(f"{path}: popularity_ does not have one count per item ({items})")
    for name, array in own.items():
        values = array.data if sp.issparse(array) else array
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ModelFileError(f"{path}: {name} holds NaN or infinity")
    try:
        ranker._check_state()
    except (AttributeError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path}: its arrays do not fit each other: {error}") from None
    return ranker, arrays


def expect(name: str, array: Any, shape: tuple[int, ...], dtype: type) -> None:
    """Refuse an array of another shape or dtype than the ranker computes with."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        found = getattr(array, "shape", type(array).__name__)
        raise ValueError(f"{name} should be {np.dtype(dtype).name} of shape {shape}, not {found}")


def make_ranker(name: str, **params: Any) -> SavedRanker:
    """Return an unfitted ranker.

    Parameters
    ----------
    name : str
        One of `list_rankers()`.
    **params
        Its parameters; for `cf-komd`, keys it does not have go to its kernel.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, or a value out of range.
    """
    kind = RANKERS.get(name)
    known = [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]
    extra = kind.extra_parameters
    if extra is not None:
        known.remove(extra)
        params[extra] = {key: params.pop(key) for key in list(params) if key not in known} or None
    else:
        check_parameters(f"ranker {name!r}", params, known)
    ranker = kind(**params)
    try:
        ranker._check_parameters()
    except InputError as error:
        raise _own_name(name, error, params.get(extra or "") or {}, known) from None
    return ranker


def _own_name(name: str, error: InputError, extras: dict[str, Any], known: list[str]) -> InputError:
    """Return an error that names the ranker's own parameters where a key went on to what lacks it."""
    for key in extras:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
        if near:
            return InputError(f"ranker {name!r} has no parameter {key!r}: did you mean {near[0]!r}?")
        if f"has no parameter {key!r}" in str(error):
            return InputError(f"{error}; ranker {name!r} itself takes {', '.join(known)}")
    return error
