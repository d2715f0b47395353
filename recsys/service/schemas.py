"""Schemas of requests and answers, which /docs shows.

Requests are decoded and validated by msgspec, in one pass that ends at the first error; answers are
described by pydantic, as FastAPI takes them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from pydantic import BaseModel, Field

from recsys.errors import InputError
from recsys.rankers.catalogue import LEAST_WEIGHT, MOST_WEIGHT
from recsys.recommender.model_rules import FIRST
from recsys.utils.dates import moment

ITEM_SET_NAME = "^[a-z0-9][a-z0-9._-]{0,63}$"  # lower case: some file systems know no other
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Ids = Annotated[list[Id], Meta(max_length=1000)]
NO_SET_NAME = (
    "the name of an item set has 1 to 64 lower-case letters, digits, '.', '_' and '-', a letter or "
    "digit first"
)
Count = Annotated[int, Meta(ge=1, le=1000)]
Few = Annotated[int, Meta(ge=0, le=100)]
Fewer = Annotated[int, Meta(ge=0, le=10)]  # four times as many changed rows are scored
Diversity = Annotated[float, Meta(ge=0, le=1)]
Time = Annotated[
    int | float | str,
    Meta(
        description="A number in the unit of the data (Unix seconds, where its times are dates), or "
        "an ISO date or datetime, UTC where it has no zone. Not before 1970.",
        examples=["2024-01-31", "2024-01-31T18:05:00Z", 1706724300],
    ),
]


def valid_time(where: str, given: float | str) -> float | str:
    """Return a point in time as it was given; it is parsed where the unit of the data is known."""
    try:
        moment("time", given)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return given


class HistoryItem(Struct, forbid_unknown_fields=True, gc=False):
    """A liked item, when it was liked, and how much."""

    item: Annotated[Id, Meta(description="Id of the item.")]
    time: Time | UnsetType = UNSET
    weight: (
        Annotated[
            float,
            Meta(
                ge=LEAST_WEIGHT, le=MOST_WEIGHT,
                description="How much, for a model that learns from weights: number of plays, quantity.",
            ),
        ]
        | UnsetType
    ) = UNSET  # fmt: skip


class ProfileRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """For whom: a known user or a history."""

    user: Annotated[Id | None, Meta(description="Id of a known user; or else post a history.")] = None
    history: Annotated[
        Annotated[list[Id | HistoryItem], Meta(max_length=1000)] | None,
        Meta(
            description="A new user's items: ids in order, the oldest first, or objects of item, "
            "time and weight; no item twice."
        ),
    ] = None
    as_of: Annotated[
        Time | None,
        Meta(
            description="Leave out what was liked then or later, of a known user or of a history with "
            "times. The model itself was fitted on all."
        ),
    ] = None

    @property
    def items_liked(self) -> list[str] | None:
        """The ids of the history."""
        if self.history is None:
            return None
        return [one if isinstance(one, str) else one.item for one in self.history]

    @property
    def times_liked(self) -> list[float | str] | None:
        """When they were liked; None where only the order is known."""
        history = self.history or ()
        times = [
            valid_time(f"history.{k}.time", one.time)
            for k, one in enumerate(history)
            if not isinstance(one, str) and one.time is not UNSET
        ]
        if times and len(times) < len(history):
            raise InputError(
                f"history has times for {len(times)} of {len(history)} items: give all or none"
            )
        return times or None

    @property
    def weights_liked(self) -> list[float] | None:
        """How much of each item, 1 where it is not said; None where it is said of none."""
        given = [UNSET if isinstance(one, str) else one.weight for one in self.history or ()]
        if all(weight is UNSET for weight in given):
            return None
        return [1.0 if weight is UNSET else weight for weight in given]


class Range(Struct, forbid_unknown_fields=True, gc=False):
    """A range of numbers or dates, both ends included."""

    min: int | float | str | None = None
    max: int | float | str | None = None


SetName = Annotated[str, Meta(pattern=ITEM_SET_NAME)]
Value = Annotated[str, Meta(max_length=200)] | int | float | bool
Filters = Annotated[
    dict[
        Annotated[str, Meta(max_length=200)],
        Range | Annotated[list[Value], Meta(max_length=1000)] | Value,
    ],
    Meta(
        max_length=20,
        description="By what is known of items: a value, a list of which any will do, or a range such "
        'as {"min": 1980, "max": null}. All of them must hold.',
        examples=[{"year": {"min": 1980}, "genres": ["Drama", "War"]}],
    ),
]


OnlyItems = Annotated[Ids | None, Meta(description="Rank these items only.")]
WithoutItems = Annotated[Ids, Meta(description="Leave these items out.")]
OnlySet = Annotated[
    SetName | None, Meta(description="Rank the items of this set only: see PUT /item-sets.")
]
WithoutSet = Annotated[SetName | None, Meta(description="Leave the items of this set out.")]


class FairShare(Struct, forbid_unknown_fields=True, gc=False):
    """How many of the first items are of a protected group."""

    protected: Annotated[Filters, Meta(min_length=1)]
    p: Annotated[float, Meta(gt=0, lt=1, description="Wanted share of protected items.")] = 0.5
    alpha: Annotated[float, Meta(gt=0, lt=1, description="Significance of the binomial test.")] = 0.1


class RecommendRequest(ProfileRequest, kw_only=True):
    """For a known user or a history: how many items, and which."""

    n: Annotated[Count, Meta(description="How many items.")] = 10
    items: OnlyItems = None
    filter_items: WithoutItems = []
    item_set: OnlySet = None
    filter_item_set: WithoutSet = None
    filters: Filters = {}
    filter_liked: Annotated[bool, Meta(description="Leave out what is liked already.")] = True
    pinned: Annotated[Ids, Meta(description="Items that come first, in this order.")] = []
    boosts: Annotated[
        dict[Id, Annotated[float, Meta(ge=0, le=1e6)]],
        Meta(max_length=1000, description="Factors of items' scores, by id."),
    ] = {}
    at_most: Annotated[
        dict[Annotated[str, Meta(max_length=200)], Count],
        Meta(max_length=20, description='How many items of one value, by attribute: {"brand": 2}.'),
    ] = {}
    fair: Annotated[
        FairShare | None,
        Meta(description="Enough items of a protected group among the first k, for each k."),
    ] = None
    dislikes: Annotated[
        Ids, Meta(description="Leave these items out, and lower what is like them.")
    ] = []
    diversity: Annotated[
        Diversity,
        Meta(description="0 ranks by score alone, 1 by dissimilarity to the items above it alone."),
    ] = 0.0
    why: Annotated[
        bool, Meta(description="Explain each item as POST /explain does; with n of at most 100.")
    ] = False

    @property
    def plain(self) -> bool:
        """Whether it asks for a list for one user or one history, of all items or of sets of them."""
        return (
            (self.user is None) != (self.history is None)
            and self.as_of is None
            and self.items is None
            and not (self.filter_items or self.dislikes or self.diversity or self.filters)
            and not (self.pinned or self.boosts or self.at_most or self.fair or self.why)
        )


class SimilarItemsRequest(Struct, forbid_unknown_fields=True):
    """Similar to which item, how many, and from what."""

    item: Annotated[Id, Meta(description="Id of the item.")]
    n: Annotated[Count, Meta(description="How many items.")] = 10
    items: OnlyItems = None
    filter_items: WithoutItems = []
    item_set: OnlySet = None
    filter_item_set: WithoutSet = None
    filters: Filters = {}
    diversity: Annotated[
        Diversity,
        Meta(description="0 ranks by similarity alone, 1 by dissimilarity to the items above it alone."),
    ] = 0.0


class ScoresRequest(ProfileRequest, kw_only=True):
    """Whose scores of which items."""

    items: Annotated[Annotated[list[Id], Meta(max_length=10_000)], Meta(description="Ids of the items.")]


class ExplainRequest(ProfileRequest, kw_only=True):
    """Whose score of which item to explain."""

    item: Annotated[Id, Meta(description="Id of the item to explain.")]
    n: Annotated[Count, Meta(description="How many liked items to list.")] = 10
    formulas: Annotated[
        Few, Meta(description="How many formulas over users to list, by their weight in the model.")
    ] = 0
    changes: Annotated[
        Fewer, Meta(description="How many liked items to list without which the item's rank is worst.")
    ] = 0
    model_rule: Annotated[
        Few,
        Meta(
            description="For which other users the model puts the item among so many first, and which "
            "items with attributes of this one it puts there for this user."
        ),
    ] = 0


class RulesRequest(ProfileRequest, kw_only=True):
    """Whose list, or which item, the rule is about."""

    item: Annotated[
        Id | None,
        Meta(description="For which users the model puts this item first; or else name a user."),
    ] = None
    n: Annotated[
        Count, Meta(description="How many of the first items of a list count as recommended.")
    ] = FIRST


class EventItem(Struct, forbid_unknown_fields=True, gc=False):
    """An action of a user."""

    user: Annotated[Id, Meta(description="Id of the user; a new one is added with the first like.")]
    item: Annotated[
        Id | None,
        Meta(description="Id of the item; a new one is added with the first like. None for forget."),
    ] = None
    time: Annotated[
        Time | None,
        Meta(description="When. Where it is left out and times of the data are dates, now."),
    ] = None
    action: Annotated[
        Literal["like", "unlike", "forget"],
        Meta(description="unlike removes an interaction, forget all interactions of the user."),
    ] = "like"


class EventsRequest(Struct, forbid_unknown_fields=True):
    """A batch of events, in order."""

    events: Annotated[list[EventItem], Meta(min_length=1, max_length=10_000)]
    batch: Annotated[
        Id | None,
        Meta(
            description="An id of the client's own, a new one for each batch. The same batch sent "
            "again, since its answer was lost, is kept once."
        ),
    ] = None


class ItemSetRequest(Struct, forbid_unknown_fields=True):
    """The items of a set."""

    items: Annotated[list[Id], Meta(max_length=500_000, description="Ids of items.")]


BODIES = {
    "/recommend": RecommendRequest,
    "/similar": SimilarItemsRequest,
    "/scores": ScoresRequest,
    "/explain": ExplainRequest,
    "/rules": RulesRequest,
    "/events": EventsRequest,
    "/item-sets/{name}": ItemSetRequest,
}
REFERENCE = "#/components/schemas/{name}"
# What no schema of a field can say: exactly one of the two.
WHAT = ("user", "history", "item")
ONE_OF = [
    {"required": [one], "properties": {one: {"type": kind}, other: {"type": "null"}}}
    for one, other, kind in (("user", "history", "string"), ("history", "user", "array"))
]
# Of a rule: `as_of` shortens a profile, and goes with a user only.
ONE_OF_THREE = [
    {
        "required": [one],
        "properties": {name: {"type": kind if name == one else "null"} for name in names},
    }
    for one, kind, names in (
        ("user", "string", WHAT), ("history", "array", WHAT), ("item", "string", (*WHAT, "as_of")),
    )
]  # fmt: skip
_DECODERS = {kind: msgspec.json.Decoder(kind) for kind in BODIES.values()}
Body = TypeVar("Body", bound=Struct)


def request_schemas() -> dict[str, Any]:
    """Return the JSON Schemas of the bodies of requests, by name."""
    found = msgspec.json.schema_components(BODIES.values(), ref_template=REFERENCE)[1]
    for kind in (RecommendRequest, ScoresRequest, ExplainRequest):
        found[kind.__name__]["oneOf"] = ONE_OF
    found[RulesRequest.__name__]["oneOf"] = ONE_OF_THREE
    return found


def decoded(kind: type[Body], body: bytes) -> Body:
    """Return the body of a request."""
    try:
        return _DECODERS[kind].decode(body)
    except msgspec.ValidationError as error:
        raise InputError(_told(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"the body is no JSON: {error}") from None


def converted(kind: type[Body], **given: Any) -> Body:
    """Return a request from the parameters of a path and a query."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InputError(_told(str(error))) from None


