"""Models that are linear in each parameter, shared by `fm`, `links` and the rankers.

Predictions are sums of multilinear forms of a row's features, so the derivative by a parameter does not
depend on this parameter. The package has the forms and their tables (`forms`, `rows`, `pairs`), losses
and linear steps (`losses`) and symmetric polynomials (`symmetric`). Penalties and solvers are in
`recsys.fm`.
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
