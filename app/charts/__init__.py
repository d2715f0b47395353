"""The charts of each page, in colours that colour-blind readers tell apart."""

import altair as alt
import streamlit as st


@alt.theme.register("readable", enable=True)
def readable() -> alt.theme.ThemeConfig:
    """Return a theme with labels in the grey of the text: Streamlit's own has a contrast of 3.7."""
    grey = st.get_option(f"theme.{st.context.theme.type or 'light'}.grayTextColor")
    labels: alt.theme.AxisConfigKwds = {"labelColor": grey, "titleColor": grey}
    return {"config": {"axis": labels, "legend": {"labelColor": grey, "titleColor": grey}}}
