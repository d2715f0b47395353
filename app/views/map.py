"""Map: items in two dimensions by a model's vectors, with what is liked, and an area to select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app import state
from app.catalogues import Catalogue
from app.charts import map as map_charts
from app.navigation import leave_for
from app.parts import cards, examples
from app.parts.chosen_user import ChosenUser, called, choose_order, choose_user, shelf
from app.parts.lists import recommend
from app.parts.models import choose_model, models, named
from app.session import BUILT, SAMPLE, ask, session
from recsys.embeddings import ItemVectors, Projection, item_vectors, project
from recsys.errors import counted
from recsys.rankers.registry import ranker_of

INTRO = (
    "Items whose vectors are alike lie close together. Drag over the map to select an area, or choose a "
    "title to see what lies around it."
)
MOST_ITEMS = 5000  # points of a chart that a browser moves at ease
MOST_LIKES = 100  # of an area, taken for a profile
MOST_GROUPS = 6  # genres with a colour of their own
AROUND = 20  # items around a title
LISTED = 10  # recommendations that are marked
TITLED = 5  # liked items whose titles are written into the map
BESIDE = 2  # liked items beside each recommendation in the list
KEPT = "before the map"  # name of the profile that an area's replaces
GENRE, DECADE, POPULARITY = "genre", "decade", "popularity"
METHODS = {"pca": "main directions (at once)", "tsne": "neighbourhoods (t-SNE, slower)"}
OTHER = "other"


@dataclass(frozen=True)
class Drawn:
    """What is on the map.

    Attributes
    ----------
    items : (n,) int64
        The items shown.
    points : (n, 2) float64
    """

    items: NDArray[np.int64]
    points: NDArray[np.float64]


def page() -> None:
    """Show the page."""
    st.header("Map", anchor=False)
    examples.question("map")
    cards.style()
    name = state.choose_dataset()
    spec = choose_model()
    catalogue = state.catalogue(name)
    chosen_user = choose_user(catalogue)
    st.caption(INTRO)
    method = ask(
        st.segmented_control, "Lay out by", name="map.method", default="pca", options=list(METHODS),
        format_func=METHODS.get, required=True,
        help="Main directions: the two along which the vectors differ most. t-SNE keeps neighbours "
        "together; it can be cancelled between its four parts.",
    )  # fmt: skip
    model = state.ranker(catalogue, spec)
    chosen_user = choose_order(catalogue, chosen_user, [model])
    found: ItemVectors = state.result(
        ("vectors", catalogue.key, spec),
        lambda progress: item_vectors(model, catalogue.matrix),
        f"Vectors of {spec}",
    )
    shown = on_map(catalogue)
    if len(shown) < 3:
        st.info("A map needs three items that some user likes: choose another dataset.")
        return
    laid: Projection = state.result(
        ("map", catalogue.key, spec, method),
        lambda progress: project(found.vectors[shown], method),
        f"Laying out {counted(len(shown), 'item')}",
    )
    drawn = Drawn(shown, laid.points)
    ranked = recommend(model, chosen_user, LISTED)
    liked = chosen_user.row.indices
    alike = similarities(found.vectors, ranked.ids, liked)
    options = [one for one, there in _colours(catalogue).items() if there]
    colour = ask(
        st.segmented_control, "Colour", name="map.colour", default=options[0], options=options,
        required=True,
    )  # fmt: skip
    close = liked[nearest_likes(alike)]
    frame, groups = points(catalogue, drawn, colour, liked, ranked.ids, [*ranked.ids, *close])
    chart = map_charts.items(frame, colour, groups, axes(laid), f"Items by {named(spec)}")
    told = st.altair_chart(
        chart, width="stretch", on_select="rerun", selection_mode=map_charts.AREA,
        key=f"map {state.digest(catalogue.key, spec, method, colour)}",
        alt=f"Items of {catalogue.data.name} in two dimensions by {spec}",
    )  # fmt: skip
    neighbours(catalogue, ranked.ids, liked, alike)
    for line in sentences(catalogue, spec, found, laid, drawn, chosen_user, ranked.ids):
        st.text(line)
    if colour == GENRE:
        st.caption(genre_note(groups))
    if not found.own:
        offer_own()
    on = set(shown.tolist())
    around = ask(
        st.selectbox, "Around a title", name="map.around", default=None,
        options=[one for one in catalogue.item_ids if catalogue.items[one] in on],
        format_func=catalogue.label, filter_mode="contains", index=None, placeholder="Any title",
    )  # fmt: skip
    area(catalogue, drawn, told, around, chosen_user, ranked.ids)


# ---- what is drawn


def on_map(catalogue: Catalogue) -> NDArray[np.int64]:
    """Return the items of the map: those that some user likes, the most popular ones of too many."""
    order = np.argsort(-catalogue.popularity, kind="stable")
    liked = order[catalogue.popularity[order] > 0]
    return np.sort(liked[:MOST_ITEMS]).astype(np.int64)


def _colours(catalogue: Catalogue) -> dict[str, bool]:
    """Return what items can be coloured by."""
    return {
        GENRE: any(cards.plain(name) for name in catalogue.attributes.names),
        DECADE: bool(np.isfinite(catalogue.years).any()),
        POPULARITY: True,
    }


def points(
    catalogue: Catalogue,
    drawn: Drawn,
    colour: str,
    liked: NDArray[np.int32],
    listed: NDArray[np.int32],
    titled: Sequence[int] = (),
) -> tuple[pd.DataFrame, list[str]]:
    """Return the points with what their tooltips say, and the colour's values in order.

    `titled` are the items whose titles are written into the map.
    """
    named_ = set(map(int, titled))
    marks = np.full(len(catalogue.labels), "", dtype=object)
    marks[listed] = map_charts.LISTED
    marks[liked] = map_charts.LIKED
    columns: dict[str, Any] = {
        "x": drawn.points[:, 0],
        "y": drawn.points[:, 1],
        "title": [catalogue.labels[k] for k in drawn.items],
        "users": catalogue.popularity[drawn.items].astype(int),
        "mark": marks[drawn.items],
        "name": [catalogue.labels[k] if k in named_ else "" for k in drawn.items],
    }
    groups: list[str] = []
    if colour == GENRE:
        columns["genre"], groups = genres(catalogue, drawn.items)
    elif colour == DECADE:
        columns["decade"], groups = decades(catalogue, drawn.items)
    return pd.DataFrame(columns), groups


def genres(catalogue: Catalogue, items: NDArray[np.int64]) -> tuple[list[str], list[str]]:
    """Return each item's rarest genre among those of most items, and these, the most frequent first."""
    names = catalogue.attributes.names
    plain = [k for k, name in enumerate(names) if cards.plain(name)]
    X = np.asarray(catalogue.attributes.X[items][:, plain]) > 0
    counts = X.sum(axis=0)
    order = np.argsort(-counts, kind="stable")[:MOST_GROUPS]
    order = order[counts[order] > 0]
    of = []
    for row in X[:, order]:
        has = np.flatnonzero(row)
        of.append(names[plain[order[has[-1]]]] if len(has) else OTHER)  # the last one is the rarest
    groups = [names[plain[k]] for k in order]
    return of, [*groups, OTHER] if OTHER in of else groups


