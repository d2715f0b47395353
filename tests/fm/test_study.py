"""The study of a problem against enumeration: weights, rows, counts, figures."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError, Interactions, load_dataset
from recsys.fm import FactorizationMachineRegressor
from recsys.fm.combinations import pairs_together, strongest
from recsys.fm.problem import guess_target, pairs_problem, table_of, table_problem
from recsys.fm.study import StudyRun, metric_value, study
from recsys.fm.study_settings import MODELS, StudySettings, make_estimator
from tests.data.test_spreadsheets import write_xlsx
from tests.reference import fm as reference

QUICK = {"path": False, "epochs": 8, "factors": 3, "min_rows": 1, "number": 10_000}


def table(rows=400, seed=0):
    """Return a table whose target is a product of two columns, and what else may be in one."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "id": [f"row {k}" for k in range(rows)],
        "colour": rng.choice(["red", "blue", "green"], rows),
        "shape": rng.choice(["round", "square"], rows),
        "tags": rng.choice(["a", "b", "a|b", ""], rows),
        "size": rng.normal(50, 10, rows).round(2),
        "unit": "cm",
    })  # fmt: skip
    signal = 2.0 * ((frame.colour == "red") & (frame["shape"] == "round"))
    frame["price"] = (100 + 5 * (signal + 0.3 * rng.normal(size=rows))).round(3)
    frame["sold"] = np.where(signal + 0.7 * rng.normal(size=rows) > 1, "yes", "no")
    return frame


def planted():
    return table_problem(table().drop(columns="sold"), "price")


# ---- combinations


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(1, 3))
def test_combinations_are_those_of_enumeration(seed, order, min_rows):
    rng = np.random.default_rng(seed)
    X = (rng.random((int(rng.integers(1, 15)), 7)) < 0.5) * rng.choice([1.0, -2.0, 0.5], 7)
    P = rng.normal(size=(7, 2)) * (rng.random((7, 2)) < 0.6)
    expected = [(f, w, r) for f, w, r in reference.combinations_in_rows(P, X, order) if r >= min_rows]
    expected = sorted(
        ((f, w, r) for f, w, r in expected if abs(w) > 1e-9), key=lambda one: (-abs(one[1]), one[0])
    )
    got = strongest(P, sp.csr_matrix(X), order, 10_000, min_rows, 1e-9)
    assert got.weighted == len(expected)
    ours = {one.features: (one.weight, one.rows) for one in got.best}
    assert set(ours) == {f for f, _, _ in expected}
    for features, weight, rows in expected:
        assert ours[features] == (pytest.approx(weight), rows)
    sizes = [abs(one.weight) for one in got.best]
    assert sizes == sorted(sizes, reverse=True)
    assert strongest(P, sp.csr_matrix(X), order, 2, min_rows, 1e-9).best == got.best[:2]


def test_pairs_are_those_of_enumeration():
    X = (np.random.default_rng(1).random((20, 6)) < 0.4) * 1.0
    i, j, rows = pairs_together(sp.csr_matrix(X))
    expected = {f: r for f, _, r in reference.combinations_in_rows(np.ones((6, 1)), X, 2)}
    assert dict(zip(zip(i.tolist(), j.tolist(), strict=True), rows.tolist(), strict=True)) == expected


def test_a_search_can_be_ended():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        strongest(np.ones((3, 1)), sp.csr_matrix(np.ones((2, 3))), 3, 1, tick=stop)
    for wrong in ({"order": 1}, {"n": 0}, {"min_rows": 0}, {"least": -1.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            strongest(np.ones((3, 1)), sp.csr_matrix(np.ones((2, 3))), **{"order": 2, "n": 1, **wrong})


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_the_area_is_the_share_of_pairs_in_order(seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0.0, 1.0], rng.integers(0, 2, 8)])
    scores = rng.integers(0, 4, 10).astype(float)
    assert metric_value("AUC", y, scores) == pytest.approx(reference.area(y, scores))


# ---- a study


