"""The pictures of the concepts, drawn by the code that they show."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

from recsys import Interactions  # noqa: E402
from recsys.data import split  # noqa: E402
from recsys.evaluation.metrics import ndcg  # noqa: E402
from recsys.kernels import make_kernel  # noqa: E402
from recsys.optim.simplex_qp import solve_simplex  # noqa: E402

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def panels(count: int = 1, height: float = 3.0) -> tuple[Any, list[Any]]:
    """Return a figure with panels side by side."""
    figure, axes = plt.subplots(1, count, figsize=(7.2, height), layout="constrained", squeeze=False)
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[0])


def pipeline() -> Any:
    """How a list is made, in five steps."""
    figure, axis = plt.subplots(figsize=(7.2, 1.7), layout="constrained")
    steps = (
        ("interactions", "one row per user\nand item"),
        ("matrix", "users × items,\n1 or a weight"),
        ("counts and kernel", "users in common\nof two items"),
        ("weights", "one program per\nuser, certified"),
        ("list with reasons", "scores and their\ncontributions"),
    )
    for k, (title, text) in enumerate(steps):
        axis.add_patch(plt.Rectangle((k * 1.25, 0), 1.05, 1, facecolor="none", edgecolor=COLORS[0]))
        axis.text(k * 1.25 + 0.525, 0.75, title, ha="center", va="center", fontsize=8, weight="bold")
        axis.text(k * 1.25 + 0.525, 0.35, text, ha="center", va="center", fontsize=8)
        if k:
            ends = ((k * 1.25 - 0.02, 0.5), (k * 1.25 - 0.18, 0.5))
            axis.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": "0.4"})
    axis.set(xlim=(-0.05, 6.1), ylim=(-0.05, 1.05))
    axis.axis("off")
    return figure


def boolean_kernels() -> Any:
    """Two items with 20 of 100 users each: the kernel by the number of shared users."""
    figure, axes = panels(2)
    n, size = 100, 20
    first = (np.arange(n) < size) * 1.0
    for axis, name, title in zip(
        axes, ("mc", "md"), ("mC: all of them", "mD: one of them"), strict=True
    ):
        for k, degree in enumerate((1, 2, 3, 5, 10)):
            kernel = make_kernel(name, degree=degree)
            values = [
                kernel([first, np.roll(first, size - shared)], normalize=True)[0, 1]
                for shared in range(size + 1)
            ]
            axis.plot(values, color=COLORS[k], label=f"degree {degree}")
        axis.set(xlabel="users in common, of 20 each", title=title)
    axes[0].set_ylabel("normalized kernel")
    axes[1].legend(frameon=False, fontsize=8)
    return figure


def margins() -> Any:
    """The point of the liked items' hull nearest to the mean of all others, by the ridge."""
    figure, axes = panels(3, 2.8)
    rng = np.random.default_rng(3)
    liked = rng.normal([1.4, 0.8], [0.45, 0.5], (12, 2))
    others = rng.normal([-0.5, -0.2], [0.6, 0.7], (60, 2))
    mean = others.mean(axis=0)
    gaps = liked - mean
    for axis, ridge in zip(axes, (0.0, 1.0, 100.0), strict=True):
        weights = solve_simplex(gaps @ gaps.T, ridge=ridge).weights
        axis.scatter(*others.T, s=8, color="0.75")
        axis.scatter(*liked.T, s=12 + 240 * weights, color=COLORS[0], alpha=0.8, linewidths=0)
        axis.scatter(*mean, marker="x", color="black", zorder=3)
        arrow = {"arrowstyle": "->", "color": COLORS[1], "lw": 1.6}
        axis.annotate("", weights @ liked, mean, arrowprops=arrow)
        axis.set(title=f"λ = {ridge:g}", xticks=[], yticks=[])
        axis.set_aspect("equal", adjustable="datalim")
    return figure


def ties() -> Any:
    """nDCG@10 of one list over 4,000 orders of its tied items, and the expectation."""
    figure, (axis,) = panels()
    scores = np.array([[3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    test = np.zeros((1, 12), dtype=np.float32)
    test[0, [1, 6, 9]] = 1

    def value(row: Any) -> float:
        train = sp.csr_matrix((1, 12), dtype=np.float32)
        return float(ndcg(row, train, sp.csr_matrix(test), 10)[0])

    rng = np.random.default_rng(0)
    axis.hist([value(scores + 1e-6 * rng.random(12)) for _ in range(4000)], bins=40, color=COLORS[5])
    axis.axvline(value(scores), color=COLORS[1], label="exact expectation")
    by_number = value(scores - 1e-6 * np.arange(12))
    axis.axvline(by_number, color="black", ls=":", label="ties by item number")
    axis.set(xlabel="nDCG@10 of one user", ylabel="orders of the tied items")
    axis.legend(frameon=False, fontsize=8)
    return figure


def protocols() -> Any:
    """The likes of ten users in time: which train, and which are hidden."""
    rng = np.random.default_rng(1)
    rows = [
        (str(user), str(item), 1e6 * time)
        for user in range(10)
        for item, time in zip(
            rng.permutation(30)[: rng.integers(5, 12)],
            np.sort(rng.random(12) * 0.5 + rng.random() * 0.5),
            strict=False,
        )
    ]
    users, items, times = map(np.array, zip(*rows, strict=True))
    data = Interactions.from_ids(users, items, time=times)
    names = ("half-profile", "holdout", "half-profile-time", "leave-one-out", "temporal")
    figure, axes = plt.subplots(1, 5, figsize=(7.2, 2.2), layout="constrained", sharey=True)
    for axis, name in zip(axes, names, strict=True):
        fold = next(iter(split(data, name)))
        hidden = fold.test.toarray()[data.users, data.items] > 0
        trained = fold.train.toarray()[data.users, data.items] > 0
        for mask, color, label in (
            (trained, COLORS[0], "trained on"),
            (hidden, COLORS[1], "hidden"),
            (~(trained | hidden), "0.85", "in neither"),
        ):
            axis.scatter(data.time[mask], data.users[mask], s=6, color=color, label=label)
        axis.set_title(name, fontsize=8)
        axis.set(xticks=[], yticks=[], xlabel="time")
    axes[0].set_ylabel("users")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


FIGURES = {
    "pipeline": pipeline,
    "boolean-kernels": boolean_kernels,
    "margins": margins,
    "ties": ties,
    "protocols": protocols,
}


def write(folder: Path) -> None:
    """Draw all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context({"svg.hashsalt": "recsys", "svg.fonttype": "path", "font.size": 9}):
        for name, draw in FIGURES.items():
            figure = draw()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
