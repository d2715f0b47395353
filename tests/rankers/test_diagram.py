"""Rankers as notebooks show them."""

import pytest

from recsys import EASE, Blend, list_rankers, load_dataset, make_ranker


@pytest.mark.parametrize("name", list_rankers())
def test_every_ranker_is_shown(name):
    assert f"<b>{name}</b> <small>not fitted</small>" in make_ranker(name)._repr_html_()


def test_a_blend_shows_its_parts_and_weights():
    data = load_dataset("sample")
    blend = Blend([EASE(regularization=7.0), make_ranker("popularity")], weights=[3, 1])
    html = blend.fit(data.matrix, show_progress=False)._repr_html_()
    assert "400 users × 300 items" in html and "regularization=7.0" in html
    assert "× 3.00" in html and "× 1.00" in html and html.count("<div") == html.count("</div>") == 3


def test_parameters_are_text():
    ranker = EASE()
    ranker.regularization = "<script>"
    assert "<script" not in ranker._repr_html_()
