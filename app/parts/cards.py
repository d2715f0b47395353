"""Cards: an item with its year and genres, how good its score is beside the others, and one reason.

Titles come from anybody's file: all of it is escaped, and nothing of it is read as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from app.catalogues import Catalogue

MOST_CHIPS = 4
STYLE = """
<style>
.rs-head {display: flex; flex-wrap: wrap; gap: .3rem .5rem; align-items: baseline; line-height: 1.35;}
.rs-place {font-variant-numeric: tabular-nums; opacity: .75; min-width: 1.2rem;}
.rs-title {font-weight: 650; font-size: 1.05rem; overflow-wrap: anywhere;}
.rs-chip {font-size: .78rem; padding: 0 .5rem; border-radius: 1rem; white-space: nowrap;
  border: 1px solid color-mix(in srgb, currentColor 30%, transparent);}
.rs-mark {font-size: .78rem; font-weight: 600; white-space: nowrap;}
.rs-bar {height: 5px; border-radius: 3px; margin: .45rem 0 .4rem;
  background: color-mix(in srgb, currentColor 14%, transparent);}
.rs-bar span {display: block; height: 100%; border-radius: 3px; background: #3b8fcb;}
.rs-why {font-size: .92rem; line-height: 1.4; margin: 0; overflow-wrap: anywhere;}
.rs-row {display: flex; flex-wrap: wrap; gap: .3rem .4rem; margin: .1rem 0;}
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


def card(
    place: int, title: str, chips: Sequence[str], share: float, score: float, why: str, mark: str = ""
) -> str:
    """Return a card's markup; every text is escaped."""
    head = f'<span class="rs-place">{place}.</span> <span class="rs-title">{escape(title)}</span>'
    small = "".join(f' <span class="rs-chip">{escape(chip)}</span>' for chip in chips)
    noted = f' <span class="rs-mark">{escape(mark)}</span>' if mark else ""
    bar = (
        f'<div class="rs-bar" role="img" aria-label="score {score:.4g}" title="score {score:.4g}">'
        f'<span style="width: {100 * share:.0f}%"></span></div>'
    )
    return f'<div class="rs-head">{head}{small}{noted}</div>{bar}<p class="rs-why">{escape(why)}</p>'


def title(text: str, small: Sequence[str]) -> str:
    """Return an item's title with its chips as a heading's markup."""
    inside = "".join(f' <span class="rs-chip">{escape(chip)}</span>' for chip in small)
    return (
        f'<div class="rs-head"><h3 class="rs-title" style="padding: 0">{escape(text)}</h3>{inside}</div>'
    )


def chips(texts: Sequence[str]) -> str:
    """Return a row of chips as markup."""
    inside = "".join(f'<span class="rs-chip">{escape(text)}</span>' for text in texts)
    return f'<div class="rs-row">{inside}</div>'
