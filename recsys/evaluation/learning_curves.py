"""Learning curves: metric values of the same users when models are fitted on fewer interactions."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from recsys.data import Fold, find_protocol
from recsys.data.side_information import SideInformation
from recsys.data.splits import protocol_for
from recsys.errors import InputError
from recsys.evaluation.bootstrap import mean_intervals
from recsys.evaluation.drawing import draw_lines
from recsys.evaluation.measuring import divided, interactions_of, measure, metric_value, parsed_metrics
from recsys.evaluation.models import Models, named_models
from recsys.evaluation.rows import Rows
from recsys.evaluation.run import NONE_LEFT, Progress
from recsys.utils.attempts import Dropped, attempt, check_some_left
from recsys.utils.progress import QUIET, bar
from recsys.utils.sparse import masked, owners
from recsys.utils.validation import check_choice, check_real

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERACTIONS, USERS = "interactions", "users"


@dataclass(frozen=True)
class LearningCurve(Rows):
    """Metric values of models fitted on shares of the training data.

    Attributes
    ----------
    of : "interactions" or "users"
        What is drawn.
    rows : list of dict
        One a share, model and metric: `share`, `interactions` that a fit had on average over folds,
        `model`, `metric`, `mean` over folds, `low` and `high` of its 95% bootstrap interval over
        users, `users` with a value.
    title : str
    failed : dict of str to str
        Why a model could not be evaluated, at one share at least, by its label; it has no rows.

    Examples
    --------
    >>> from recsys import EASE, load_dataset
    >>> from recsys.evaluation import learning_curve
    >>> data = load_dataset("sample")
    >>> curve = learning_curve(data, EASE(), shares=(0.2, 1.0), metrics="auc", folds=2)
    >>> means = curve.frame()["mean"].tolist()
    >>> len(means), means[0] < means[1]
    (2, True)
    """

    of: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    title: str = ""
    failed: dict[str, str] = field(default_factory=dict)

    def plot(self) -> Figure:
        """Return a plot: one panel a metric, one line a model over the shares.

        Raises
        ------
        InputError
            If matplotlib is not installed.
        """
        axis = f"share of the {self.of} in training"
        rows = [row | {axis: row["share"]} for row in self.rows]
        shares = sorted({row["share"] for row in self.rows})
        return draw_lines(rows, axis, self.title, shares, [f"{share:.4g}" for share in shares])


def learning_curve(
    data: Any,
    models: Models = "auto",
    *,
    shares: Sequence[float] = (0.1, 0.25, 0.5, 1.0),
    of: str = INTERACTIONS,
    protocol: str | None = None,
    folds: int | None = None,
    metrics: str | Sequence[str] = ("auc", "ndcg@10"),
    seed: int = 0,
    only_folds: int | None = None,
    progress: Progress | bool | None = None,
) -> LearningCurve:
    """Fit models on shares of each fold's training data, and measure them on the same users and items.

    A smaller share is part of every larger one. What is tested, and what is ranked, stays the same: an
    item that a user has in training is never a candidate, also where the model was not told of it.

    Parameters
    ----------
    data, models, protocol, folds, metrics, seed, only_folds, progress
        As in `evaluate`.
    shares : sequence of float in (0, 1]
    of : "interactions" or "users"
        Interactions are drawn from all profiles, those of the evaluated users included, which become
        shorter; users are drawn from those who are not evaluated in a fold, and evaluated ones keep
        their profiles.

    Raises
    ------
    InputError
        As `evaluate`; if a share is none or leaves nothing, or if all users are evaluated and users
        are to be drawn; if every one of several models refuses the data or its parameters.
    FitError
        If all of several models fail for other reasons. One that fails beside others, at any share, is
        left out, and `LearningCurve.failed` says why; what a single model raises is raised.

    Examples
    --------
    >>> from recsys import EASE, load_dataset
    >>> data = load_dataset("sample")
    >>> curve = learning_curve(data, EASE(), shares=(0.5, 1.0), of="users", metrics="auc", folds=2)
    >>> [row["share"] for row in curve.rows]
    [0.5, 1.0]
    """
    if isinstance(progress, bool):
        asked = {key: value for key, value in locals().items() if key != "progress"}
        with bar(progress, QUIET) as drawn:
            return learning_curve(**asked, progress=drawn)
    check_choice("of", of, (INTERACTIONS, USERS))
    several = shares.ndim == 1 if isinstance(shares, np.ndarray) else isinstance(shares, (list, tuple))
    if not several:
        raise InputError(f"shares must be a list of numbers, not {shares!r}")
    given = [check_real("shares", share, 0.0, 1.0, open_low=True) for share in shares]
    if not given or len(set(given)) < len(given):
        raise InputError(f"shares must be different numbers, at least one; not {list(shares)}")
    data = interactions_of(data)
    protocol = protocol_for(protocol, None, data)
    parsed = parsed_metrics(metrics, data)
    data = data.positive()
    named = named_models(models)
    if of == USERS and not find_protocol(protocol).grouped:
        raise InputError(
            f"{protocol} evaluates every user, and none is left to draw: use of='interactions', or a "
            "half-profile protocol"
        )
    divisions = [fold for fold in divided(data, protocol, folds, seed, only_folds) if len(fold.users)]
    side = SideInformation(data, protocol)
    users = np.concatenate([fold.users for fold in divisions])
    numbers = np.repeat(np.arange(len(divisions)), [len(fold.users) for fold in divisions])

    def measured(model: Any, fold: Fold, seen: sp.csr_matrix) -> dict[str, NDArray[np.float64]]:
        model = copy.deepcopy(model)
        return measure(model, fold, parsed, side, table=data.item_features, seen=seen).values

    total, done = len(given) * len(named) * len(divisions), 0
    rows: list[dict[str, Any]] = []
    failed: dict[str, Dropped] = {}
    for share in sorted(given):
        thinned = [_thinned(fold, share, of, (seed, k)) for k, fold in enumerate(divisions)]
        for label, _, model in named:
            values: dict[str, list[NDArray[np.float64]]] = {name: [] for _, _, name in parsed}
            for fold, seen in zip(divisions, thinned, strict=True):
                if progress:
                    progress(f"{label}, {share:.4g} of the {of}", done, total)
                done += 1
                if label in failed:
                    continue
                once = partial(measured, model, fold, seen)
                tried = once() if len(named) == 1 else attempt(once)
                if isinstance(tried, Dropped):
                    failed[label] = tried
                    continue
                for name in values:
                    values[name].append(tried[name])
            if label in failed:
                continue
            table = np.column_stack([np.concatenate(parts) for parts in values.values()])
            low, high = mean_intervals(table, users, numbers, seed)
            for column, (metric, _, name) in enumerate(parsed):
                figure = metric_value(values[name])
                rows.append(
                    {
                        "share": share, "interactions": float(np.mean([seen.nnz for seen in thinned])),
                        "model": label, "metric": name, "mean": figure.mean,
                        "low": float(low[column]) if metric.per_user else float("nan"),
                        "high": float(high[column]) if metric.per_user else float("nan"),
                        "users": figure.users,
                    }
                )  # fmt: skip
    if progress:
        progress("done", total, total)
    check_some_left(NONE_LEFT, [one.label for one in named], failed)
    return LearningCurve(
        of, [row for row in rows if row["model"] not in failed], f"{data.name}, {protocol}",
        {label: one.reason for label, one in failed.items()},
    )  # fmt: skip


def _thinned(fold: Fold, share: float, of: str, seed: tuple[int, int]) -> sp.csr_matrix:
    """Return a share of the training rows; the same draws for every share, so that they are nested."""
    rng, train = np.random.default_rng(seed), fold.train if fold.fitted is None else fold.fitted
    if of == USERS:
        others = np.setdiff1d(np.arange(train.shape[0]), fold.users)
        dropped = rng.permutation(others)[round(share * len(others)) :]
        keep = ~np.isin(owners(train), dropped)
    else:
        keep = np.zeros(train.nnz, dtype=bool)
        keep[rng.permutation(train.nnz)[: round(share * train.nnz)]] = True
    if not keep.any():
        raise InputError(f"a share of {share:g} leaves no interaction to fit on")
    return masked(train, keep)