def reconstructed(problem, chosen):
    """Return the fitted model again, by hand: the rows of the fit, and the same estimator."""
    rng = np.random.default_rng(chosen.seed)
    strata = (
        [np.arange(len(problem.y))]
        if problem.classes is None
        else [np.flatnonzero(problem.y == value) for value in (0.0, 1.0)]
    )
    fit, choose, measure = [], [], []
    for members in strata:
        mixed = rng.permutation(members)
        held = max(1, round(0.2 * len(mixed)))
        choose.extend(mixed[:held])
        measure.extend(mixed[held : 2 * held])
        fit.extend(mixed[2 * held :])
    fit, choose, measure = sorted(fit), sorted(choose), sorted(measure)
    y = problem.y[fit]
    centre, unit = (0.0, 1.0) if problem.classes else (y.mean(), y.std())
    model = make_estimator(chosen, problem.classes is not None, chosen.strength)
    model.set_params(solver=chosen.solver(), max_iter=chosen.epochs)
    model.fit(problem.X[fit], y if problem.classes else (y - centre) / unit)
    return model, fit, choose, measure, centre, unit


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("target", ["price", "sold"])
def test_weights_rows_and_counts_are_those_of_brute_force(model, target):
    frame = table(120).drop(columns="sold" if target == "price" else "price")
    problem = table_problem(frame, target, buckets=3)
    found = study(problem, StudySettings(model=model, **QUICK, strength=1e-3))
    fitted, fit, choose, measure, centre, unit = reconstructed(problem, found.settings)
    assert found.rows == (len(fit), len(choose), len(measure)) and sum(found.rows) == 120
    X = problem.X[fit].toarray()
    assert found.features == (X != 0).any(axis=0).sum()
    assert found.pairs == len(reference.combinations_in_rows(fitted.P_[0][0], X, 2))
    used = set()
    for order in found.settings.orders:
        P = fitted.P_[0 if model == "all-subsets" else order - 2][0]
        expected = {
            features: (unit * weight, rows)
            for features, weight, rows in reference.combinations_in_rows(P, X, order)
            if abs(weight) > 1e-6
        }
        ours = {one.features: (one.weight, one.rows) for one in found.of_order(order)}
        assert set(ours) == set(expected)
        for features, (weight, rows) in expected.items():
            assert ours[features] == (pytest.approx(weight), rows)
        assert [one.names for one in found.of_order(order)] == [
            tuple(problem.names[k] for k in one.features) for one in found.of_order(order)
        ]
        count = found.used_pairs if order == 2 else found.used_triples
        assert count == len(expected)
        used |= {k for features in expected for k in features}
    singles = {one.name: one for one in found.singles}
    assert used <= {k for k, name in enumerate(problem.names) if name in singles and singles[name].used}
    assert found.used_features == sum(one.used for one in found.singles)
    for k, name in enumerate(problem.names):
        own = fitted.P_[0][0][k].sum() if model == "all-subsets" else fitted.w_[k]
        assert singles[name].weight == pytest.approx(unit * own)
        assert singles[name].rows == (X[:, k] != 0).sum()
    rows = problem.X[measure]
    if problem.classes:
        assert found.value == pytest.approx(
            reference.area(problem.y[measure], fitted.decision_function(rows))
        )
        assert found.base == 0.5 and found.metric == "AUC"
    else:
        errors = problem.y[measure] - (fitted.predict(rows) * unit + centre)
        assert found.value == pytest.approx(np.sqrt(np.mean(errors**2)))
        assert found.base == pytest.approx(np.sqrt(np.mean((problem.y[measure] - centre) ** 2)))
    last = found.curve[-1]
    assert last.epoch == len(found.curve) == fitted.n_iter_
    assert last.objective == pytest.approx(fitted.history_[-1]["objective"])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_grids_hold_the_weights_of_pairs():
    problem = planted()
    found = study(problem, StudySettings(**QUICK, strength=1e-3))
    weights = {frozenset(one.names): one.weight for one in found.of_order(2)}
    for a, name in enumerate(found.grid.names):
        for b, other in enumerate(found.grid.names):
            assert found.grid.weights[a][b] == found.grid.weights[b][a]
            assert found.grid.weights[a][b] == weights.get(frozenset((name, other)))
    field = dict(zip(problem.names, problem.fields, strict=True))
    for a, name in enumerate(found.field_grid.names):
        for b, other in enumerate(found.field_grid.names):
            between = [
                one.weight
                for one in found.of_order(2)
                if sorted(field[k] for k in one.names) == sorted((name, other))
            ]
            expected = max(between, key=abs) if between else None
            assert found.field_grid.weights[a][b] == expected


