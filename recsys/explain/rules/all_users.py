"""Rules of all users in one call: searched for user by user, tested, and controlled together.

What `recsys.explain.rules.discovery` does for one user, done for all of them, with sentences that state
the counts behind each rule and the share of false ones among those that are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recsys.data import Interactions
from recsys.errors import InputError, counted
from recsys.explain.rules.discovery import (
    DEPENDENCE,
    LEAST,
    Discovery,
    RuleTest,
    discover,
    likes_rule,
    ranker_rule,
)
from recsys.explain.rules.item_attributes import Attributes, item_attributes
from recsys.explain.rules.item_odds import item_odds
from recsys.explain.text import FEW, follow, one_in, readable
from recsys.rankers import Ranker
from recsys.utils.progress import report
from recsys.utils.validation import check_choice, check_ids, check_integer, check_real

LIKES, RANKER = "likes", "ranker"
OF = {LIKES: "likes", RANKER: "the ranker"}
CONTROLS = {
    "any": "however the tests depend on each other (Benjamini and Yekutieli 2001)",
    "positive": (
        "if the tests are independent, or depend on each other positively (Benjamini and Hochberg 1995)"
    ),
}


@dataclass(frozen=True)
class Discoveries:
    """Rules of many users, and the expected number of false ones among those shown.

    Attributes
    ----------
    name : str
        Of the data.
    ranker : str or None
        Its name, where rules of a ranker were searched for, too.
    top : int
        Of how many items its top set is; 0 without a ranker.
    attributes, items : int
    searched, users : int
        Users whose rules were searched for, and all.
    drawn : bool
        Whether these were drawn at random.
    tested : dict of str to int
        Rules that could be tested, of "likes", and of the "ranker".
    level : float in 0…1
        The expected share of false rules among those shown is no greater.
    dependence : "any" or "positive"
        See `q_values`.
    found : tuple of Discovery
        All rules that were tested, by user id, the surest first.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> found = discover_rules(load_dataset("sample"), most=4)
    >>> found.searched, found.users, found.tested == {"likes": len(found.found)}
    (4, 400, True)
    """

    name: str
    ranker: str | None
    top: int
    attributes: int
    items: int
    searched: int
    users: int
    drawn: bool
    tested: dict[str, int]
    level: float
    dependence: str
    found: tuple[Discovery[Any], ...]

    @property
    def shown(self) -> tuple[Discovery[Any], ...]:
        """The rules that are among the discoveries at the level, the surest first."""
        return tuple(one for one in self.found if one.shown)

    def at(self, level: float = 0.05, dependence: str = "any") -> Discoveries:
        """Return the same tests under another control, as `discover_rules` would with it.

        Parameters
        ----------
        level : float in 0…1
        dependence : "any" or "positive"

        Raises
        ------
        InputError
            If a parameter is out of range.

        Examples
        --------
        >>> from recsys import load_dataset
        >>> found = discover_rules(load_dataset("sample"), most=10)
        >>> len(found.at(1.0).shown) == len(found.found)
        True
        """
        check_real("level", level, 0.0, 1.0)
        check_choice("dependence", dependence, DEPENDENCE)
        # by p-value, equal ones as they came: the order under any control
        tests = [(one.user, one.found) for one in self.found]
        found = tuple(discover(tests, level, dependence))
        return replace(self, level=float(level), dependence=dependence, found=found)

    def sentences(self) -> list[str]:
        """Return in words what was searched and tested, and which error rate is controlled."""
        who = f"all {counted(self.users, 'user')}"
        if self.searched < self.users:
            who = f"{self.searched:,} of {counted(self.users, 'user')}"
            who += ", drawn at random" if self.drawn else ""
        share = f"{100 * self.level:g}%"
        if self.shown:
            lines = [
                f"{counted(len(self.shown), 'rule')} found: the expected share of false ones among the "
                f"rules found is at most {share}, {CONTROLS[self.dependence]}."
            ]
        else:
            lines = [
                f"No rule found at a level of {share}, {CONTROLS[self.dependence]}: that is no sign "
                "that there is none."
            ]
        lines.append(
            f"A rule over {counted(self.attributes, 'attribute')} of {counted(self.items, 'item')} was "
            f"learned from one half of a user's likes and tested on the other half, for {who}."
        )
        if self.ranker is not None:
            lines.append(
                f"Another rule was learned from the user's list by {self.ranker}: in one half of the "
                f"items, the first {self.top:,} against all others. It was tested in the other half."
            )
        tests = " and ".join(
            f"{count:,} of {counted(self.searched, 'rule')} of {OF[of]}"
            for of, count in self.tested.items()
        )
        left = sum(self.tested.values()) < self.searched * len(self.tested)
        lines.append(
            f"{tests} could be tested"
            + (f"; others have fewer than {LEAST} items in a half, or no rule." if left else ".")
        )
        if self.shown:
            lines.append(
                "A rule of likes is false if the user likes what is popular and nothing else"
                + (
                    ""
                    if self.ranker is None
                    else "; a rule of the ranker is, if the list has nothing to do with the attributes"
                )
                + "."
            )
        return lines

    def sentence(self, one: Discovery[Any]) -> str:
        """Return a rule with the counts of its test, in words; few items are said to be few."""
        found, rule = one.found, readable(one.found.rule)
        others, theirs = _others(found)
        if found.source == LIKES:
            text = (
                f"{one.user} likes {rule}: of {counted(found.tested, 'like')} set aside, {found.hits:,} "
                f"{follow(found.hits)} it; of {counted(others, 'item')} not liked, {theirs:,}"
            )
        else:
            text = (
                f"For {one.user} {self.ranker} puts first {rule}: of {counted(found.tested, 'item')} of "
                f"the first {self.top:,} set aside, {found.hits:,} {follow(found.hits)} it; of "
                f"{counted(others, 'other')}, {theirs:,}"
            )
        text += f" ({one_in(theirs, others)})."
        return f"{text} {found.tested} is a small number." if found.tested < FEW else text

    def table(self) -> tuple[dict[str, type], list[tuple[Any, ...]]]:
        """Return the rules shown as the columns and rows of a file."""
        columns: dict[str, type] = {
            "user_id": str, "of": str, "rule": str, "learned": int, "tested": int, "hits": int,
            "others": int, "others_hits": int, "low": float, "fidelity": float, "p_value": float,
            "q_value": float,
        }  # fmt: skip
        return columns, [
            (
                str(one.user), one.found.source, readable(one.found.rule), one.found.learned,
                one.found.tested, one.found.hits, *_others(one.found), one.found.low,
                one.found.fidelity, one.found.p_value, one.q_value,
            )
            for one in self.shown
        ]  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and the rules shown as lists and numbers, as JSON takes them."""
        columns, lines = self.table()
        rules = [
            {
                **dict(zip(columns, line, strict=True)),
                "clauses": [
                    [one.found.rule.names[k] for k in clause] for clause in one.found.rule.clauses
                ],
                "text": self.sentence(one),
            }
            for one, line in zip(self.shown, lines, strict=True)
        ]
        return {
            "data": self.name, "ranker": self.ranker, "top": self.top, "attributes": self.attributes,
            "items": self.items, "searched": self.searched, "users": self.users, "drawn": self.drawn,
            "tested": self.tested, "level": self.level, "dependence": self.dependence, "rules": rules,
            "text": self.sentences(),
        }  # fmt: skip


