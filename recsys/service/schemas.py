"""What requests and answers look like: the schemas that /docs shows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    model_validator,
)

from recsys.utils.dates import moment

Id = Annotated[str, Field(min_length=1, max_length=200)]
Ids = Annotated[list[Id], Field(max_length=1000)]


def _number(given: Any) -> Any:
    """Refuse texts and truth values, which would be taken for numbers."""
    if isinstance(given, (bool, str)):
        raise ValueError("a number is needed")
    return given


Count = Annotated[int, BeforeValidator(_number), Field(ge=1, le=1000)]
Diversity = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1, allow_inf_nan=False)]


def _time(given: Any) -> Any:
    """Refuse what is no point in time; it is read where the unit of the data is known."""
    moment("time", given)
    return given


Time = Annotated[
    int | float | str,
    BeforeValidator(_time),
    Field(
        description="A number in the unit of the data (Unix seconds, where its times are dates), or "
        "an ISO date or datetime, UTC where it has no zone. Not before 1970.",
        examples=["2024-01-31", "2024-01-31T18:05:00Z", 1706724300],
    ),
]


class Request(BaseModel):
    """What bodies share: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class TimedItem(Request):
    """A liked item, and when it was liked."""

    item: Id = Field(description="Id of the item.")
    time: Time


TAGS = {str: "(id)", dict: "(item, time)", TimedItem: "(item, time)"}  # told apart by what they are
Liked = Annotated[
    Annotated[Id, Tag("(id)")] | Annotated[TimedItem, Tag("(item, time)")],
    Discriminator(
        lambda given: TAGS.get(type(given)),
        custom_error_type="history",
        custom_error_message="an id, or an object of item and time, is needed",
    ),
]
History = Annotated[list[Liked], Field(max_length=1000)]


