"""What is selected in a problem: the path's points, the models beside, how sure the choice is."""

import json

import numpy as np
import pytest

from recsys import InputError
from recsys.fm import StudySettings, select, table_problem
from recsys.utils.progress import listening
from tests.fm.test_study import table

SETTINGS = StudySettings(model="sparse-fm", epochs=8)


def problem(rows=200, target="price"):
    other = {"price": "sold", "sold": "price"}[target]
    return table_problem(table(rows).drop(columns=other), target)


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["price", "sold"])
def test_figures_are_of_the_rows_they_say(target):
    given = problem(target=target)
    found = select(given, SETTINGS, pairs=2, starts=2)
    assert found.metric == {"price": "RMSE", "sold": "AUC"}[target]
    assert sum(found.rows) == 200 and found.points[0].interactions == 0
    assert found.points[0].value == pytest.approx(found.linear.choose, rel=1e-3)
    assert found.points[0].refitted == pytest.approx(found.linear.choose, rel=1e-6)
    named = {one.model: one for one in found.measured}
    for place, told in found.marks.items():
        first = told.split(",")[0]
        assert named[first].choose == found.points[place].value
        assert named[f"{first}, refitted"].choose == found.points[place].refitted
    assert len(named) == len(found.measured) == 2 + 2 * len(found.marks)
    assert json.loads(json.dumps(found.as_dict()))["best"] == found.best
    for point in found.points:
        assert len(point.chosen) == point.interactions  # so few are all listed
        for one in point.chosen:
            rows = (given.X[:, list(one.features)].toarray() != 0).all(axis=1)
            assert 0 < one.rows <= rows.sum() and 0 <= one.halves <= 1 and one.starts in (0, 0.5, 1)
    columns, lines = found.table(found.taken)
    assert [line[0] for line in lines] == [one.text for one in found.points[found.taken].chosen]
    assert all(len(line) == len(columns) for line in lines)
    again = select(given, SETTINGS, pairs=2, starts=2)
    assert again == found


@pytest.mark.thorough
def test_the_planted_product_is_selected_and_sure():
    found = select(problem(400), StudySettings(model="sparse-fm", epochs=30), pairs=3, starts=3)
    ebic = found.points[found.best["ebic"]]
    # with red, round speaks for it as square speaks against: halves may take either
    either = [
        one for one in ebic.chosen if set(one.names) <= {"colour=red", "shape=round", "shape=square"}
    ]
    assert either and abs(ebic.chosen[0].weight) == max(abs(one.weight) for one in either)
    assert set(found.points[1].chosen[0].names) < {
        "colour=red", "shape=round", "shape=square"
    }  # fmt: skip
    shares = {one.names: one.halves for point in found.points for one in point.chosen}
    assert sum(share for names, share in shares.items() if set(names) < {"colour=red", "shape=round", "shape=square"}) >= 1.0  # fmt: skip
    assert ebic.refitted < found.linear.choose
    assert any("stable" in one.lower() for one in found.sentences())


@pytest.mark.parametrize("strengths", [2, 6, 15])
def test_a_path_that_ends_at_its_best_point_says_so(strengths):
    found = select(problem(), SETTINGS, strengths=strengths)
    told = any("a weaker penalty was not tried" in note for note in found.notes)
    assert told == (len(found.points) - 1 in found.best.values())
    assert told or strengths > 2


def test_progress_goes_on_to_the_end():
    heard = []
    with listening(lambda step, done, total: heard.append((step, done, total))):
        select(problem(100), SETTINGS, pairs=1, starts=1, strengths=3)
    done = [at for _, at, _ in heard]
    assert done == sorted(done) and 0.9 < done[-1] / heard[-1][2] <= 1.0
    assert {"path", "leaving none out", "stability", "several starts"} <= {s.split(",")[0] for s, _, _ in heard}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "more", "message"),
    [
        (StudySettings(model="fm"), {}, "not for fm with l2"),
        (StudySettings(model="all-subsets", penalty="ti"), {}, "not for all-subsets"),
        (SETTINGS, {"pairs": -1}, "pairs"),
        (SETTINGS, {"starts": -1}, "starts"),
        (SETTINGS, {"strengths": 1}, "strengths"),
    ],
)
def test_what_cannot_be_selected_is_told(settings, more, message):
    with pytest.raises(InputError, match=message):
        select(problem(100), settings, **more)


def test_triples_are_selected_too():
    rng = np.random.default_rng(0)
    frame = table(300).drop(columns=["sold", "price"])
    frame["y"] = 3.0 * ((frame.colour == "red") & (frame["shape"] == "round") & (frame["size"] > 50))
    frame["y"] += 0.1 * rng.normal(size=300)
    found = select(
        table_problem(frame, "y"), StudySettings(model="sparse-fm", degree=3, epochs=15), strengths=5
    )
    assert {len(one.features) for point in found.points for one in point.chosen} == {2, 3}
