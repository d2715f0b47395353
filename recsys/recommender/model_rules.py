"""Rules that are read from a model's own lists: what it puts first for a user, and for whom an item."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from recsys.errors import InputError, counted
from recsys.explain import Attributes, ItemRule, RuleTest, item_attributes, item_rule, ranker_rule
from recsys.explain import text as wording
from recsys.rankers import ModelPackage
from recsys.rankers.catalogue import Profile
from recsys.recommender.fitted import Fitted
from recsys.recommender.ids import one_id
from recsys.utils.sparse import owners
from recsys.utils.validation import check_integer

FIRST = 50  # of a list: what counts as put first
USERS = 500  # drawn at random, for a rule of an item
ITEMS = 5  # with the attributes of a rule, at least
NO_ATTRIBUTES = "the items have none"
LIKED = 100  # most liked items of these users, of which such a rule is made
CHANCE = 0.05  # p-value from which a sentence says so
BLOCK = 4_000_000  # scores that are held at once
LOST = "no rule: one of the two groups has fewer than 10 members, or no rule separates them"


@dataclass(frozen=True)
class ModelRule:
    """A rule read from a model's lists, with what the half that it was not learned from says of it.

    Attributes
    ----------
    about : "user" or "item"
        Whether it says which items the model puts first for a user (a formula over the items'
        attributes), or for which users it puts an item first (a formula over what they like).
    name : str
        Title of the item, or id of the user.
    ranker : str
    first : int
        A list's first so many items are what the model puts first.
    searched : int
        Items that could be recommended, or users that were drawn.
    test : RuleTest or None
        None where no rule could be learned and tested.

    Examples
    --------
    >>> import recsys
    >>> model = recsys.Recommender("ease").fit(recsys.load_dataset("sample"))
    >>> found = model.model_rule(user="u0001", n=30)
    >>> found.test.fidelity > 0.5, found.as_dict()["fidelity"] == found.test.fidelity
    (True, True)
    """

    about: str
    name: str
    ranker: str
    first: int
    searched: int
    test: RuleTest | None

    @property
    def sentence(self) -> str:
        """The rule in words, with the counts of its test."""
        found = self.test
        if found is None:
            whose = f"{self.ranker} for {self.name}" if self.about == "user" else self.name
            return f"{whose}: {LOST}."
        rule, rest = wording.readable(found.rule), found.items - found.tested
        theirs = found.covered - found.hits
        if self.about == "user":
            text = (
                f"For {self.name} {self.ranker} puts first {rule}: of "
                f"{counted(found.tested, 'item')} of the first {self.first:,} set aside, {found.hits:,} "
                f"{wording.follow(found.hits)} it; of {counted(rest, 'other')}, {theirs:,}"
            )
        else:
            text = (
                f"{self.ranker} puts {self.name} among its first {self.first:,} for users who like "
                f"{rule}: of {counted(found.tested, 'such user')} set aside, {found.hits:,} "
                f"{wording.follow(found.hits)} it; of {counted(rest, 'other')}, {theirs:,}"
            )
        text += f" ({wording.one_in(theirs, rest)})."
        right = round(found.fidelity * found.items)
        text += f" It agrees with the model on {right:,} of these {found.items:,}."
        if found.p_value >= CHANCE:
            text += f" That may be chance (p = {found.p_value:.2g})."
        return f"{text} {found.tested} is a small number." if found.tested < wording.FEW else text

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it: what `recsys rules --json` writes and `POST /rules` answers."""
        found = self.test
        told: dict[str, Any] = {
            "about": self.about, "ranker": self.ranker, "first": self.first,
            "searched": self.searched, "text": self.sentence, "rule": None, "clauses": [],
            "tested": 0, "hits": 0, "others": 0, "others_hits": 0, "precision": None, "low": None,
            "fidelity": None, "p_value": None,
        }  # fmt: skip
        if found is None:
            return told
        precision = None if math.isnan(found.precision) else found.precision
        names = found.rule.names
        return told | {
            "rule": wording.readable(found.rule),
            "clauses": [[names[k] for k in clause] for clause in found.rule.clauses],
            "tested": found.tested, "hits": found.hits, "others": found.items - found.tested,
            "others_hits": found.covered - found.hits, "precision": precision, "low": found.low,
            "fidelity": found.fidelity, "p_value": found.p_value,
        }  # fmt: skip

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class AttributesRule:
    """A conjunction of an item's own attributes, and how often a model puts such items first for a user.

    Examples
    --------
    >>> from recsys.explain import ItemRule
    >>> found = AttributesRule(("War",), ItemRule((0,), 40, 12, 0.3, 160, 8, 0.05, 0.18), True)
    >>> found.items, found.listed, found.as_dict("ease", 20)["base"]
    (200, 20, 0.1)
    """

    names: tuple[str, ...]  # one or two attributes of the item
    counts: ItemRule  # over all items that could be recommended: `hits` are among the first
    itself: bool | None  # whether the item is among these; None where it is liked

    @property
    def items(self) -> int:
        """How many items could be recommended."""
        return self.counts.support + self.counts.others

    @property
    def listed(self) -> int:
        """How many of them are among the first of the list."""
        return self.counts.hits + self.counts.others_hits

    def as_dict(self, ranker: str, first: int) -> dict[str, Any]:
        """Return it as JSON takes it, as a part of an explanation."""
        found = self.counts
        return {
            "names": list(self.names), "items": self.items, "listed": self.listed,
            "support": found.support, "hits": found.hits, "share": found.precision,
            "base": self.listed / self.items, "low": found.low, "tested": found.tested,
            "tested_hits": found.tested_hits, "tested_low": found.tested_low, "itself": self.itself,
            "text": wording.owned(self.names, found, ranker, first, self.itself),
        }  # fmt: skip


