"""The base class of solvers: what they need, how they are run, and which one replaces another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from recsys.errors import FitError
from recsys.fm.custom import CustomLoss
from recsys.fm.objective import Objective
from recsys.fm.penalties import Penalty
from recsys.fm.solvers.component_weights import weights_step
from recsys.fm.solvers.theta import theta_step
from recsys.multilinear.forms import ALL_SUBSETS, ANOVA, FORM_NAMES, MIXED, POWER, PRODUCT, Form
from recsys.multilinear.losses import Loss
from recsys.registry import Registry

__all__ = ["SOLVERS", "Options", "Solver", "refusal", "solver_names"]


class Options(NamedTuple):
    """Options of a solver besides its objective.

    Attributes
    ----------
    learning_rate : float > 0
    batch_size : int ≥ 1
    threads : int ≥ 1, or None for all
    line_search : bool
        Whether "block" looks for longer steps than its bound allows.

    Examples
    --------
    >>> Options(0.1, 8, None).batch_size
    8
    """

    learning_rate: float
    batch_size: int
    threads: int | None
    line_search: bool = False


class Solver:
    """An optimisation algorithm for an objective, and its requirements.

    Parameters
    ----------
    objective : recsys.fm.objective.Objective
        Data, model and penalty of one fit; the model in it is changed in place.
    options : Options

    Attributes
    ----------
    required : tuple of str
        The abilities of `recsys.fm.penalties.Penalty` that it uses.
    kinds : tuple of int
        The forms of terms it has steps for.
    pairwise : bool
        Whether it can compare rows, as losses over pairs do.
    monotone : bool
        Whether no epoch raises the objective.
    resumes : bool
        Whether it can go on from an earlier one's `state`, as `partial_fit` needs.
    searches : bool
        Whether a line search may be asked for, beside those that a solver always has.
    Rank among the solvers in messages: the most general first.

    Examples
    --------
    >>> from recsys.fm.solvers import SOLVERS
    >>> SOLVERS.get("block").required
    ('prox_row',)
    """

    required: ClassVar[tuple[str, ...]]
    kinds: ClassVar[tuple[int, ...]] = (ANOVA, ALL_SUBSETS, PRODUCT, MIXED, POWER)
    pairwise: ClassVar[bool] = False
    monotone: ClassVar[bool] = True
    resumes: ClassVar[bool] = False
    searches: ClassVar[bool] = False
    place: ClassVar[int]

    def __init__(self, objective: Objective, options: Options) -> None:
        self.objective, self.options = objective, options

    def run(self, ended: Callable[[float], bool], max_iter: int) -> None:
        """Make epochs until `ended`, given the parameters' change, says so."""
        for _ in range(max_iter):
            if ended(self.epoch() + self.weigh()):
                return

    def epoch(self) -> float:
        """Make one pass that leaves `pred` of the objective current; return the parameters' change."""
        raise NotImplementedError

    @property
    def weighs(self) -> bool:
        """Whether weights of orders or of components are learned."""
        return self.objective.learns_theta or self.objective.learns_weights

    def weigh(self) -> float:
        """Take a step on the weights of orders and components that are learned; returns their change."""
        moved = theta_step(self.objective) if self.objective.learns_theta else 0.0
        return moved + (weights_step(self.objective) if self.objective.learns_weights else 0.0)

    def slower(self) -> bool:
        """Take shorter steps where longer ones no longer help; False if there are none."""
        return False

    def get_state(self) -> Any:
        """Return the state from which a later solver of the same kind continues."""
        return None

    def set_state(self, state: Any, passes: int) -> None:
        """Continue from the state of an earlier solver, after `passes` epochs."""

    def diverged(self, objective: float, epoch: int) -> FitError:
        """Return the error of an objective that is not finite, or far above where it began."""
        return FitError(
            f"the objective is {objective:.3g} after {epoch} epochs: scale the features, "
            f"or raise beta (now {self.objective.regularization.beta:g})"
        )


SOLVERS: Registry[type[Solver]] = Registry("solver", "recsys.fm.solvers")


def solver_names() -> tuple[str, ...]:
    """Return the solvers' names, by their `place`."""
    return tuple(sorted(SOLVERS.names(), key=lambda name: SOLVERS.get(name).place))


def refusal(solver: str, loss: Loss | CustomLoss, penalty: Penalty, forms: list[Form]) -> str:
    """Return why a solver cannot handle an objective, or '': it follows from its requirements."""
    able = SOLVERS.get(solver)
    if loss.pairwise and not able.pairwise:
        return f"loss {loss.name!r}, which compares rows"
    if not penalty.offers(able.required):
        return f"penalty {penalty.name!r}"
    for form in forms:
        if form.kind not in able.kinds:
            return FORM_NAMES[form.kind]
        limit = penalty.limit(able.required, form)
        if limit:
            return limit
    return ""