@pytest.mark.thorough
def test_a_planted_product_is_found_and_said_to_help():
    found = study(planted(), StudySettings(model="sparse-fm"))
    first = found.of_order(2)[0]
    assert set(first.names) == {"colour=red", "shape=round"} and first.weight > 0
    assert found.value < 0.8 * found.alone < found.base and found.gain_low > 0
    assert any("The interactions improve it by" in one for one in found.sentences())
    worst = replace(found, gain=-0.5, gain_low=-1.0, gain_high=-0.1)
    assert any("make it worse by 0.5" in one for one in worst.sentences())
    unclear = replace(found, gain=0.0, gain_low=-1.0, gain_high=1.0)
    assert any("do not differ clearly" in one for one in unclear.sentences())


def test_noise_is_not_said_to_help():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.choice(list("abc"), (300, 4)), columns=list("pqrs"))
    found = study(
        table_problem(frame.assign(y=rng.choice([0, 1], 300))), StudySettings(model="sparse-fm")
    )
    assert found.gain_low <= 0 <= found.gain_high or found.gain < 0


def test_the_path_is_of_fits_of_its_strengths_and_the_best_is_taken():
    problem = planted()
    found = study(problem, StudySettings(model="sparse-fm", epochs=20))
    assert [step.strength for step in found.path] == sorted(step.strength for step in found.path)
    best = min(step.value for step in found.path)
    assert found.settings.strength == max(s.strength for s in found.path if s.value == best)
    assert found.chosen and found.curve[-1].value == best
    pairs = [step.pairs for step in found.path]
    assert pairs[-1] < pairs[0]
    for step in (found.path[2], found.path[-1]):
        alone = study(
            problem, StudySettings(model="sparse-fm", epochs=20, path=False, strength=step.strength)
        )
        assert (alone.used_features, alone.used_pairs) == (step.features, step.pairs)
        assert alone.curve[-1].value == step.value and not alone.chosen and alone.path == ()
    given = study(
        problem, StudySettings(model="sparse-fm", epochs=5, strength=7e-4, strengths=(1e-4, 1e-2))
    )
    assert [step.strength for step in given.path] == [1e-4, 7e-4, 1e-2] and not given.chosen
    assert given.settings.strength == 7e-4


@pytest.mark.parametrize("model, most", [("fm", 6), ("sparse-fm", 9)])
def test_a_path_takes_no_more_epochs_than_its_strengths_have(model, most, monkeypatch):
    measured, totals = [], set()
    real = StudyRun.metric_of
    monkeypatch.setattr(StudyRun, "metric_of", lambda *given: measured.append(1) or real(*given))
    settings = StudySettings(model=model, epochs=7)
    study(planted(), settings, lambda text, done, total: totals.add(total))
    assert totals == {7 * most}
    assert most < len(measured) <= 7 * most + most  # after each epoch, and at the end of each fit


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_that_measure_are_used_once_at_the_end():
    """Other targets there change what is measured, and nothing else."""
    problem = planted()
    chosen = StudySettings(model="sparse-fm", epochs=10)
    found = study(problem, chosen)
    *_, measure, _, _ = reconstructed(problem, found.settings)
    y = problem.y.copy()
    y[measure] = y[measure][::-1] + 1.0
    other = study(replace(problem, y=y), chosen)
    assert other.path == found.path and other.curve == found.curve
    assert other.interactions == found.interactions and other.value != found.value


def test_intervals_are_of_refits_and_hold_a_planted_weight():
    found = study(planted(), StudySettings(path=False, strength=1e-4, refits=12))
    first = found.of_order(2)[0]
    assert all(one.low <= one.high for one in found.interactions) and first.low > 0
    assert any("90% of 12 fits on rows drawn again" in one for one in found.sentences())
    without = study(planted(), StudySettings(path=False, strength=1e-4))
    assert [one.weight for one in without.interactions] == [one.weight for one in found.interactions]
    assert without.interactions[0].low is None
    assert any("no intervals of their own" in one for one in without.sentences())


def test_notes_say_what_a_reader_must_know():
    deep = study(planted(), StudySettings(model="hofm", degree=4, path=False, epochs=2))
    assert "products of up to 4 are fitted; those of two and three are listed" in deep.notes
    assert any("the fit did not converge in 2 epochs" in note for note in deep.notes)
    whole = study(planted(), StudySettings(model="all-subsets", path=False, epochs=2))
    assert any("weights offset each other" in note for note in whole.notes)