class ProfileRequest(Request):
    """For whom: a known user or a history."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [
                {
                    "required": [one],
                    "properties": {one: {"type": kind}, other: {"type": "null"}},
                }
                for one, other, kind in (("user", "history", "string"), ("history", "user", "array"))
            ]
        },
    )

    user: Id | None = Field(None, description="Id of a known user; or else post a history.")
    history: History | None = Field(
        None,
        description="What somebody never seen likes: ids in order, the oldest first, or objects of "
        "item and time; no item twice.",
    )
    as_of: Time | None = Field(
        None,
        description="Leave out what was liked then or later, of a known user or of a history with "
        "times. The model itself was fitted on all.",
    )

    @model_validator(mode="after")
    def _all_or_none(self) -> Any:
        timed = sum(isinstance(one, TimedItem) for one in self.history or ())
        if timed and timed < len(self.history or ()):
            raise ValueError(
                f"history has times for {timed} of {len(self.history or ())} items: give all or none"
            )
        return self

    @property
    def items_liked(self) -> list[str] | None:
        """The ids of the history."""
        if self.history is None:
            return None
        return [one if isinstance(one, str) else one.item for one in self.history]

    @property
    def times_liked(self) -> list[float | str] | None:
        """When they were liked; None where only the order is known."""
        if not self.history or isinstance(self.history[0], str):
            return None
        return [one.time for one in self.history if not isinstance(one, str)]


class RecommendRequest(ProfileRequest):
    """For a known user or a history: how many items, and which."""

    n: Count = Field(10, description="How many items.")
    items: Ids | None = Field(None, description="Rank these items only.")
    filter_items: Ids = Field([], description="Leave these items out.")
    filter_liked: StrictBool = Field(True, description="Leave out what is liked already.")
    dislikes: Ids = Field([], description="Leave these items out, and lower what is like them.")
    diversity: Diversity = Field(0.0, description="From 0, best first, to 1, unlike first.")

    @property
    def plain(self) -> bool:
        """Whether it asks for a list for one user or one history, and for nothing else."""
        return (
            (self.user is None) != (self.history is None)
            and self.as_of is None
            and self.items is None
            and not (self.filter_items or self.dislikes or self.diversity)
        )


class SimilarItemsRequest(Request):
    """Similar to which item, how many, and from what."""

    item: Id = Field(description="Id of the item.")
    n: Count = Field(10, description="How many items.")
    items: Ids | None = Field(None, description="Consider these items only.")
    filter_items: Ids = Field([], description="Leave these items out.")
    diversity: Diversity = Field(0.0, description="From 0, most similar first, to 1, unlike first.")


class ExplainRequest(ProfileRequest):
    """Whose score of which item to explain."""

    item: Id = Field(description="Id of the item to explain.")
    n: Count = Field(10, description="How many liked items to list.")


def _storable(given: str) -> str:
    """Refuse what databases do not take as text."""
    if "\0" in given or any("\ud800" <= letter <= "\udfff" for letter in given):
        raise ValueError("an id holds a character that no text has")
    return given


Text = Annotated[Id, AfterValidator(_storable)]


class EventItem(Request):
    """What a user did."""

    user: Text = Field(description="Id of the user; a new one is added with the first like.")
    item: Text | None = Field(
        None, description="Id of the item; a new one is added with the first like. None of forget."
    )
    time: Time | None = Field(
        None, description="When; now if it does not say, where the times of the data are dates."
    )
    action: Literal["like", "unlike", "forget"] = Field(
        "like", description="unlike takes a like back, forget all that the user ever liked."
    )

    @model_validator(mode="after")
    def _item_or_not(self) -> Any:
        if (self.item is None) != (self.action == "forget"):
            wanted = "no item" if self.action == "forget" else "an item"
            raise ValueError(f"an event of action {self.action} needs {wanted}")
        return self


class EventsRequest(Request):
    """A batch of events, in order."""

    batch: Text | None = Field(
        None,
        description="An id of the client's own, a new one for each batch. The same batch sent again, "
        "since its answer was lost, is kept once.",
    )
    events: list[EventItem] = Field(min_length=1, max_length=10_000)


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


class LikedItem(ScoredItem):
    """A liked item that a score rests on, and how long ago it was liked."""

    newer: int | None = Field(
        description="How many likes are newer; null where the model does not rank by it."
    )
    days: int | None = Field(
        description="Calendar days (UTC) from the like to the latest one, or to as_of; null where the "
        "times are no dates."
    )


class RecommendResponse(BaseModel):
    """The best items."""

    items: list[ScoredItem] = Field(description="Best first.")
    fallback: bool = Field(description="Whether nothing liked was known, so that these are popular.")
    unknown: list[str] = Field(description="Ids that the model does not have.")


class SimilarItemsResponse(BaseModel):
    """The items most similar to one."""

    items: list[ScoredItem] = Field(description="Most similar first; score is the similarity.")
    unknown: list[str] = Field(description="Ids that the model does not have.")


class ExplainResponse(BaseModel):
    """What an item's score for a user rests on."""

    kind: str = Field(
        description="exact: shares that sum with the bias to the score; nearest: similarities; "
        "popularity: nothing liked is read."
    )
    score: float
    bias: float = Field(description="What the listed items do not account for.")
    unknown: list[str] = Field(description="Ids that the model does not have.")
    items: list[LikedItem] = Field(description="Liked items; score is the share or the similarity.")


class EventsState(BaseModel):
    """How far events have come."""

    kept: int = Field(description="Position of the last event in the database.")
    applied: int = Field(description="Position of the last event in the model that is served.")


class HealthResponse(BaseModel):
    """Which model is served, and whether a newer file was refused."""

    status: str
    model: str = Field(description="Name of the ranker.")
    users: int
    items: int
    reloads: int = Field(description="Newer files taken since the start.")
    error: str | None = Field(
        description="Why the newest file was refused, or events could not be applied."
    )
    events: EventsState | None = Field(description="Null without a database of events.")


class ReadyResponse(BaseModel):
    """Requests may be sent here."""

    status: Literal["ready"]


class Refusal(BaseModel):
    """Why a request was refused."""

    detail: str
