"""Laws by which a like counts less the more likes are newer, and their sums of exponentials.

A law is a function of the gap g: 0 for the newest like, then the number of newer ones. Sums over all
cuts of a profile are recursions where a law is exponential, so each law is written as a sum of a few of
them, exactly where it is one, else to about a hundredth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from recsys.errors import InputError

RATES = np.append(0.5 * 3.0 ** np.arange(8), np.inf)  # gaps over which e is lost: 0.5 … 1,093, and never
KINDS = ("exp", "power", "none")
ACCEPTED = "expX (e^−(gap/X)), powerX ((gap + 1)^−X) or none, joined by +, as in exp1+exp8"


@dataclass(frozen=True)
class Decay:
    """One law: e^−(g/x) for "exp", (g + 1)^−x for "power", 1 for "none"."""

    kind: str
    x: float = 0.0

    def __call__(self, gap: ArrayLike) -> NDArray[np.float64]:
        """Return what likes of these gaps count."""
        gap = np.asarray(gap, dtype=np.float64)
        if self.kind == "exp":
            return np.exp(-gap / self.x)
        return (gap + 1.0) ** -self.x if self.kind == "power" else np.ones(gap.shape)


def parse_decays(name: str, text: str) -> list[Decay]:
    """Return the laws of a text such as `exp1+exp8`.

    Raises
    ------
    InputError
        If it is no such text.
    """
    found = []
    for part in text.split("+") if isinstance(text, str) else [""]:
        part = part.strip()
        kind = next((kind for kind in KINDS if part.startswith(kind)), "")
        number = part[len(kind) :]
        try:
            x = float(number or "0")
        except ValueError:
            x = math.nan
        fine = not number if kind == "none" else math.isfinite(x) and x > 0 and "_" not in number
        if not (kind and fine):
            raise InputError(f"{name} must be {ACCEPTED}, not {text!r}")
        found.append(Decay(kind, x))
    return found


def sums_of_exponentials(
    laws: Sequence[Decay], longest: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return laws as sums of exponentials: of law k, Σ_e coefficients[k,e]·e^−(gap/rates[e]).

    Parameters
    ----------
    laws : sequence of Decay
    longest : int
        Up to which gap they are to agree.

    Returns
    -------
    rates : (exponentials,) float64
    coefficients : (laws, exponentials) float64
        None below 0.
    """
    own = [law.x for law in laws if law.kind == "exp"]
    rates = np.unique(np.concatenate([RATES, own]))
    gaps = np.unique(np.round(np.geomspace(1.0, max(longest, 1) + 1.0, 400)) - 1.0)
    curves = np.exp(-gaps[:, None] / rates)
    out = np.zeros((len(laws), len(rates)))
    for k, law in enumerate(laws):
        if law.kind == "exp":
            out[k, np.searchsorted(rates, law.x)] = 1.0
        elif law.kind == "none":
            out[k, -1] = 1.0
        else:
            values = law(gaps)
            out[k] = nnls(curves / values[:, None], np.ones(len(gaps)))[0]
    used = (out > 0).any(axis=0)
    return rates[used], np.ascontiguousarray(out[:, used])