def test_the_table_and_the_dictionary_hold_the_interactions():
    found = study(planted(), StudySettings(model="hofm", path=False, epochs=5, number=4))
    columns, rows = found.table()
    assert list(columns) == ["order", "weight", "rows", "feature_1", "feature_2", "feature_3"]
    assert [row[0] for row in rows] == [2] * 4 + [3] * 4
    assert rows[0][3:] == (*found.interactions[0].names, "")
    assert found.as_dict()["interactions"][0]["weight"] == rows[0][1]
    between, _ = replace(found, settings=replace(found.settings, refits=2)).table()
    assert list(between)[1:4] == ["weight", "low", "high"]


def test_progress_is_told_at_every_epoch_and_can_end_the_study():
    told = []
    problem = planted()
    study(problem, StudySettings(path=False, epochs=6, refits=2), lambda *what: told.append(what))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert {total for _, _, total in told} == {6 + 2 * 10} and 6 < told[-1][1] <= 26
    assert sum("epoch " in text for text, _, _ in told) >= 6
    curve = study(problem, StudySettings(path=False, epochs=6)).curve
    assert f"regularization strength 0.0001, 1 of 1, epoch 6, RMSE {curve[5].value:.4g}" in [
        text for text, _, _ in told
    ]

    def cancel(text, done, total):
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study(problem, StudySettings(path=False, epochs=50), cancel)


def test_the_estimator_predicts_inside_its_callback():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    seen = []
    model = FactorizationMachineRegressor(max_iter=4, tol=0.0, beta=0.0, alpha=0.0)
    model.set_params(
        callback=lambda epoch, value: seen.append((value, np.mean((model.predict(X) - y) ** 2) / 2))
    )
    model.fit(X, y)
    assert len(seen) == 4
    for objective, error in seen:
        assert error == pytest.approx(objective)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"model": "fmm"}, "model must be one of"), ({"degree": 3}, "take model 'hofm'"),
    ({"model": "hofm", "degree": 2}, "degree must be"), ({"model": "hofm", "degree": 6}, "degree must be"),
    ({"model": "all-subsets", "degree": 2}, "leave the degree out"), ({"penalty": "l3"}, "penalty must be"),
    ({"model": "sparse-fm", "penalty": "l2"}, "leaves no product out"), ({"strength": 0.0}, "strength must be"),
    ({"strengths": (1.0, -1.0)}, "strengths must be"), ({"strengths": ()}, "strengths holds none"),
    ({"strengths": tuple(range(1, 102))}, "strengths holds 101, and each is a fit: give 100 at most"),
    ({"factors": 0}, "factors"), ({"epochs": 0}, "epochs"), ({"refits": -1}, "refits"), ({"seed": -1}, "seed"),
    ({"number": 0}, "number"), ({"min_rows": 0}, "min_rows"),
    ({"model": "hofm", "penalty": "omega"}, "take degree 2"),
])  # fmt: skip
def test_settings_that_contradict_each_other(wrong, message):
    with pytest.raises(InputError, match=message):
        StudySettings(**wrong).resolved()


@pytest.mark.parametrize(
    "penalty",
    [
        "l2",
        *(pytest.param(one, marks=pytest.mark.thorough) for one in ("l1", "ti", "l21", "cs", "omega")),
    ],
)
def test_every_penalty_has_a_solver_that_serves_it(penalty):
    found = study(planted(), StudySettings(penalty=penalty, path=False, epochs=3))
    assert found.settings.penalty == penalty and len(found.curve) <= 3


# ---- problems


def test_a_table_becomes_features_of_its_columns():
    frame = table(200)
    problem = table_problem(frame, "sold", buckets=4)
    assert problem.wanted == "sold=yes" and problem.classes == ("no", "yes")
    assert (problem.y == (frame.sold == "yes")).all()
    X = problem.X.toarray()
    named = dict(zip(problem.names, X.T, strict=True))
    assert (named["colour=red"] == (frame.colour == "red")).all()
    assert (named["tags=a"] == frame.tags.str.contains("a")).all()
    ranges = [k for k, field in enumerate(problem.fields) if field == "size"]
    assert len(ranges) == 4 and (X[:, ranges].sum(axis=1) == 1).all()
    for k in ranges:  # a range says what is in it, from the least to the greatest
        low, high = problem.names[k].removeprefix("size=").split("–")
        inside = (frame["size"] >= float(low)) & (frame["size"] <= float(high))
        assert (X[:, k] == inside).all() and 40 <= inside.sum() <= 60
    assert "table: column 'id' left out: 200 values in 200 rows" in problem.notes
    assert "table: column 'unit' left out: it has one value" in problem.notes
    scaled = table_problem(frame, "price", numbers="scaled")
    column = scaled.X[:, scaled.names.index("size")].toarray().ravel()
    assert column.mean() == pytest.approx(0, abs=1e-9) and column.std() == pytest.approx(1)
    assert scaled.classes is None and scaled.wanted == "price"


