"""Cards: an item with its year and genres, how well it matches beside the others, and one reason.

Titles come from anybody's file: all of it is escaped, and nothing of it is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app.catalogues import Catalogue

MOST_CHIPS = 4
STYLE = """
<style>
.rs-head {display: flex; flex-wrap: wrap; gap: .3rem .5rem; align-items: baseline; line-height: 1.35;}
.rs-place {font-variant-numeric: tabular-nums; opacity: .75;}
.rs-match {font-size: .85rem; margin-left: auto; white-space: nowrap; opacity: .85; cursor: help;}
.rs-title {font-weight: 650; font-size: 1.05rem; overflow-wrap: anywhere;}
.rs-chip {font-size: .78rem; padding: 0 .5rem; border-radius: 1rem; white-space: nowrap;
  border: 1px solid color-mix(in srgb, currentColor 30%, transparent);}
.rs-mark {font-weight: 600; border-color: currentColor;}
.rs-why {font-size: .92rem; line-height: 1.4; margin: .35rem 0 0; overflow-wrap: anywhere;}
/* cards of a row are of one height */
[data-testid=stGridCellContent] > [data-testid=stLayoutWrapper] {flex-grow: 1;}
.rs-lines {margin: 0; padding-left: 1.8rem; opacity: .85;}
.rs-lines li {padding: .2rem 0; overflow-wrap: anywhere;}
.rs-row {display: flex; flex-wrap: wrap; gap: .3rem .4rem; margin: .3rem 0 .1rem; min-height: 1.5rem;}
</style>
"""


def style() -> None:
    """Put the cards' style on the page."""
    st.html(STYLE)


def about(catalogue: Catalogue, item: int) -> list[str]:
    """Return what chips say of an item: its year, where the title has it not, and its genres."""
    title = str(catalogue.titles[item])
    year = catalogue.years[item]
    chips = [f"{year:.0f}"] if np.isfinite(year) and f"{year:.0f}" not in title else []
    names = catalogue.attributes.names
    has = np.flatnonzero(np.asarray(catalogue.attributes.X[item]).ravel() > 0)
    return [*chips, *(names[k] for k in has if plain(names[k]))][:MOST_CHIPS]


def plain(attribute: str) -> bool:
    """Return whether an attribute is a genre or alike, and no decade and no `column=value`."""
    return "=" not in attribute and not attribute.endswith("0s")


def shares(scores: NDArray[np.float32], every: NDArray[np.float32]) -> list[float]:
    """Return how far each score lies from the lowest of all to the highest, 0 to 1."""
    low, high = float(np.min(every)), float(np.max(every))
    span = high - low
    return [min(max((float(s) - low) / span, 0.0), 1.0) if span > 0 else 1.0 for s in scores]


def match(share: float | None) -> str:
    """Return a word for where a score lies between the lowest of all and the highest, in thirds.

    None is an item that nothing of the profile speaks for.
    """
    if share is None:
        return "no match"
    return f"{'strong' if share >= 2 / 3 else 'fair' if share >= 1 / 3 else 'weak'} match"


def card(
    rank: int,
    title: str,
    chips_: Sequence[str],
    share: float | None,
    score: float,
    why: str,
    mark: str = "",
) -> str:
    """Return a card's markup; every text is escaped."""
    exact = f"score {score:.4g}"
    if share is not None:
        exact += f", {share:.0%} of the way from the lowest score to the highest"
    told = f'role="img" aria-label="{match(share)}: {exact}" title="{exact}"'
    head = (
        f'<span class="rs-place">{rank}.</span> <span class="rs-title">{escape(title)}</span>'
        f'<span class="rs-match" {told}>{match(share)}</span>'
    )
    noted = f'<span class="rs-chip rs-mark">{escape(mark)}</span>' if mark else ""
    return f'<div class="rs-head">{head}</div>{chips(chips_, noted)}<p class="rs-why">{escape(why)}</p>'


def lines(entries: Iterable[tuple[str, Sequence[str], str]]) -> str:
    """Return a numbered list as markup, of titles with their chips and what is said of each."""
    inside = "".join(
        f"<li>{escape(title)} "
        + "".join(f'<span class="rs-chip">{escape(chip)}</span> ' for chip in small)
        + f"{escape(said)}</li>"
        for title, small, said in entries
    )
    return f'<ol class="rs-lines">{inside}</ol>'


def title(text: str, small: Sequence[str]) -> str:
    """Return an item's title with its chips as a heading's markup."""
    inside = "".join(f' <span class="rs-chip">{escape(chip)}</span>' for chip in small)
    return (
        f'<div class="rs-head"><h3 class="rs-title" style="padding: 0">{escape(text)}</h3>{inside}</div>'
    )


def chips(texts: Sequence[str], more: str = "") -> str:
    """Return a row of chips as markup, with more markup of ours behind them; nothing where none is."""
    if not texts and not more:
        return ""
    inside = "".join(f'<span class="rs-chip">{escape(text)}</span>' for text in texts)
    return f'<div class="rs-row">{inside}{more}</div>'