def _told(text: str) -> str:
    """Return the message of msgspec, such as "Expected `int` >= 1 - at `$.n`", with the field first."""
    said, _, path = text.rpartition(" - at `$")
    if not said:
        said, path = text, ""
    where = path.rstrip("`").replace("[", ".").replace("]", "").strip(".")
    for start, name in (
        ("Object contains unknown field `", "there is no such field"),
        ("Object missing required field `", "this field is needed"),
    ):
        if said.startswith(start):
            field = said.removeprefix(start).rstrip("`")[:60]
            return f"{f'{where}.{field}'.strip('.')}: {name}"
    if said.startswith("Expected `object` of length"):
        return f"{where}: at least one entry is needed"
    if said.startswith("Expected `object`"):
        said = "an object of JSON is needed, sent with content-type: application/json"
    elif said.startswith("Expected `str | object`"):
        said = "an id, or an object of item and time, is needed"
    elif said.startswith("Expected `str` matching regex"):
        said = NO_SET_NAME
    elif said.startswith(("Expected `str`, got", "Expected `str | null`, got")):
        said = 'a text is needed; ids are texts, so "42" and not 42'
    elif said.startswith("Invalid enum value"):
        said = "one of like, unlike and forget is needed"
    said = said.replace("`", "")
    return f"{where or 'the body'}: {said[0].lower()}{said[1:]}"