def model_rule(fitted: Fitted, user: str | int | None, item: str | int | None, first: int) -> ModelRule:
    """Return the rule of a user's list or of an item, by id; exactly one of the two is given."""
    package = fitted.package
    if (user is None) == (item is None):
        raise InputError("name what the rule is about by exactly one of user and item")
    if item is not None:
        return item_users_rule(package, int(package.items([one_id("item", item)])[0]), first)
    name = one_id("user", user)
    return user_rule(package, package.profile(name), fitted.attributes, first, str(name))


def user_rule(
    package: ModelPackage,
    profile: Profile,
    attributes: Attributes,
    first: int = FIRST,
    name: str = "you",
) -> ModelRule:
    """Return a rule over items' attributes that tells what the ranker puts first for a profile.

    `name` is for whom, in the sentence.
    """
    check_integer("n", first, 1)
    ranked = package.ranker.recommend(
        profile.userid, profile.row, N=len(package.item_ids), recalculate_user=profile.fold_in,
        times=profile.new_times,
    )  # fmt: skip
    test = None if ranked.fallback else ranker_rule(ranked.ids, attributes, first)
    return ModelRule("user", name, package.ranker.name, first, len(ranked.ids), test)


def item_users_rule(package: ModelPackage, item: int, first: int = FIRST) -> ModelRule:
    """Return a rule over liked items that predicts for which users the ranker puts an item first.

    At most 500 users who do not have the item are drawn; the rule is made of the 100 items that most of
    them like.
    """
    check_integer("n", first, 1)
    users = without_item(package, item)
    ranks = item_ranks(package, users, item)
    rows = package.user_items[users]
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    kept = np.sort(np.argsort(-counts, kind="stable")[:LIKED])
    kept = kept[counts[kept] > 0]
    X = (rows[:, kept].toarray() > 0).astype(np.uint8)
    order = np.argsort(ranks, kind="stable")
    top = int((ranks <= first).sum())
    test = None
    if top:
        test = ranker_rule(order, Attributes(X, tuple(str(t) for t in package.titles[kept])), top)
    return ModelRule("item", str(package.titles[item]), package.ranker.name, first, len(users), test)


