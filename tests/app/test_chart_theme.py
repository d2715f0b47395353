"""Labels of charts can be read on the page's background, in both themes."""

from types import SimpleNamespace

import altair as alt
import pandas as pd
import pytest
import streamlit as st

from app import charts


def luminance(colour):
    """Return the relative luminance of '#rrggbb', WCAG 2.2."""
    shares = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("kind", ["light", "dark", None])
def test_labels_have_the_contrast_of_text_on_the_background(monkeypatch, kind):
    context = SimpleNamespace(theme=SimpleNamespace(type=kind))
    monkeypatch.setattr(charts, "st", SimpleNamespace(context=context, get_option=st.get_option))
    config = alt.Chart(pd.DataFrame({"x": [1]})).mark_point().encode(x="x").to_dict()["config"]
    background = luminance(st.get_option(f"theme.{kind or 'light'}.backgroundColor"))
    for part in ("axis", "legend"):
        for colour in (config[part]["labelColor"], config[part]["titleColor"]):
            low, high = sorted([luminance(colour), background])
            assert (high + 0.05) / (low + 0.05) >= 4.5