def test_targets_are_taken_for_what_they_are():
    frame = pd.DataFrame({"x": list("ab") * 20, "y": [0, 1] * 20})
    assert table_problem(frame).classes == ("0", "1")
    assert table_problem(frame, kind="numbers").classes is None
    truth = frame.assign(y=[True, False] * 20, z=[False, True] * 20)
    problem = table_problem(truth, "y")
    assert problem.wanted == "y=True" and problem.names == ("x=a", "x=b", "z=False", "z=True")
    many = frame.assign(y=[1, 2, 3, 4] * 10)
    assert table_problem(many).classes is None
    assert table_problem(many, positive="3").wanted == "y=3"
    assert table_problem(many, positive="3").classes == ("other", "3")
    gaps = frame.assign(y=[0, 1, None, 1] * 10)
    problem = table_problem(gaps, "y", kind="classes", positive="1.0")
    assert len(problem.y) == 30 and problem.notes == ("10 rows without 'y' left out",)
    assert guess_target(["Class", "x"]) == "Class" and guess_target(["x", "z"]) == "z"
    drawn = table_problem(pd.concat([frame] * 5), rows=50)
    assert len(drawn.y) == 50 and drawn.notes == ("50 of 200 rows drawn at random",)


def test_numbers_that_are_codes_are_no_ranges():
    frame = pd.DataFrame({"code": np.arange(60) % 12, "half": (np.arange(60) % 7) / 2, "y": [0, 1] * 30})
    cut = table_problem(frame, "y")
    assert sum(field == "code" for field in cut.fields) == 5
    for numbers in ("ranges", "scaled"):
        whole = table_problem(frame, "y", categories=["code", "half"], numbers=numbers)
        assert sorted(name for name in whole.names if name.startswith("code=")) == sorted(
            f"code={k}" for k in range(12)
        )
        assert "half=0.5" in whole.names and set(whole.X.data) == {1.0}
    large = pd.DataFrame({"code": [12345678.0, 12345679.0, None] * 20, "y": [0, 1] * 30})
    assert table_problem(large, "y").names == ("code=12345678", "code=12345679")
    assert len([name for name in table_problem(frame, "y", buckets=20).names if "code" in name]) == 12
    with pytest.raises(InputError, match="no column 'kode'.*did you mean 'code'"):
        table_problem(frame, "y", categories=["kode"])
    data = Interactions.from_ids([f"u{k % 30}" for k in range(90)], [f"i{k % 7}" for k in range(90)])
    users = pd.DataFrame({"job": np.arange(30) % 12}, index=data.user_ids)
    known = data.with_features(users=users)
    assert len(pairs_problem(known, categories=["job"]).names) == 12
    assert len(pairs_problem(known, buckets=20).names) == 12 and len(pairs_problem(known).names) == 5
    with pytest.raises(InputError, match="no column 'jobs'"):
        pairs_problem(known, categories=["jobs"])


def test_marks_of_what_is_missing_and_decimal_commas_leave_numbers():
    size = ["NA" if k % 10 == 0 else f"{k / 4:g}".replace(".", ",") for k in range(60)]
    frame = pd.DataFrame({"size": size, "word": ["NA", "x"] * 30, "many": ["1,000", "2,500"] * 30})
    problem = table_problem(frame.assign(y=["?" if k == 7 else str(k) for k in range(60)]), "y")
    assert len(problem.y) == 59 and problem.classes is None
    X = problem.X.toarray()
    sized = X[:, [k for k, field in enumerate(problem.fields) if field == "size"]]
    kept = [k for k in range(60) if k != 7]
    assert (sized.sum(axis=1) == [k % 10 != 0 for k in kept]).all() and sized.shape[1] == 5
    # a mark beside words is a word, and a comma that may part thousands stays
    assert {"word=NA", "word=x", "many=1,000", "many=2,500"} <= set(problem.names)
    assert set(problem.notes) == {
        "table: 6 cells of 'size', as 'NA', taken as missing",
        "table: the commas of 'size', as in '0,25', taken as decimal",
        "table: 1 cell of 'y', as '?', taken as missing",
        "1 row without 'y' left out",
    }