class EventsResponse(BaseModel):
    """The batch is in the database; recommendations follow it a little later."""

    batch: str
    events: int = Field(description="How many the batch holds.")
    repeated: bool = Field(description="Whether it was there before, so that nothing was added.")


class ScoredItem(BaseModel):
    """An item with its title and a number: a score, a similarity or a share."""

    item: str
    title: str
    score: float


class ListedItem(ScoredItem):
    """An item of a list."""

    why: Explanation | None = Field(default=None, description="Only where `why` asks for it.")


class LikedItem(ScoredItem):
    """A liked item that a score rests on, and how long ago it was liked."""

    newer: int | None = Field(
        description="How many interactions are newer; null where the model does not rank by it."
    )
    days: int | None = Field(
        description="Calendar days (UTC) from the like to the latest one, or to as_of; null where the "
        "times are no dates."
    )


class RecommendResponse(BaseModel):
    """The best items."""

    items: list[ListedItem] = Field(description="Best first.")
    fallback: bool = Field(description="Whether nothing liked was known, so that these are popular.")
    unknown: list[str] = Field(description="Ids that the model does not have.")
    note: str | None = Field(
        default=None,
        description="Only where some first ranks have too few of the protected group.",
    )


class ScoresResponse(BaseModel):
    """The scores of items, liked ones among them."""

    items: list[ScoredItem] = Field(description="In the order asked for, without unknown ones.")
    fallback: bool = Field(description="Whether nothing liked was known: counts of users are scores.")
    unknown: list[str] = Field(description="Ids that the model does not have.")