def decades(catalogue: Catalogue, items: NDArray[np.int64]) -> tuple[list[str], list[str]]:
    """Return each item's decade, and the decades in order."""
    years = catalogue.years[items]
    of = [f"{year // 10 * 10:.0f}s" if np.isfinite(year) else OTHER for year in years]
    known = sorted({one for one in of if one != OTHER}, key=lambda one: int(one[:-1]))
    return of, [*known, OTHER] if OTHER in of else known


def axes(laid: Projection) -> tuple[str, str]:
    """Return the axes' titles: t-SNE's have no meaning of their own."""
    if laid.shares is None:
        return "t-SNE, no unit", "t-SNE, no unit"
    one, two = laid.shares
    return f"first direction ({one:.0%} of the variance)", f"second direction ({two:.0%})"


# ---- neighbours


def similarities(
    vectors: NDArray[np.float32], listed: NDArray[np.int32], liked: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return the cosines of vectors, (listed, liked); 0 for a vector of zeros."""

    def unit(items: NDArray[np.int32]) -> NDArray[np.float64]:
        rows = vectors[items].astype(np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths > 0, lengths, 1.0)

    found: NDArray[np.float64] = unit(listed) @ unit(liked).T
    return found


def nearest_likes(alike: NDArray[np.float64], number: int = TITLED) -> NDArray[np.int64]:
    """Return the positions of the liked items that are most like a listed one, the most alike first."""
    if alike.shape[0] == 0:
        return np.zeros(0, dtype=np.int64)
    return np.argsort(-alike.max(axis=0), kind="stable")[:number]


def neighbours(
    catalogue: Catalogue,
    listed: NDArray[np.int32],
    liked: NDArray[np.int32],
    alike: NDArray[np.float64],
) -> None:
    """Show each recommendation with the liked items most like it, as a list that a phone shows, too."""
    if alike.size == 0:
        return
    st.subheader("Neighbours", anchor=False)
    st.caption(
        f"Each recommended item with the {catalogue.word} items whose vectors are most like its own. A "
        f"wide map names the recommended items and the "
        f"{min(TITLED, len(liked))} {catalogue.word} items most like one of them."
    )
    order = np.argsort(-alike, axis=1, kind="stable")[:, :BESIDE]
    st.html(
        cards.lines(
            (
                catalogue.labels[item], (),
                "– near " + (" and ".join(catalogue.labels[liked[k]] for k in row if near[k] > 0)
                             or f"no {catalogue.word} item"),
            )
            for item, row, near in zip(listed, order, alike, strict=True)
        )
    )  # fmt: skip


# ---- what is said


def sentences(
    catalogue: Catalogue,
    spec: str,
    found: ItemVectors,
    laid: Projection,
    drawn: Drawn,
    chosen_user: ChosenUser,
    listed: NDArray[np.int32],
) -> list[str]:
    """Return what the map shows, how much of the vectors, and what it does not say."""
    everything = len(drawn.items) == len(catalogue.labels)
    which = "all" if everything else f"the {len(drawn.items):,} most popular of"
    on = set(drawn.items.tolist())
    likes = sum(int(k) in on for k in chosen_user.row.indices)
    who = (
        called(catalogue, chosen_user)
        if chosen_user.user is None
        else f"user {called(catalogue, chosen_user)}"
    )
    lines = [
        f"The map has {which} {counted(len(catalogue.labels), 'item')}. Diamonds mark "
        f"{counted(likes, f'{catalogue.word} item')} of {who}, triangles "
        f"{counted(sum(int(k) in on for k in listed), 'item')} that the model recommends."
    ]
    if laid.shares is not None:
        both = float(laid.shares.sum())
        lines.append(
            f"Its two directions show {both:.0%} of how the vectors differ; the other {1 - both:.0%} "
            "cannot be seen, so items that look close need not be alike."
        )
    else:
        lines.append(
            "t-SNE puts items next to those they are most alike; how far groups lie apart, and how wide "
            "they are, says nothing."
        )
    lines.append("Distance on the map is not the score: the model ranks by its scores alone.")
    if not found.own:
        lines.append(
            f"{spec} has no vectors of its own: these are the "
            f"{counted(found.vectors.shape[1], 'main direction')} of its scores for "
            f"{counted(found.users, 'user')}, which miss {found.error:.0%} of their size."
        )
    return lines


def genre_note(groups: list[str]) -> str:
    """Return how an item of several genres gets its colour."""
    number = len([one for one in groups if one != OTHER])
    end = " Grey: none of these." if OTHER in groups else ""
    if number < 2:
        return f"Coloured by genre.{end}"
    return (
        f"The {number} genres of most items have a colour; an item of several of them has that of the "
        f"rarest.{end}"
    )


@st.cache_data(show_spinner=False)
def with_vectors() -> list[str]:
    """Return the offered models that have vectors of their own."""
    return [spec for spec in models() if "embeddings" in ranker_of(spec).capabilities]


def offer_own() -> None:
    """Say which models have vectors of their own, and offer one."""
    own = with_vectors()
    if not own:
        return
    first = "als" if "als" in own else own[0]
    st.text(f"Models with vectors of their own: {', '.join(own)}.")
    st.button(
        f"Show the map of {first}", on_click=session().set, args=("model", first),
        icon=":material/scatter_plot:",
    )  # fmt: skip


# ---- an area


def inside(drawn: Drawn, box: dict[str, list[float]]) -> NDArray[np.int64]:
    """Return the positions on the map that lie in a box, its edges included."""
    keep = np.ones(len(drawn.items), dtype=bool)
    for axis, name in enumerate(("x", "y")):
        if name in box and len(box[name]) == 2:
            low, high = sorted(map(float, box[name]))
            keep &= (drawn.points[:, axis] >= low) & (drawn.points[:, axis] <= high)
    return np.flatnonzero(keep)


def nearest(drawn: Drawn, item: int, number: int = AROUND) -> NDArray[np.int64]:
    """Return the positions nearest to an item on the map, the item itself first."""
    at = int(np.flatnonzero(drawn.items == item)[0])
    gaps = ((drawn.points - drawn.points[at]) ** 2).sum(axis=1)
    gaps[at] = -1.0
    return np.argsort(gaps, kind="stable")[: number + 1]


def area(
    catalogue: Catalogue,
    drawn: Drawn,
    told: Any,
    around: str | None,
    chosen_user: ChosenUser,
    listed: NDArray[np.int32],
) -> None:
    """Show the items of the selected area, or around a title, and the way to recommend from them."""
    box = dict(told.selection.get(map_charts.AREA) or {}) if told is not None else {}
    if box:
        places = inside(drawn, box)
        places = places[np.argsort(-catalogue.popularity[drawn.items[places]], kind="stable")]
        head = f"{counted(len(places), 'item')} in the selected area, the most popular first."
    elif around is not None:
        places = nearest(drawn, catalogue.items[around])
        head = (
            f"{catalogue.label(around)} and the {counted(len(places) - 1, 'item')} nearest to it on the "
            "map, the nearest first."
        )
    else:
        st.info("Nothing is selected: drag over the map, or choose a title above.")
        return
    st.text(head)
    if len(places) == 0:
        return
    chosen = drawn.items[places]
    st.dataframe(table(catalogue, chosen, chosen_user, listed), hide_index=True, width="stretch")
    ids = [str(catalogue.data.item_ids[k]) for k in chosen[:MOST_LIKES]]
    st.button(
        button(len(ids), len(chosen)), type="primary", icon=":material/recommend:",
        on_click=recommend_from, args=(ids,),
    )  # fmt: skip


def button(taken: int, every: int) -> str:
    """Return what the button says that recommends from so many of the items."""
    if taken < every:
        return f"Recommend from the first {taken} of these items"
    return "Recommend from this item" if taken == 1 else f"Recommend from these {taken} items"


def table(
    catalogue: Catalogue, items: NDArray[np.int64], chosen_user: ChosenUser, listed: NDArray[np.int32]
) -> pd.DataFrame:
    """Return the items with what is known of them."""
    liked, best = set(chosen_user.row.indices.tolist()), {int(k): n + 1 for n, k in enumerate(listed)}
    columns: dict[str, Any] = {"title": [catalogue.labels[k] for k in items]}
    if np.isfinite(catalogue.years).any():
        columns["year"] = pd.array(
            [int(y) if np.isfinite(y) else None for y in catalogue.years[items]], dtype="Int64"
        )
    if _colours(catalogue)[GENRE]:
        columns["genres"] = [genres_of(catalogue, int(k)) for k in items]
    columns["users who have it"] = catalogue.popularity[items].astype(int)
    columns["marked"] = [
        map_charts.LIKED if int(k) in liked
        else f"{map_charts.LISTED}, place {best[int(k)]}" if int(k) in best else ""
        for k in items
    ]  # fmt: skip
    return pd.DataFrame(columns)


def genres_of(catalogue: Catalogue, item: int) -> str:
    """Return an item's genres in one cell."""
    has = np.flatnonzero(np.asarray(catalogue.attributes.X[item]).ravel() > 0)
    names = catalogue.attributes.names
    return ", ".join(names[k] for k in has if cards.plain(names[k]))


def recommend_from(ids: list[str]) -> None:
    """Open Recommend with a profile of these items; the built profile that was there is kept."""
    here = session()
    before = here.get("likes", [])
    dataset = here.get("data", SAMPLE)
    here.set("mode", BUILT)
    if before and before != ids:
        shelf()[KEPT] = {"dataset": dataset, "likes": before, "dislikes": here.get("dislikes", [])}
        st.toast(f"The profile you had built is saved as “{KEPT}”.")
    here.set("likes", ids)
    leave_for("recommend")
