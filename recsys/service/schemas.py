"""Requests and responses; `GET /docs` shows them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

MOST_REASONS = 10_000  # explained items × liked items of one request

Id = Annotated[str, Field(min_length=1, max_length=200)]
Ids = Annotated[list[Id], Field(max_length=1000)]
Count = Annotated[int, Field(strict=True, ge=1, le=1000)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Flag = Annotated[bool, Field(strict=True)]
Scalar = Annotated[str, Field(max_length=200)] | bool | Number


def _few_conditions(value: Any) -> Any:
    """Refuse a large mapping before pydantic looks at each entry."""
    if isinstance(value, dict) and len(value) > 20:
        raise ValueError("at most 20 conditions")
    return value


class Request(BaseModel):
    """A request body without unknown fields."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, body: Any) -> Any:
        # Not extra="forbid", which reports each of a million unknown fields.
        if isinstance(body, dict):
            unknown = next((name for name in body if name not in cls.model_fields), None)
            if unknown is not None:
                raise ValueError(f"unknown field {unknown[:60]!r}")
        return body


class HistoryItem(Request):
    """A liked item with its time and weight."""

    item: Id
    time: Number | Annotated[str, Field(max_length=40)] | None = None
    """A number in the unit of the data, such as Unix seconds, or an ISO date, by default in UTC."""
    weight: Annotated[Number, Field(gt=0)] | None = None
    """For a model that learns from weights: plays, quantity."""


class ProfileRequest(Request):
    """A known user or a history."""

    user: Id | None = None
    """Id of a known user."""
    history: Annotated[list[Id | HistoryItem], Field(max_length=1000)] | None = None
    """Liked items of a new user, the oldest first."""

    @model_validator(mode="after")
    def _one_of_two(self) -> ProfileRequest:
        if (self.user is None) == (self.history is None):
            raise ValueError("pass exactly one of user and history")
        return self


class Range(Request):
    """A range of numbers or dates, both ends included."""

    min: Number | str | None = None
    max: Number | str | None = None


class Candidates(Request):
    """Number of items, and filters."""

    n: Count = 10
    items: Ids | None = None
    """Rank these items only."""
    filter_items: Ids = []
    """Leave these items out."""
    filters: Annotated[
        dict[str, Range | Annotated[list[Scalar], Field(max_length=1000)] | Scalar],
        BeforeValidator(_few_conditions),
    ] = {}
    """Conditions on columns of the item table: a value, a list of values, or a range: {"min": 1980}."""
    diversity: Share = 0.0
    """From 0, order by score, to 1, order by dissimilarity to the items above."""

    @model_validator(mode="after")
    def _one_list(self) -> Candidates:
        if self.items is not None and self.filter_items:
            raise ValueError("pass items or filter_items, not both")
        return self


class RecommendRequest(ProfileRequest, Candidates):
    """A list for a known user or a history."""

    filter_liked: Flag = True
    """Leave out what is liked already."""
    dislikes: Ids = []
    """Leave these out, and rank similar items lower."""
    why: Flag = False
    """Explain each item as POST /explain does."""

    @property
    def slow(self) -> bool:
        """Whether the request takes more than about 20 ms."""
        return bool(self.why or self.diversity or self.dislikes)


class SimilarRequest(Candidates):
    """Items similar to one."""

    item: Id


class ScoresRequest(ProfileRequest):
    """Scores of items for a known user or a history."""

    items: Annotated[list[Id], Field(max_length=10_000)]


class ExplainRequest(ProfileRequest):
    """Explanation of an item's score."""

    item: Id
    n: Count = 10
    """Number of liked items to list."""
    changes: Annotated[int, Field(strict=True, ge=0, le=10)] = 0
    """Number of liked items to remove one at a time, largest effects first."""


class ScoredItem(BaseModel):
    """An item with its title and its score or similarity."""

    item: str
    title: str
    score: float
    why: dict[str, Any] | None = Field(default=None, description="Only where a request asks for it.")


class ItemsResponse(BaseModel):
    """Items, best or most similar first; for scores, in the order of the request."""

    items: list[ScoredItem]
    unknown: list[str] = Field(description="Ids that the model does not have.")


class RecommendResponse(ItemsResponse):
    """Items, and a flag for popular items only."""

    fallback: bool = Field(description="Whether nothing liked was known: scores are counts of users.")


class Refusal(BaseModel):
    """Reason for a refused request."""

    detail: str