class SimilarUser(BaseModel):
    """A user, and how similar."""

    user: str
    score: float


class SimilarUsersResponse(BaseModel):
    """The users most similar to one."""

    users: list[SimilarUser] = Field(description="Most similar first; score is the similarity.")


class DeletedResponse(BaseModel):
    """A set of items was removed."""

    name: str


class SimilarItemsResponse(BaseModel):
    """The items most similar to one."""

    items: list[ScoredItem] = Field(description="Most similar first; score is the similarity.")
    unknown: list[str] = Field(description="Ids that the model does not have.")


class FeatureProduct(BaseModel):
    """A feature of the profile, or two, that the model multiplies with the item's."""

    features: list[str] = Field(description="Titles of liked items, or attributes as column=value.")
    adds: float = Field(description="To the score, with its sign.")


class Products(BaseModel):
    """A score as a sum over products of features: base + what is listed + others + higher."""

    base: float = Field(description="The item's own, the same for every user.")
    listed: list[FeatureProduct] = Field(description="The largest first, whatever their sign.")
    others: float = Field(
        description="What the products of one or two features add that are not listed."
    )
    unlisted: int = Field(description="Their number.")
    higher: float = Field(description="What more than two features add together.")


class BlendPart(BaseModel):
    """A model of a blend."""

    model: str
    weight: float
    adds: float = Field(description="To the score of the blend.")


class NamedItem(BaseModel):
    """An item with its title."""

    item: str
    title: str


class ItemRule(BaseModel):
    """Users with these items often have this one: counted over the other users, not by the model."""

    items: list[NamedItem]
    hits: int = Field(description="How many of the users who like all of these items like it.")
    support: int = Field(description="How many users like all of these items.")
    others_hits: int = Field(description="How many of the other users like it.")
    others: int = Field(description="How many other users there are.")
    text: str = Field(description="The same in words.")


