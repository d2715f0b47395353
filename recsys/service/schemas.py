"""What requests and answers look like: the schemas that /docs shows."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[str, Field(min_length=1, max_length=200)]
Ids = Annotated[list[Id], Field(max_length=1000)]
Count = Annotated[int, Field(ge=1, le=1000)]
Diversity = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Request(BaseModel):
    """What bodies share: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class RecommendRequest(Request):
    """For a known user or a history: how many items, and which."""

    user: Id | None = Field(None, description="Id of a known user; or else post a history.")
    history: Ids | None = Field(None, description="Ids of liked items, of somebody never seen.")
    n: Count = Field(10, description="How many items.")
    items: Ids | None = Field(None, description="Rank these items only.")
    filter_items: Ids = Field([], description="Leave these items out.")
    filter_liked: bool = Field(True, description="Leave out what is liked already.")
    dislikes: Ids = Field([], description="Leave these items out, and lower what is like them.")
    diversity: Diversity = Field(0.0, description="From 0, best first, to 1, unlike first.")


class SimilarItemsRequest(Request):
    """Similar to which item, how many, and from what."""

    item: Id = Field(description="Id of the item.")
    n: Count = Field(10, description="How many items.")
    items: Ids | None = Field(None, description="Consider these items only.")
    filter_items: Ids = Field([], description="Leave these items out.")
    diversity: Diversity = Field(0.0, description="From 0, most similar first, to 1, unlike first.")


class ExplainRequest(Request):
    """Whose score of which item to explain."""

    user: Id | None = Field(None, description="Id of a known user; or else post a history.")
    history: Ids | None = Field(None, description="Ids of liked items, of somebody never seen.")
    item: Id = Field(description="Id of the item to explain.")
    n: Count = Field(10, description="How many liked items to list.")


class ScoredItem(BaseModel):
    """An item with its title and a number: a score, a similarity or a share."""

    item: str
    title: str
    score: float


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
    items: list[ScoredItem] = Field(description="Liked items; score is the share or the similarity.")


class HealthResponse(BaseModel):
    """Which model is served, and whether a newer file was refused."""

    status: str
    model: str = Field(description="Name of the ranker.")
    users: int
    items: int
    reloads: int = Field(description="Newer files taken since the start.")
    error: str | None = Field(description="Why the newest file was refused.")


class Refusal(BaseModel):
    """Why a request was refused."""

    detail: str
