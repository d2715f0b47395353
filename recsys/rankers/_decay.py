"""Decay laws, which weigh an interaction by its number of newer ones, and their exponential sums.

A law is a function of the gap g: 0 for the newest interaction, then the number of newer ones. Sums over
all splits of a profile are recursions where a law is exponential, so a power law is written as a sum of
a dozen of them: (g + 1)^−a = 1/Γ(a)·∫ e^(a·x − e^x·(g + 1)) dx by the trapezoidal rule. With steps of
log 3 the error is below 0.001 up to a = 1.5, and 0.023 at a = 3. Steeper laws are refused: their
integrand is narrow and lies beyond the fastest term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gamma

from recsys.errors import InputError

STEP = 3.0  # from one exponential to the next
FASTEST = 6.0  # e^−6 of the newest interaction's own term is what is left out above
SLOWEST = 0.03  # over the longest gap; what is slower counts as constant
STEEPEST = 3.0  # power whose sum of exponentials still is the law
KINDS = ("exp", "power", "none")
ACCEPTED = "expX (e^−(gap/X)), powerX ((gap + 1)^−X, X up to 3) or none, joined by +, as in exp1+exp8"


@dataclass(frozen=True)
class Decay:
    """One law: e^−(g/x) for "exp", (g + 1)^−x for "power", 1 for "none"."""

    kind: str
    x: float = 0.0

    def __call__(self, gap: ArrayLike) -> NDArray[np.float64]:
        """Return the weights of interactions with these gaps."""
        gap = np.asarray(gap, dtype=np.float64)
        if self.kind == "exp":
            return np.exp(-gap / self.x)
        return (gap + 1.0) ** -self.x if self.kind == "power" else np.ones(gap.shape)


def parse_decays(name: str, text: str) -> list[Decay]:
    """Return the laws of a text such as `exp1+exp8`."""
    found = []
    for part in text.split("+") if isinstance(text, str) else [""]:
        part = part.strip()
        kind = next((kind for kind in KINDS if part.startswith(kind)), "")
        number = part[len(kind) :]
        try:
            x = float(number or "0")
        except ValueError:
            x = math.nan
        most = STEEPEST if kind == "power" else math.inf
        fine = not number if kind == "none" else 0 < x <= most and x < math.inf and "_" not in number
        if not (kind and fine):
            raise InputError(f"{name} must be {ACCEPTED}, not {text!r}")
        found.append(Decay(kind, x))
    return found


def sums_of_exponentials(
    laws: Sequence[Decay], longest: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return laws as sums of exponentials: of law k, Σ_e coefficients[k,e]·e^−(gap/rates[e]).

    They agree up to the gap `longest`. Rates, (exponentials,), ascend, and are infinite for a constant;
    no coefficient, (laws, exponentials), is below 0.
    """
    count = math.ceil(math.log(FASTEST * max(longest, 1) / SLOWEST) / math.log(STEP)) + 1
    speeds = FASTEST * STEP ** -np.arange(float(count))
    terms: list[dict[float, float]] = []
    for law in laws:
        if law.kind == "exp":
            terms.append({law.x: 1.0})
        elif law.kind == "none":
            terms.append({math.inf: 1.0})
        else:
            parts = math.log(STEP) / gamma(law.x) * speeds**law.x * np.exp(-speeds)
            rest = (speeds[-1] / math.sqrt(STEP)) ** law.x / gamma(law.x + 1.0)
            terms.append(dict(zip(1.0 / speeds, parts, strict=True)) | {math.inf: rest})
    rates = np.array(sorted(set().union(*terms)))
    return rates, np.array([[term.get(rate, 0.0) for rate in rates] for term in terms])