def discover_rules(
    data: Interactions, users: ArrayLike | None = None, *, most: int | None = None,
    ranker: Ranker | None = None, top: int = 50, level: float = 0.05, dependence: str = "any",
    seed: int = 0,
) -> Discoveries:  # fmt: skip
    """Search rules of many users' interactions, and of a ranker's decisions for them, under one control.

    Parameters
    ----------
    data : Interactions
        With item features, of which the attributes are made (`item_attributes`).
    users : (n,) int, optional
        Whose rules; all when not given. A choice that was made by looking at their interactions is a
        choice among tests, which the control does not know of.
    most : int ≥ 1, optional
        Of more users so many are drawn at random.
    ranker : Ranker, optional
        Fitted on the data: its rules are searched for, too.
    top : int ≥ 1
        How many of its first items make its top set.
    level : float in 0…1
        At most this share of the rules shown is expected to be false.
    dependence : "any" or "positive"
        See `q_values`.
    seed : int
        Of the halves, and of the users that are drawn.

    Raises
    ------
    InputError
        If a parameter is out of range, the items have no attribute, or the ranker has other items.

    Notes
    -----
    Source: `likes_rule`, `ranker_rule` and `discover`, over the users.

    Examples
    --------
    >>> from recsys import load_dataset
    >>> data = load_dataset("sample")
    >>> found = discover_rules(data, [0, 1, 2], level=0.1)
    >>> print(found.sentence(found.found[0]).split(":")[0])
    u0003 likes 1990s and Drama
    """
    check_integer("seed", seed, 0)
    check_integer("top", top, 1)
    check_real("level", level, 0.0, 1.0)
    check_choice("dependence", dependence, DEPENDENCE)
    attributes, likes = item_attributes(data), data.matrix
    if len(attributes) == 0:
        raise InputError(
            f"{data.name}: nothing is known of the items that rules could be made of: give a table of "
            "them with genres, a year or other categories"
        )
    if ranker is not None and getattr(ranker, "n_items_", data.n_items) != data.n_items:
        raise InputError(
            f"the ranker knows {ranker.n_items_:,} items, and {data.name} has {data.n_items:,}: "
            "give what it was fitted on"
        )
    given = np.arange(data.n_users) if users is None else check_ids("users", users, data.n_users)
    chosen, drawn = np.unique(given), False
    if most is not None and len(chosen) > check_integer("most", most, 1):
        rng, drawn = np.random.default_rng([0x55534552, seed]), True
        chosen = np.sort(rng.choice(chosen, most, replace=False))
    popularity, odds = np.bincount(likes.indices, minlength=data.n_items), item_odds(likes)
    tests: list[tuple[Any, RuleTest | None]] = []
    for k, user in enumerate(chosen.tolist()):
        report(f"user {k + 1:,} of {len(chosen):,}", k, len(chosen))
        row, name = likes[user], data.user_ids[user]
        others = popularity.copy()
        others[row.indices] -= 1  # the user is no witness
        tests.append((name, likes_rule(row.indices, attributes, others, odds, seed=seed)))
        if ranker is not None:
            tests.append((name, _of_ranker(ranker, user, row, attributes, top, seed)))
    found = discover(tests, level, dependence)
    sources = (LIKES,) if ranker is None else (LIKES, RANKER)
    return Discoveries(
        data.name, None if ranker is None else ranker.name, 0 if ranker is None else top,
        len(attributes), data.n_items, len(chosen), data.n_users, drawn,
        {of: sum(one.found.source == of for one in found) for of in sources}, float(level), dependence,
        tuple(found),
    )  # fmt: skip


def _of_ranker(
    ranker: Ranker, user: int, row: Any, attributes: Attributes, top: int, seed: int
) -> RuleTest | None:
    """Return the rule of the items that a ranker puts first; None for a user without a personal list."""
    listed = ranker.recommend(user, row, N=row.shape[1])
    if listed.fallback:
        return None
    ranked: NDArray[np.int32] = listed.ids
    return ranker_rule(ranked, attributes, top, seed=seed)


def _others(found: RuleTest) -> tuple[int, int]:
    """Return the tested items that are not of the set, and how many of them the rule covers."""
    return found.items - found.tested, found.covered - found.hits
