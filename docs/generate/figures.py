"""The pictures of the concepts, drawn by the code they are about."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

from recsys import Interactions, load_dataset, make_ranker  # noqa: E402
from recsys.data import split  # noqa: E402
from recsys.evaluation.metrics import ndcg  # noqa: E402
from recsys.explain import lower_bound  # noqa: E402
from recsys.kernels import item_gram, make_kernel, normalized, spectral_ratio  # noqa: E402
from recsys.optim.simplex_qp import solve_simplex  # noqa: E402
from recsys.utils.palette import COLOURS, MARKS  # noqa: E402

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

FIGURES: dict[str, Callable[[], Any]] = {}


def figure(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register what draws a picture."""

    def add(draw: Callable[[], Any]) -> Callable[[], Any]:
        FIGURES[name] = draw
        return draw

    return add


def panels(count: int = 1, height: float = 3.0) -> tuple[Any, list[Any]]:
    """Return a figure of some panels side by side."""
    made, axes = plt.subplots(1, count, figsize=(7.2, height), layout="constrained", squeeze=False)
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
    return made, list(axes[0])


@figure("boolean-kernels")
def boolean_kernels() -> Any:
    """Two items with 20 users each of 100: the kernel by how many they share."""
    made, axes = panels(2)
    n, size = 100, 20
    first = (np.arange(n) < size) * 1.0
    for axis, name, title in zip(
        axes, ("mc", "md"), ("mC: all of them", "mD: one of them"), strict=True
    ):
        for k, degree in enumerate((1, 2, 3, 5, 10)):
            kernel = make_kernel(name, degree=degree)
            values = []
            for shared in range(size + 1):
                second = np.roll(first, size - shared)
                values.append(normalized(kernel([first, second], [first, second]))[0, 1])
            axis.plot(range(size + 1), values, color=COLOURS[k], label=f"degree {degree}")
        axis.set(xlabel="users in common, of 20 each", title=title)
    axes[0].set_ylabel("normalised kernel")
    axes[1].legend(frameon=False, fontsize=8)
    return made


@figure("spectral-ratio")
def ratios() -> Any:
    """Expressiveness by degree, on the items of the sample."""
    made, (axis,) = panels()
    liked = load_dataset("sample").matrix
    for k, name in enumerate(("mc", "md")):
        degrees = range(1, 9)
        found = [spectral_ratio(item_gram(liked, make_kernel(name, degree=d))) for d in degrees]
        axis.plot(
            degrees, found, marker=MARKS[k], color=COLOURS[k], label={"mc": "mC", "md": "mD"}[name]
        )
    axis.set(xlabel="degree", ylabel="spectral ratio")
    axis.legend(frameon=False)
    return made


@figure("margins")
def margins() -> Any:
    """A small program: the point of the liked items' hull nearest to the mean, by the ridge."""
    made, axes = panels(3, 2.8)
    rng = np.random.default_rng(3)
    liked = rng.normal([1.4, 0.8], [0.45, 0.5], (12, 2))
    others = rng.normal([-0.5, -0.2], [0.6, 0.7], (60, 2))
    mean = others.mean(axis=0)
    gaps = liked - mean
    for axis, ridge in zip(axes, (0.0, 1.0, 100.0), strict=True):
        weights = solve_simplex(gaps @ gaps.T, ridge=ridge).weights
        point = weights @ liked
        axis.scatter(*others.T, s=8, color="0.75")
        axis.scatter(*liked.T, s=12 + 240 * weights, color=COLOURS[0], alpha=0.8, linewidths=0)
        axis.scatter(*mean, marker="x", color="black", zorder=3)
        axis.annotate("", point, mean, arrowprops={"arrowstyle": "->", "color": COLOURS[1], "lw": 1.6})
        axis.set(title=f"λ = {ridge:g}", xticks=[], yticks=[])
        axis.set_aspect("equal", adjustable="datalim")
    return made