class Formula(BaseModel):
    """Users who all have an item, or of whom one has it: a feature of items, with its weight."""

    users: list[str]
    weight: float = Field(description="In the scores of the user that is asked about.")
    support: int = Field(description="For how many of the liked items it holds.")
    others: int = Field(description="For how many of the other items it holds.")
    adds: float = Field(description="To the score of the item that is asked about.")
    text: str = Field(description="The same in words.")


class Formulas(BaseModel):
    """The formulas with the largest weights that hold for the item, and the guarantees of the search."""

    kernel: str = Field(description="That of the model, with its degree.")
    connective: Literal["and", "or"] = Field(
        description="Whether all users of a formula have the item, or at least one."
    )
    least: int = Field(description="Users in a formula, at least.")
    most: int = Field(description="Users in a formula, at most.")
    users: int = Field(description="Over how many users formulas were searched.")
    liked: int = Field(description="Liked items of the user.")
    items: int = Field(description="All items.")
    bound: float = Field(description="No formula that is not listed weighs more.")
    gap: float = Field(
        description="The bound less the weight of the last one listed, or less 0 where fewer were found."
    )
    exact: bool = Field(description="Whether the search came to its end: the gap is then 0.")
    holds: int = Field(description="How many formulas over all users hold for the item.")
    score: float = Field(description="The score as the sum over all of these, and base.")
    base: float = Field(description="What of the score no formula adds.")
    text: list[str] = Field(description="The search in sentences.")
    listed: list[Formula] = Field(description="Those of positive weight, the largest first.")


class RankWithout(ScoredItem):
    """A liked item, and the score and the rank that the explained item would have without it."""

    rank: int = Field(description="Among what could be recommended now, from 1.")


class Changes(BaseModel):
    """The item's rank, and its rank without single liked items."""

    rank: int = Field(description="Among what could be recommended, from 1.")
    of: int = Field(description="How many items could be recommended.")
    liked: int = Field(description="Liked items of the user.")
    tried: int = Field(
        description="How many of them were left out, each alone: those with the largest shares."
    )
    listed: list[RankWithout] = Field(description="The worst rank first.")
    text: list[str] = Field(description="The same in sentences.")


class AttributesRule(BaseModel):
    """Of items with these attributes the model puts many first: counted in the list of the user."""

    names: list[str] = Field(description="One or two attributes of the item.")
    items: int = Field(description="How many items could be recommended to the user: all are counted.")
    listed: int = Field(description="How many of them the model puts first.")
    support: int = Field(description="How many of them have all of these attributes.")
    hits: int = Field(description="How many of these the model puts first.")
    share: float = Field(description="hits / support.")
    base: float = Field(description="listed / items.")
    low: float = Field(
        description="Lower end of the exact one-sided 95% interval of hits / support; too high, since "
        "the rule was chosen on half of these items."
    )
    tested: int = Field(
        description="`support` among the half of the items that did not choose the rule."
    )
    tested_hits: int = Field(description="`hits` among these.")
    tested_low: float = Field(
        description="Lower end of the exact one-sided 95% interval of tested_hits / tested."
    )
    itself: bool | None = Field(
        description="Whether the model puts the explained item first; null where it is liked."
    )
    text: str = Field(description="The same in words.")


class ListRule(BaseModel):
    """For users with these items the model often puts this one first: counted in its lists."""

    items: list[NamedItem] = Field(
        description="One or two liked items; none where no rule over them passed its test, and then the "
        "counts are null."
    )
    first: int = Field(description="How many of the first items of a list count as recommended.")
    users: int = Field(
        description="How many other users were counted: at most 500, drawn from those without the item."
    )
    support: int | None = Field(description="How many of them like all of these items.")
    hits: int | None = Field(description="For how many of these the model puts the item first.")
    others: int | None = Field(description="How many users do not like all of these items.")
    others_hits: int | None = Field(description="For how many of these the model puts the item first.")
    low: float | None = Field(
        description="Lower end of the exact one-sided 95% interval of hits / support; too high, since "
        "the rule was chosen on half of these users."
    )
    tested: int | None = Field(
        description="`support` among the half of the users who did not choose the rule."
    )
    tested_hits: int | None = Field(description="`hits` among these.")
    tested_low: float | None = Field(
        description="Lower end of the exact one-sided 95% interval of tested_hits / tested."
    )
    text: str = Field(description="The same in words; empty without such items.")
    attributes: AttributesRule | None = Field(
        description="Which items the model puts first for this user, by attributes of this one; null "
        "where it has none, or none passed its test: see notes."
    )