def list_rule(
    package: ModelPackage, row: Any, item: int, first: int = FIRST, exclude: int | None = None
) -> tuple[ItemRule | None, int]:
    """Return the conjunction of liked items for which the ranker most often puts an item first.

    It is chosen and tested as `recsys.explain.item_rule` does, but counts in whose list the item is,
    among the `first` so many, instead of who has it: for each of at most 500 users, drawn from those who
    do not have it. `row`, (1, items), are the liked items of which the conjunction is made; `exclude` is
    the user who asks, who is not counted.

    Of the rule `support` counts the users who satisfy it, `hits` those of them in whose list the item
    is; it is None where no conjunction passed its test. Then comes how many users were counted.
    """
    check_integer("n", first, 1)
    users = without_item(package, item)
    users = users[users != exclude] if exclude is not None else users
    if not len(users) or not row.nnz:
        return None, len(users)
    listed = np.flatnonzero(item_ranks(package, users, item) <= first)
    column = (np.ones(len(listed), np.float32), (listed, np.full(len(listed), item)))
    rows = package.user_items[users]
    return item_rule(rows + sp.csr_matrix(column, shape=rows.shape), row.indices, item), len(users)


def attributes_rule(
    package: ModelPackage, userid: int, row: Any, item: int, first: int = FIRST, *,
    fold_in: bool = False, times: Any = None, leave_out: Any = (), attributes: Attributes | None = None,
) -> tuple[AttributesRule | None, str]:  # fmt: skip
    """Return the conjunction of an item's own attributes that best tells what the ranker puts first.

    It is chosen and tested as `recsys.explain.item_rule` does, but among the attributes of the item
    instead of liked items, and counts which items are in the user's list, among the `first` so many,
    instead of who has one. All items that could be recommended are counted: not those of `row`, (1,
    items), which are liked, nor those of `leave_out`.

    `fold_in` says that the row is not that of the user's fit, where the ranker folds rows in.
    `attributes` are those of the items, where they are at hand. With None comes why: there is no list,
    no attribute, or no conjunction that passed its test.
    """
    check_integer("n", first, 1)
    ranker = package.ranker
    if attributes is None:
        attributes = item_attributes(package.interactions)
    if not len(attributes):
        return None, NO_ATTRIBUTES
    own = np.flatnonzero(attributes.X[item])
    if not len(own):
        return None, "this item has none"
    ranked = ranker.recommend(
        userid, row, N=len(package.item_ids), times=times,
        recalculate_user=fold_in and "fold-in" in ranker.capabilities,
        filter_items=np.asarray(leave_out, dtype=np.int64),
    )  # fmt: skip
    if ranked.fallback:
        return None, "the list is of popular items"
    listed, free = ranked.ids[:first], np.sort(ranked.ids)
    # One row for each item that could be recommended: its attributes, and whether it is put first.
    table = np.column_stack([attributes.X[np.ix_(free, own)], np.isin(free, listed)])
    rule = item_rule(
        sp.csr_matrix(table, dtype=np.float32), np.arange(len(own)), len(own), min_support=ITEMS
    )
    if rule is None or rule.low <= len(listed) / len(free):
        return None, (
            f"no one or two attributes of this item predict which of "
            f"{counted(len(free), 'item')} that could be recommended {ranker.name} has among the first "
            f"{first:,}"
        )
    names = tuple(attributes.names[own[k]] for k in rule.items)
    return AttributesRule(names, rule, bool(item in listed) if item in free else None), ""


def without_item(package: ModelPackage, item: int) -> Any:
    """Return at most 500 users with interactions who do not have an item, drawn at random, (users,)."""
    has = np.zeros(len(package.user_ids), dtype=bool)
    column = package.item_users
    has[column.indices[column.indptr[item] : column.indptr[item + 1]]] = True
    users = np.flatnonzero(~has & (np.diff(package.user_items.indptr) > 0))
    if len(users) > USERS:
        users = np.sort(np.random.default_rng(0).choice(users, USERS, replace=False))
    return users


def item_ranks(package: ModelPackage, users: Any, item: int) -> Any:
    """Return the rank of an item in the list of each user who does not have it, (users,) int64, from 1.

    Among what could be recommended to the user; of equal scores the lower index comes first.
    """
    ranker, ranks = package.ranker, np.zeros(len(users), dtype=np.int64)
    size = max(1, BLOCK // len(package.item_ids))
    for start in range(0, len(users), size):
        some = users[start : start + size]
        rows = package.user_items[some]
        scores = ranker.scores(some, rows)
        own = scores[:, [item]]
        ahead = scores > own
        ahead[:, :item] |= scores[:, :item] == own
        ahead[owners(rows), rows.indices] = False
        ranks[start : start + size] = ahead.sum(axis=1) + 1
    return ranks
