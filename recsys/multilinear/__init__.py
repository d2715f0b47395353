"""Models that are linear in each of their parameters: what `fm`, `links` and the rankers share.

Predictions are sums of multilinear forms of a row's features; each parameter enters linearly, so that a
derivative of the prediction does not depend on it. Here are the forms and the tables they are computed
by (`forms`, `rows`, `pairs`, `linear`), the losses they are fitted under (`losses`) and the symmetric
polynomials they are made of (`symmetric`). Penalties and solvers are in `recsys.fm`.
"""

from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, MIXED, POWER, PRODUCT, Form
from recsys.multilinear.losses import LOSSES, Loss
from recsys.multilinear.pairs import PairTerm, object_tables, predict_pairs
from recsys.multilinear.symmetric import newton_identities, symmetric_polynomials

__all__ = [
    "ALL_SUBSETS",
    "ANOVA",
    "LOSSES",
    "MIXED",
    "POWER",
    "PRODUCT",
    "Form",
    "Loss",
    "PairTerm",
    "newton_identities",
    "object_tables",
    "predict_pairs",
    "symmetric_polynomials",
]
