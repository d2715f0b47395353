"""What the pages of the Lab answer, and their examples: each figure computed anew on the sample."""

import re

import numpy as np
import pytest

pytest.importorskip("streamlit")

from app.navigation import LAB
from app.parts.examples import EXAMPLES
from recsys import load_dataset, make_ranker
from recsys.embeddings import item_vectors
from recsys.explain import discover_rules
from tests.app.page_runs import captions, open_page, texts

DATA = load_dataset("sample")


def numbers(text):
    return [float(one) for one in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)]


def rows(name):
    table = EXAMPLES[name].table
    return [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(LAB))
def test_a_page_begins_with_its_question_and_shows_what_a_result_looks_like(name):
    at = open_page(name)
    assert at.subheader[0].value == EXAMPLES[name].question and EXAMPLES[name].question.endswith("?")
    assert f"An example, of the sample: {EXAMPLES[name].finding}" in texts(at)
    shown = [c for c in captions(at) if c.startswith("What a result looks like")]
    assert len(shown) == len(at.table) == (name != "map"), "a map is drawn at once"
    if name != "map":
        assert at.table[0].value.to_dict("list") == EXAMPLES[name].table


def test_the_example_of_the_map_is_the_nearest_of_all_likes():
    model = make_ranker("cf-komd", kernel="mc", degree=2).fit(DATA.matrix, show_progress=False)
    vectors = item_vectors(model, DATA.matrix).vectors.astype(float)
    first = int(model.recommend(0, DATA.matrix[0], N=1).ids[0])

    def cosine(k):
        return vectors[first] @ vectors[k] / np.linalg.norm(vectors[first]) / np.linalg.norm(vectors[k])

    near = max(DATA.matrix[0].indices, key=cosine)
    assert EXAMPLES["map"].finding == (
        f"{DATA.titles[first]}, recommended first to u0001, is nearest to {DATA.titles[near]}, which "
        "u0001 likes."
    )


@pytest.mark.slow
def test_the_example_of_rules_counts_right():
    found = discover_rules(DATA, most=12, level=0.05, dependence="any")
    names, lines = found.table()
    made = [dict(zip(names, line, strict=True)) for line in lines]
    said = {"user": "user_id", "rule": "rule", "set aside": "tested", "follow it": "hits",
            "others": "others", "others that do": "others_hits"}  # fmt: skip
    assert len(made) >= len(rows("rules")) > 1
    for row, one in zip(rows("rules"), made, strict=False):
        assert row == {shown: str(one[name]) for shown, name in said.items()}
    one = rows("rules")[1]
    assert EXAMPLES["rules"].finding == (
        f"{one['user']} likes {one['rule']}: of {one['set aside']} likes set aside, {one['follow it']} "
        f"follow it; of {one['others']} items not liked, {one['others that do']}."
    )


@pytest.mark.slow
def test_the_example_of_links_is_of_the_usual_predictors():
    from recsys.datasets.linked_tables import graph_of
    from recsys.links import compare_links, usual_link_models

    graph = graph_of(DATA, False)
    found = compare_links(graph.weighted(None), list(usual_link_models(graph)), cold=False, test_size=0.3, ratio=1.0, seed=0)  # fmt: skip
    best = sorted(found.results, key=lambda one: -one.metrics.auc)
    for row, one in zip(rows("links"), best, strict=True):
        assert row == {"model": one.model, "AUC": f"{one.metrics.auc:.3f}", "±": f"{one.auc_error:.3f}"}
    assert best[0].model.startswith("fm:")
    assert numbers(EXAMPLES["links"].finding) == [round(100 * best[0].metrics.auc, 1)]


@pytest.mark.slow
def test_the_example_of_interactions_is_what_the_page_fits():
    from recsys.fm.problem import pairs_problem
    from recsys.fm.study import study
    from recsys.fm.study_settings import StudySettings

    problem = pairs_problem(DATA, seed=0, ids=False, ratio=1, categories=[], buckets=5, rows=50_000)
    found = study(problem, StudySettings(model="sparse-fm", degree=2, penalty="ti"))
    assert numbers(EXAMPLES["interactions"].finding) == [round(found.alone, 3), round(found.value, 3)]
    assert len(found.interactions) >= len(rows("interactions")) > 1
    for row, one in zip(rows("interactions"), found.interactions, strict=False):
        assert row["interaction"] == " × ".join(one.names) and row["rows"] == str(one.rows)
        assert row["weight"] == f"{one.weight:.2f}"


@pytest.mark.slow
def test_the_example_of_kernels_is_what_the_page_computes():
    from app.parts.kernel_curves import curves

    frame = curves(DATA, DATA.matrix, ["mc", "md"], 6, lambda *told: None)
    auc = {(row["kernel"], row["degree"]): row["AUC"] for row in frame.to_dict("records")}
    for row in rows("kernels"):
        for name in ("md", "mc"):
            assert row[f"AUC with {name}"] == f"{auc[name, int(row['degree'])]:.3f}"
    best = {name: max(range(1, 7), key=lambda d, name=name: auc[name, d]) for name in ("mc", "md")}
    assert best == {"mc": 2, "md": 4}
    assert numbers(EXAMPLES["kernels"].finding) == [
        round(auc["md", 1], 3), 1.0, round(auc["md", 4], 3), 4.0, 2.0, round(auc["mc", 2], 3),
    ]  # fmt: skip