class Explanation(BaseModel):
    """The explanation of an item's score for a user, as `recsys explain --json` has it."""

    item: str
    title: str
    ranker: str = Field(description="Name of the model.")
    kind: str = Field(
        description="exact: shares that sum with the bias to the score; nearest: similarities; "
        "popularity: nothing liked is read."
    )
    score: float
    bias: float = Field(description="What the listed items do not account for: base + others.")
    base: float = Field(description="What no liked item accounts for.")
    unit: str = Field(description="The unit of the score: `users` of a count of users, or empty.")
    sentence: str = Field(description="Names the liked items that speak most for the item.")
    items: list[LikedItem] = Field(description="Liked items; score is the share or the similarity.")
    others: float = Field(description="What the liked items add that are not listed.")
    unlisted: int = Field(description="Their number.")
    products: Products | None = Field(
        description="Of factorization machines and link predictors; null for other models."
    )
    parts: list[BlendPart] = Field(description="The models of a blend; empty for other models.")
    rule: ItemRule | None = Field(description="Null where no rule passed its test.")
    formulas: Formulas | None = Field(
        description="Null where none were asked for, or the model or the profile has none: see notes."
    )
    changes: Changes | None = Field(description="Null where none were asked for.")
    model_rule: ListRule | None = Field(
        description="Null where none was asked for, or none passed its test: see notes."
    )
    notes: list[str] = Field(description="What was asked for and cannot be told, and why.")


class ExplainResponse(Explanation):
    """The explanation of an item's score for a user, and what of the request is unknown."""

    unknown: list[str] = Field(description="Ids that the model does not have.")


class RulesResponse(BaseModel):
    """A rule read from the model's own lists: the form of `recsys rules --ranker FILE --json`, too."""

    about: Literal["user", "item"]
    ranker: str = Field(description="Name of the model.")
    first: int = Field(description="How many of the first items of a list count as recommended.")
    searched: int = Field(description="Items that could be recommended, or users that were drawn.")
    text: str = Field(description="The rule and its test in words.")
    rule: str | None = Field(description="Null where no rule could be learned and tested.")
    clauses: list[list[str]] = Field(
        description="The rule is true where all conditions of at least one of these are: attributes, or "
        "titles of liked items."
    )
    tested: int = Field(description="Of what is put first, how many were set aside for the test.")
    hits: int = Field(description="How many of them follow the rule.")
    others: int = Field(description="All others that were set aside.")
    others_hits: int = Field(description="How many of them follow the rule.")
    precision: float | None = Field(description="Share put first of what follows the rule.")
    low: float | None = Field(description="Lower end of the 95% interval of hits / tested.")
    fidelity: float | None = Field(
        description="Share of what was set aside on which the rule agrees with the model."
    )
    p_value: float | None = Field(
        description="Probability of as many hits or more if the rule had nothing to do with the list."
    )
    unknown: list[str] = Field(description="Ids that the model does not have.")


class ItemSetResponse(BaseModel):
    """A set of items that requests may name."""

    name: str
    size: int = Field(description="How many different items it holds.")
    unknown: int = Field(description="How many of them the model that is served does not have.")


class EventsState(BaseModel):
    """Progress of the events."""

    kept: int = Field(description="Position of the last event in the database.")
    applied: int = Field(description="Position of the last event in the model that is served.")


class HealthResponse(BaseModel):
    """The served model, and whether a newer file was refused."""

    status: str
    model: str = Field(description="Name of the ranker.")
    users: int
    items: int
    reloads: int = Field(description="Newer files taken since the start.")
    error: str | None = Field(
        description="Why the newest file was refused, or events could not be applied."
    )
    loading: str | None = Field(description="The file that is being loaded, and its size.")
    failing: dict[str, str] = Field(
        description="What went wrong in a part of the service that runs beside the requests, by its "
        "name, until it succeeds again."
    )
    events: EventsState | None = Field(description="Null without a database of events.")


class ReadyResponse(BaseModel):
    """Requests may be sent here."""

    status: Literal["ready"]


class Refusal(BaseModel):
    """Why a request was refused."""

    detail: str