@figure("residuals")
def residuals() -> Any:
    """What a residual promises, and how far the objective really is from its least value."""
    made, (axis,) = panels()
    rng = np.random.default_rng(0)
    promised, true = [], []
    for _ in range(60):
        X = (rng.random((40, 80)) < 0.3) * 1.0
        K = normalized(X @ X.T)
        q = rng.random(40)
        best = objective(K, q, solve_simplex(K, q, ridge=0.05, tol=1e-12).weights)
        for tol in 10.0 ** np.arange(-6, 0):
            found = solve_simplex(K, q, ridge=0.05, tol=tol)
            gap = objective(K, q, found.weights) - best
            if gap > 1e-13:
                promised.append(found.residual)
                true.append(gap)
    ends = [min(true), max(promised)]
    axis.loglog(promised, true, "o", ms=3, color=COLOURS[0], alpha=0.5)
    axis.loglog(ends, ends, color="0.5", lw=1)
    axis.set(xlabel="certified residual", ylabel="true distance from the least value")
    assert all(gap <= residual for gap, residual in zip(true, promised, strict=True))
    return made


def objective(K: Any, q: Any, weights: Any) -> float:
    """Return the value of a program of `solve_simplex` with ridge 0.05."""
    return float(0.5 * weights @ K @ weights + 0.025 * weights @ weights - q @ weights)


@figure("pipeline")
def pipeline() -> Any:
    """How a list is made: five steps and what each one makes."""
    made, axis = plt.subplots(figsize=(7.2, 1.7), layout="constrained")
    steps = (
        ("interactions", "a row per user\nand item"),
        ("matrix", "users × items,\n1 or a weight"),
        ("counts and kernel", "users in common\nof two items"),
        ("weights", "one program per\nuser, certified"),
        ("list with reasons", "scores and their\ncontributions"),
    )
    for k, (title, text) in enumerate(steps):
        axis.add_patch(plt.Rectangle((k * 1.25, 0), 1.05, 1, facecolor="none", edgecolor=COLOURS[0]))
        axis.text(k * 1.25 + 0.525, 0.75, title, ha="center", va="center", fontsize=8, weight="bold")
        axis.text(k * 1.25 + 0.525, 0.35, text, ha="center", va="center", fontsize=8)
        if k:
            ends = ((k * 1.25 - 0.02, 0.5), (k * 1.25 - 0.18, 0.5))
            axis.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": "0.4"})
    axis.set(xlim=(-0.05, 6.1), ylim=(-0.05, 1.05))
    axis.axis("off")
    return made


TUNED = ("auto", "cf-komd", "msdw", "ease", "slim", "als", "bpr", "popularity")