@pytest.mark.parametrize(
    ("rows", "values", "kept"),
    [(20, 20, True), (40, 20, True), (40, 21, False), (42, 21, True), (100, 50, True), (100, 51, False)],
)
def test_text_of_many_values_is_left_out(rows, values, kept):
    frame = pd.DataFrame({"x": [f"v{k % values}" for k in range(rows)], "y": [0, 1] * (rows // 2)})
    if kept:
        assert len(table_problem(frame, "y").names) == values
        return
    told = "each has one value, or is text with more than 20 values and more than one for two rows"
    with pytest.raises(InputError, match=f"table: no column beside 'y' is a feature: {told}$"):
        table_problem(frame, "y")


def test_ranges_that_read_alike_are_told_apart():
    frame = pd.DataFrame({"x": 1e6 + np.arange(40) / 1000, "y": [0, 1] * 20})
    names = table_problem(frame, buckets=4).names
    assert len(set(names)) == len(names) == 4


@pytest.mark.parametrize(("change", "arguments", "message"), [
    ({}, {"target": "prise"}, "did you mean 'price'"), ({"sold": "yes"}, {"target": "sold"}, "in every row"),
    ({}, {"target": "colour"}, "has 3 classes .*positive"), ({}, {"target": "colour", "positive": "pink"}, "no class 'pink'"),
    ({}, {"target": "sold", "kind": "numbers"}, "numbers are needed"), ({"sold": ""}, {"target": "sold"}, "no row has a value"),
    ({}, {"target": "sold", "kind": "x"}, "kind must be"), ({}, {"target": "sold", "numbers": "x"}, "numbers must be"),
    ({}, {"target": "sold", "buckets": 1}, "buckets"), ({}, {"target": "sold", "rows": 1}, "rows"),
])  # fmt: skip
def test_tables_that_cannot_be_used(change, arguments, message):
    with pytest.raises(InputError, match=message) as error:
        table_problem(table(60).assign(**change), **arguments)
    assert "\n" not in str(error.value)


def test_tables_with_too_little():
    frame = table(60)
    with pytest.raises(InputError, match="no column beside 'sold' is a feature"):
        table_problem(frame[["id", "unit", "sold"]], "sold")
    with pytest.raises(InputError, match="no rows"):
        table_problem(frame[:0], "sold")
    with pytest.raises(InputError, match="2 columns are called 'sold'"):
        table_problem(pd.concat([frame, frame[["sold"]]], axis=1), "sold")
    few = frame.assign(sold=["yes"] * 57 + ["no"] * 3)
    with pytest.raises(InputError, match="class 'no' of 'sold' has 3 rows; at least 5"):
        study(table_problem(few, "sold"), StudySettings())
    with pytest.raises(InputError, match="12 rows; at least 20"):
        study(table_problem(frame[:12], "price"), StudySettings())


def test_files_become_tables(tmp_path):
    path = tmp_path / "t.csv"
    table(50).to_csv(path, index=False)
    problem = table_problem(table_of(path), "price")
    assert len(problem.y) == 50 and problem.classes is None
    table(50).to_parquet(tmp_path / "t.parquet")
    again = table_problem(table_of(tmp_path / "t.parquet"), "price")
    assert again.names == problem.names and (again.X != problem.X).nnz == 0
    holes = table(50)
    holes.loc[[2, 9], "colour"] = None
    holes.loc[[4], "size"] = np.nan
    problems = []
    holes.to_csv(tmp_path / "h.csv", index=False)
    holes.to_parquet(tmp_path / "h.parquet")
    for name in ("csv", "parquet"):
        problems.append(table_problem(table_of(tmp_path / f"h.{name}"), "price"))
    for other in problems:
        assert other.names == problems[0].names and (other.X != problems[0].X).nnz == 0
    colours = [k for k, field in enumerate(problems[0].fields) if field == "colour"]
    assert problems[0].X[:, colours].sum() == 48


def test_a_sheet_is_a_table(tmp_path):
    pytest.importorskip("python_calamine")
    frame = table(40)[["colour", "shape", "price"]]
    write_xlsx(tmp_path / "t.xlsx", [list(frame.columns), *frame.values.tolist()])
    problem, expected = table_problem(table_of(tmp_path / "t.xlsx")), table_problem(frame)
    assert problem.names == expected.names and (problem.X != expected.X).nnz == 0
    assert problem.y == pytest.approx(expected.y)


def test_pairs_have_the_features_of_both_ends():
    data = load_dataset("sample")
    problem = pairs_problem(data, ratio=2)
    assert problem.classes == ("no", "yes") and problem.wanted == "liked=yes"
    liked = data.matrix
    lengths = np.diff(liked.indptr)
    drawn = np.minimum(2 * lengths, liked.shape[1] - lengths).sum()  # each pair once, as far as they go
    assert problem.y.sum() == liked.nnz and len(problem.y) == liked.nnz + drawn
    with_ids = pairs_problem(data, ids=True, ratio=2)
    X, names = with_ids.X.tocsc(), with_ids.names
    users = [k for k, field in enumerate(with_ids.fields) if field == "user"]
    items = [k for k, field in enumerate(with_ids.fields) if field == "item"]
    assert (
        names[users[0]] == f"user={data.user_ids[0]}" and names[items[-1]] == f"item={data.item_ids[-1]}"
    )
    who = X[:, users].tocsr().indices
    what = X[:, items].tocsr().indices
    assert (np.asarray(liked[who, what]).ravel() == with_ids.y).all()
    assert (who == with_ids.groups).all()
    # a drawn pair is of the user of a liked one
    own = np.bincount(who[with_ids.y == 1])
    assert (np.bincount(who[with_ids.y == 0]) == np.minimum(2 * own, liked.shape[1] - own)).all()
    row = 12
    genres = {f"genres={one}" for one in data.item_features["genres"].iloc[what[row]].split("|")}
    own = {names[k] for k in with_ids.X[row].indices}
    assert genres == {name for name in own if name.startswith("genres=")}
    assert f"region={data.user_features['region'].iloc[who[row]]}" in own
    assert set(problem.fields) == {"age", "region", "year", "genres"}
    few = pairs_problem(data, rows=1000)
    assert len(few.y) == 1000 and "500 of 10,746 pairs drawn at random" in few.notes


def test_ratings_are_a_target_where_there_are_some():
    data = Interactions.from_ids(["a", "a", "b", "b"], ["x", "y", "x", "z"], rating=[1.0, 5.0, 3.0, 4.0])
    problem = pairs_problem(data, "rating", ids=True)
    assert problem.y.tolist() == data.rating.tolist() and problem.classes is None
    with pytest.raises(InputError, match="no features of users or items"):
        pairs_problem(data, "rating")
    with pytest.raises(InputError, match="target must be one of"):
        pairs_problem(data, "stars")
    with pytest.raises(InputError, match="has no ratings"):
        pairs_problem(load_dataset("sample"), "rating")
    full = Interactions.from_ids(["a", "a", "b", "b"], ["x", "y", "x", "y"])
    with pytest.raises(InputError, match="all users like all items"):
        pairs_problem(full, ids=True)


def test_columns_of_one_name_are_told_apart():
    data = Interactions.from_ids(["a", "a", "b", "c"], ["x", "y", "x", "z"])
    data = data.with_features(
        users=pd.DataFrame({"land": ["ch", "de", "ch"]}, index=["a", "b", "c"]),
        items=pd.DataFrame({"land": ["us", "fr", "us"], "item": ["1", "2", "1"]}, index=["x", "y", "z"]),
    )
    problem = pairs_problem(data)
    assert set(problem.fields) == {"user's land", "item's land", "item's item"}


def test_no_pair_is_both_learned_from_and_measured_on():
    """Pairs that were drawn twice told a machine with ids which ones are not liked."""
    from recsys import Interactions
    from recsys.fm.problem import pairs_problem

    rng = np.random.default_rng(0)
    liked = np.argwhere(rng.random((40, 15)) < 0.6)
    data = Interactions.from_ids([f"u{u}" for u, _ in liked], [f"i{i}" for _, i in liked])
    found = pairs_problem(data, ids=True, ratio=5)
    rows = {tuple(row.indices.tolist()) for row in found.X}
    assert len(rows) == found.X.shape[0] == len(found.y)
    lengths = np.bincount([u for u, _ in liked])
    assert (found.y == 0).sum() == np.minimum(5 * lengths, 15 - lengths).sum() and (
        found.y == 1
    ).sum() == len(liked)
