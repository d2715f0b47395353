"""The page Interactions: products with their weights, of the dataset and of an uploaded table."""

import pytest

pytest.importorskip("streamlit")

from tests.app.page_runs import open_page, settle


def test_the_sample_and_an_uploaded_table_have_products():
    at = settle(open_page("interactions", {}))
    assert not at.exception and [metric.label[:3] for metric in at.metric] == ["AUC", "AUC"]
    lines = ["color,size,sold"] + [
        f"{c},{s},{int(c == s[0])}" for c in "rgb" for s in ("rx", "gx", "bx")
    ] * 30
    at.file_uploader[0].set_value(("table.csv", "\n".join(lines).encode(), "text/csv"))
    at = settle(at.run())
    assert not at.exception and float(at.metric[0].value) > 0.95 > float(at.metric[1].value)