@figure("accuracy-time")
def accuracy_time() -> Any:
    """AUC against the seconds of a fit of the tuned models on MovieLens 1M, from the committed results."""
    made, (axis,) = panels(height=3.4)
    with open(RESULTS / "auto.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["setting"] == "movielens-1m/half-profile"]
    for row in rows:
        name = row["peer"].removesuffix(":kernel=linear")
        if name in TUNED:
            seconds, auc = float(row["fit seconds"]), float(row["auc"])
            axis.semilogx(seconds, auc, marker="o", color=COLOURS[0])
            axis.annotate(name, (seconds, auc), (5, 4), textcoords="offset points", fontsize=8)
    axis.margins(x=0.12)
    axis.set(xlabel="seconds of one fit", ylabel="AUC")
    return made


@figure("ties")
def ties() -> Any:
    """One list with ties: the figure under 4,000 orders of the tied items, and its expectation."""
    made, (axis,) = panels()
    scores = np.array([[3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    train, test = np.zeros((1, 12)), np.zeros((1, 12))
    test[0, [1, 6, 9]] = 1
    exact = expected_ndcg(scores, train, test)
    rng = np.random.default_rng(0)
    drawn = [expected_ndcg(scores + 1e-6 * rng.random(12), train, test) for _ in range(4000)]
    axis.hist(drawn, bins=40, color=COLOURS[5])
    axis.axvline(exact, color=COLOURS[1], label="exact expectation")
    assert abs(np.mean(drawn) - exact) < 0.01
    first = expected_ndcg(scores - 1e-6 * np.arange(12), train, test)
    axis.axvline(first, color="black", ls=":", label="ties by item number")
    axis.set(xlabel="nDCG@10 of one user", ylabel="orders of the tied items")
    axis.legend(frameon=False, fontsize=8)
    return made


def expected_ndcg(scores: Any, train: Any, test: Any) -> float:
    """Return nDCG@10 of one row of scores."""
    import scipy.sparse as sp

    train, test = sp.csr_matrix(train, dtype=np.float32), sp.csr_matrix(test, dtype=np.float32)
    return float(ndcg(scores, train, test, 10)[0])


@figure("rules")
def rules() -> Any:
    """When a share of some people is shown: its exact lower bound against everybody's share."""
    made, (axis,) = panels()
    people = np.arange(2, 201)
    for k, share in enumerate((0.9, 0.6, 0.4)):
        bounds = [lower_bound(round(share * n), n) for n in people]
        axis.semilogx(people, bounds, color=COLOURS[k], label=f"{share:.0%} of them liked it")
    axis.axhline(0.3, color="black", ls=":", label="everybody: 30%")
    axis.set(
        xlabel="people to whom the condition applies",
        ylabel="exact lower bound of the share",
        ylim=(0, 1),
    )
    axis.legend(frameon=False, fontsize=8)
    return made


@figure("protocols")
def protocols() -> Any:
    """Who is hidden when: each dot a like of ten users, by its time."""
    rng = np.random.default_rng(1)
    rows = [(user, item, t) for user in range(10) for item, t in zip(
        rng.permutation(30)[: rng.integers(5, 12)], np.sort(rng.random(12) * 0.5 + rng.random() * 0.5), strict=False
    )]  # fmt: skip
    users, items, times = map(np.array, zip(*rows, strict=True))
    data = Interactions.from_ids(users.astype(str), items.astype(str), time=1e6 * times)
    names = ("half-profile", "holdout", "half-profile-time", "leave-one-out", "temporal", "rolling")
    made, grid = plt.subplots(2, 3, figsize=(7.2, 4.4), layout="constrained", sharex=True, sharey=True)
    for axis, name in zip(grid.flat, names, strict=True):
        fold = list(split(data, name))[0 if name != "rolling" else 2]
        train, test = fold.train.toarray(), fold.test.toarray()
        state = np.where(
            test[data.users, data.items] > 0, 1, np.where(train[data.users, data.items] > 0, 0, 2)
        )
        for code, colour, told in (
            (0, COLOURS[0], "trained on"),
            (1, COLOURS[1], "hidden"),
            (2, "0.85", "in neither"),
        ):
            here = state == code
            axis.scatter(np.asarray(data.time)[here], data.users[here], s=9, color=colour, label=told)
        axis.set_title(name, fontsize=9)
        axis.set(xticks=[], yticks=[])
        axis.spines[["top", "right"]].set_visible(False)
    grid[1, 1].set_xlabel("time")
    grid[0, 0].set_ylabel("users")
    grid[1, 0].set_ylabel("users")
    made.legend(
        *grid[1, 2].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    return made


@figure("popularity")
def popularity() -> Any:
    """The long tail of the sample, and how far down it some models reach."""
    made, (axis,) = panels()
    data = load_dataset("sample")
    liked = data.matrix
    order = np.argsort(-np.asarray(liked.sum(axis=0)).ravel())
    for k, name in enumerate(("popularity", "ease", "cf-komd")):
        ids, _ = (
            make_ranker(name)
            .fit(liked, show_progress=False)
            .recommend(np.arange(data.n_users), liked, N=10)
        )
        counts = np.bincount(ids[ids >= 0].ravel(), minlength=data.n_items)[order]
        axis.plot(np.cumsum(counts) / counts.sum(), color=COLOURS[k], label=f"lists of {name}")
    likes = np.asarray(liked.sum(axis=0)).ravel()[order]
    axis.plot(np.cumsum(likes) / likes.sum(), color="black", ls=":", label="likes")
    axis.set(xlabel="items, the most popular first", ylabel="share of all places")
    axis.legend(frameon=False, fontsize=8)
    return made


def write(folder: Path) -> None:
    """Draw all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context({"svg.hashsalt": "recsys", "svg.fonttype": "path", "font.size": 9}):
        for name, draw in FIGURES.items():
            made = draw()
            made.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(made)
