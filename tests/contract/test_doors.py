"""An explanation is the same in Python, on the command line, from the service and in the app, and right."""

import json
import re
from dataclasses import replace
from html import escape

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import binom

pytest.importorskip("fastapi")
pytest.importorskip("streamlit")
from fastapi.testclient import TestClient

import recsys
from recsys import cli
from recsys.data.side_information import described
from recsys.explain import products
from recsys.service import create_app
from recsys.service.schemas import ExplainResponse, RecommendResponse, RulesResponse
from tests.contract.drawn import drawn
from tests.reference import counts
from tests.reference import formulas as all_formulas

pytestmark = pytest.mark.thorough

MODELS = (
    "popularity", "ease", "msdw", "cf-komd:kernel=mc,degree=2", "cf-komd:kernel=md,degree=2", "ecf-omd",
    "cf-omd", "als:factors=4,iterations=3", "fm:iterations=2,factors=3",
    "hofm:iterations=2,factors=2,degree=3", "sparse-fm:iterations=2,factors=3", "bayesian-fm:iterations=4,draws=2,factors=3",
    "pairnet:iterations=2,factors=2,degree=3", "pair-svm", "blend:models=ease+msdw",
)  # fmt: skip
OF_USERS = ("cf-komd", "ecf-omd", "cf-omd")  # scores are sums over sets of users
PAIRS, PAGES = 20, 6
MORE = {"formulas": 3, "changes": 2, "model_rule": 5}
LISTED = 4
DATA = drawn()


@pytest.fixture(scope="module", params=MODELS, ids=str)
def model(request, tmp_path_factory):
    """Return a file, the recommender in it, and pairs of a user and an item."""
    file = tmp_path_factory.mktemp("interfaces") / "m.recsys"
    recsys.Recommender(request.param).fit(DATA).save(file)
    rng = np.random.default_rng(5)
    users, items = rng.integers(DATA.n_users, size=PAIRS), rng.integers(DATA.n_items, size=PAIRS)
    return file, recsys.load(file), list(zip(users.tolist(), items.tolist(), strict=True))


def command(capfd, *arguments):
    assert cli.call([str(one) for one in arguments]) == 0
    return json.loads(capfd.readouterr().out)


def test_an_explanation_is_the_same_in_three_interfaces(model, capfd):
    file, found, pairs = model
    capfd.readouterr()
    with TestClient(create_app(file)) as client:
        for k, (user, item) in enumerate(pairs):
            who, what = str(DATA.user_ids[user]), str(DATA.item_ids[item])
            more = MORE if k % 4 == 0 else {}
            told = found.explain(who, what, LISTED, **more).as_dict()
            asked = {"user": who, "item": what, "n": LISTED, **more}
            answer = client.post("/explain", json=asked).json()
            ExplainResponse.model_validate(answer, strict=True, extra="forbid")
            assert answer == told | {"unknown": []}
            given = ["--user", who, "--item", what, "-n", LISTED, "--json", "-"]
            for name, value in more.items():
                given += [f"--{name.replace('_', '-')}", value]
            assert command(capfd, "explain", "--ranker", file, *given) == told
            assert (told["changes"] is None) == (not more)
            assert (told["formulas"] is None) == (not more or found.ranker.name not in OF_USERS)
            none = [note.split(":")[0] for note in told["notes"]]
            assert ("no formulas" in none) == (bool(more) and found.ranker.name not in OF_USERS)
            missing = {"no rule of the model", "no rule over attributes"} & set(none)
            assert (told["model_rule"] is None) == (not more or len(missing) == 2)
            if told["model_rule"] is not None:
                ruled = told["model_rule"]
                assert (
                    (not ruled["items"]) == (ruled["text"] == "") == ("no rule of the model" in missing)
                )
                assert (ruled["attributes"] is None) == ("no rule over attributes" in missing)


def test_its_numbers_are_those_of_brute_force(model):
    file, found, pairs = model
    ranker, R = found.ranker, DATA.matrix
    sets, titles = counts.likes(R), list(map(str, DATA.titles))
    multiplied = 0
    for user, item in pairs:
        told = found.explain(str(DATA.user_ids[user]), str(DATA.item_ids[item]), LISTED).as_dict()
        # als explains factors that are computed from the row, which those of the fit come close to
        score = float(ranker.scores(user, R[user], recalculate_user=ranker.name == "als")[0, item])
        assert told["score"] == pytest.approx(score, abs=1e-6)
        shares = sum(one["score"] for one in told["items"])
        if told["kind"] == "exact":
            assert told["bias"] + shares == pytest.approx(score, abs=1e-4)
            assert told["base"] + told["others"] == pytest.approx(told["bias"], abs=1e-9)
            assert len(told["items"]) + told["unlisted"] == len(sets[user])
        if ranker.name in ("ease", "msdw"):  # sums over the liked items, each alone
            for one in told["items"]:
                alone = sp.lil_matrix((1, R.shape[1]), dtype=np.float32)
                alone[0, DATA.item_ids.tolist().index(one["item"])] = 1
                value = ranker.scores(user, alone.tocsr(), recalculate_user=True)[0, item]
                assert one["score"] == pytest.approx(float(value), abs=1e-6)
        if told["products"] is not None:
            multiplied += 1
            check_products(ranker, R, user, item, titles, told["products"], score)
        if told["parts"]:
            assert sum(one["adds"] for one in told["parts"]) == pytest.approx(score, abs=1e-4)
        if told["rule"] is not None:
            rule = told["rule"]
            items = [DATA.item_ids.tolist().index(one["item"]) for one in rule["items"]]
            assert set(items) <= sets[user] - {item}
            seen = [rule[name] for name in ("support", "hits", "others", "others_hits")]
            assert seen == list(counts.witnesses(sets, items, item, user))
    machine = ranker.name in ("fm", "hofm", "sparse-fm", "bayesian-fm", "pairnet", "pair-svm")
    assert multiplied == (PAIRS if machine else 0)


def check_products(ranker, R, user, item, titles, told, score):
    """Compare products with differences of the machine's values where few features are left."""
    A = ranker._rows(R[user], np.array([user]))
    names = [
        *(described(DATA.item_features).names if ranker.item_features_ is not None else ()),
        *titles,
    ]
    known = [names[k] for k in A.indices]
    whole = ranker._rows

    def value(*kept):
        mask = np.isin(np.arange(A.nnz), kept)
        part = sp.csr_matrix((A.data * mask, A.indices, A.indptr), A.shape)
        if ranker.name == "pair-svm":
            return float((part @ ranker.weights_.astype(float))[0, item])
        ranker._rows = lambda rows, users=None: part
        try:
            vectors = ranker._row_vectors(R[user])
        finally:
            ranker._rows = whole
        return float(vectors[0] @ ranker.item_vectors_[item].astype(float))

    base = value()
    assert told["base"] == pytest.approx(base, abs=1e-6)
    everything = {(j,): value(j) - base for j in range(A.nnz)}
    for j in range(A.nnz):
        for k in range(j + 1, A.nnz):
            everything[j, k] = value(j, k) - value(j) - value(k) + base
    for one in told["listed"]:
        place = tuple(known.index(name) for name in one["features"])
        assert one["adds"] == pytest.approx(everything.pop(place), abs=1e-6)
    least = min((abs(one["adds"]) for one in told["listed"]), default=0.0)
    assert max(map(abs, everything.values()), default=0.0) <= least + 1e-6
    assert told["others"] == pytest.approx(sum(everything.values()), abs=1e-5)
    listed = sum(one["adds"] for one in told["listed"])
    assert told["base"] + listed + told["others"] + told["higher"] == pytest.approx(score, abs=1e-4)


def test_formulas_and_changes_are_those_of_brute_force(model):
    _, found, pairs = model
    ranker, R = found.ranker, DATA.matrix
    for user, item in pairs[:3]:
        who, what = str(DATA.user_ids[user]), str(DATA.item_ids[item])
        told = found.explain(who, what, formulas=5, changes=R.shape[1]).as_dict()
        if ranker.name in OF_USERS:
            check_formulas(ranker, R, user, item, told)
        else:
            assert told["formulas"] is None
            assert told["notes"][0].startswith(f"no formulas: the scores of {ranker.name}")
        check_changes(ranker, R, user, item, told)


def check_formulas(ranker, R, user, item, told):
    """Sum weight × feature over all formulas, and look for heavier ones among them."""
    X, made = R.toarray() > 0, told["formulas"]
    kernel = getattr(ranker, "kernel_", None)
    size, either = getattr(kernel, "degree", 1), made["connective"] == "or"
    assert either == (getattr(ranker, "kernel", "") == "md") and made["least"] == made["most"] == size
    every = all_formulas.formulas(range(len(X)), size, size)
    weights = all_formulas.weights(X, ranker.signed_weights(R[user])[0], size, size, either)
    length = all_formulas.norm(X, item, every, either)
    here = [some for some in every if all_formulas.holds(some, X, item, either)]
    assert made["holds"] == len(here)
    total = made["base"] + sum(weights[some] for some in here) / length
    assert made["score"] == pytest.approx(total, abs=1e-9)
    assert made["score"] == pytest.approx(told["score"], abs=1e-6)
    heavy = sorted((weights[some] for some in here if user not in some), reverse=True)
    heavy = [weight for weight in heavy if weight > 1e-12]
    assert [one["weight"] for one in made["listed"]] == pytest.approx(heavy[:5], abs=1e-9)
    assert made["exact"] and made["gap"] == 0.0
    assert made["bound"] >= max(heavy[5:], default=0.0) - 1e-12
    for one in made["listed"]:
        some = tuple(sorted(DATA.user_ids.tolist().index(name) for name in one["users"]))
        assert one["weight"] == pytest.approx(weights[some], abs=1e-9)
        assert one["adds"] == pytest.approx(weights[some] / length, abs=1e-9)
        held = [k for k in range(X.shape[1]) if all_formulas.holds(some, X, k, either)]
        mine = sum(bool(X[user, k]) for k in held)
        assert item in held and (one["support"], one["others"]) == (mine, len(held) - mine)


def check_changes(ranker, R, user, item, told):
    """Score the row without each liked item, and count the rank in it."""
    liked, made = R[user].indices.tolist(), told["changes"]
    fold_in = "fold-in" in ranker.capabilities
    free = [k for k in range(R.shape[1]) if k not in liked or k == item]

    def scored(kept):
        row = sp.csr_matrix((np.ones(len(kept)), kept, [0, len(kept)]), (1, R.shape[1]), np.float32)
        return ranker.scores(user, row, recalculate_user=fold_in)[0]

    def rank(scores):
        return 1 + sorted(free, key=lambda k: (-scores[k], k)).index(item)

    assert (made["rank"], made["of"], made["liked"]) == (rank(scored(liked)), len(free), len(liked))
    assert f"Rank now: {made['rank']:,} of {made['of']:,}." == made["text"][0]
    able = fold_in and ranker.name != "popularity"
    wanted = {str(DATA.item_ids[k]): scored([j for j in liked if j != k]) for k in liked if k != item}
    assert made["tried"] == len(made["listed"]) == (len(wanted) if able and len(liked) > 1 else 0)
    for one in made["listed"]:
        scores = wanted.pop(one["item"])
        assert one["rank"] == rank(scores) and one["score"] == pytest.approx(
            float(scores[item]), abs=1e-7
        )
    order = [(-one["rank"], one["score"]) for one in made["listed"]]
    assert order == sorted(order)


def test_a_list_has_the_explanations_of_its_items(model):
    file, found, pairs = model
    with TestClient(create_app(file)) as client:
        for user, _ in pairs[:3]:
            who = str(DATA.user_ids[user])
            answer = client.post("/recommend", json={"user": who, "n": 3, "why": True}).json()
            RecommendResponse.model_validate(answer, strict=True, extra="forbid")
            plain = client.post("/recommend", json={"user": who, "n": 3}).json()
            listed = [one["item"] for one in answer["items"]]
            assert listed == [one["item"] for one in plain["items"]]
            assert all("why" not in one for one in plain["items"])
            for one in answer["items"]:
                assert one["why"] == found.explain(who, one["item"]).as_dict()
        refused = client.post("/recommend", json={"user": who, "n": 101, "why": True})
        assert refused.status_code == 422 and "at most 100" in refused.json()["detail"]


def test_the_model_s_rule_for_an_item_is_counted_in_its_lists(model):
    """For every other user without the item, whether the model's list has it and the antecedent holds."""
    _, found, pairs = model
    ranker, R, sets = found.ranker, DATA.matrix, counts.likes(DATA.matrix)
    held = 0
    for user, item in pairs:
        told = found.explain(
            str(DATA.user_ids[user]), str(DATA.item_ids[item]), model_rule=LISTED
        ).as_dict()["model_rule"]
        if told is None or not told["items"]:
            continue
        held += 1
        named = {DATA.item_ids.tolist().index(one["item"]) for one in told["items"]}
        assert named <= sets[user] - {item} and told["first"] == LISTED
        table = np.zeros((2, 2), dtype=int)
        for k, mine in enumerate(sets):
            if mine and item not in mine and k != user:
                listed = item in ranker.recommend(k, R[k], N=LISTED).ids
                table[int(named <= mine), int(listed)] += 1
        assert (told["support"], told["hits"]) == (table[1].sum(), table[1, 1])
        assert (told["others"], told["others_hits"]) == (table[0].sum(), table[0, 1])
        assert told["users"] == table.sum() and told["others_hits"] / told["others"] < told["low"]
        chance = binom.sf(told["hits"] - 1, told["support"], told["low"])  # of so many hits or more
        assert chance == pytest.approx(0.05)
    assert held or ranker.name in ("fm", "sparse-fm", "bayesian-fm")


def test_a_rule_of_the_model_is_the_same_in_three_doors_and_its_counts_are_right(model, capfd):
    file, found, pairs = model
    ranker, R = found.ranker, DATA.matrix
    held = 0
    capfd.readouterr()
    with TestClient(create_app(file)) as client:
        for about, name in (
            *(("user", str(DATA.user_ids[user])) for user, _ in pairs[:4]),
            *(("item", str(DATA.item_ids[item])) for _, item in pairs[:4]),
        ):
            rule = found.model_rule(**{about: name}, n=10)
            told = rule.as_dict()
            answer = client.post("/rules", json={about: name, "n": 10}).json()
            RulesResponse.model_validate(answer, strict=True, extra="forbid")
            assert answer == told | {"unknown": []}
            given = ("--ranker", file, f"--{about}", name, "-n", 10, "--json", "-")
            assert command(capfd, "rules", *given) == told
            if rule.test is None:
                continue
            held += 1
            right = told["hits"] + told["others"] - told["others_hits"]
            assert told["fidelity"] == pytest.approx(right / (told["tested"] + told["others"]))
            if about == "item":
                check_item_rule(ranker, R, DATA.item_ids.tolist().index(name), told, rule)
    assert held, "no rule was learned: the data are too small to test anything"


def check_item_rule(ranker, R, item, told, rule):
    """Count over all users, in whose list the item is, those who follow the rule, and the halves' sums."""
    first = follows = both = 0
    sets = counts.likes(R)
    titles = list(map(str, DATA.titles))
    clauses = [{titles.index(title) for title in clause} for clause in told["clauses"]]
    for user, mine in enumerate(sets):
        if item in mine or not mine:
            continue
        listed = item in ranker.recommend(user, R[user], N=10).ids
        fits = any(clause <= mine for clause in clauses)
        first, follows, both = first + listed, follows + fits, both + (listed and fits)
    # The test half is a part of these.
    assert told["tested"] + rule.test.learned == first
    assert told["hits"] <= both and told["hits"] + told["others_hits"] <= follows


def with_a_cold_user():
    """Return the data with a user who likes nothing yet, for which features of users are learned."""
    data = replace(DATA, user_ids=np.append(DATA.user_ids, "cold").astype(object))
    countries = [["FI", "IT"][k % 2] for k in range(data.n_users)]
    return data.with_features(users=pd.DataFrame({"country": countries}, index=data.user_ids))


@pytest.mark.parametrize(
    "spec",
    [
        "fm:iterations=2,factors=3", "hofm:iterations=2,factors=2,degree=3", "pairnet:iterations=2,factors=2",
        "bilinear:iterations=2,factors=2", "pair-svm", "blend:models=ease+fm",
    ],
)  # fmt: skip
def test_a_history_is_explained_as_it_is_ranked(spec, tmp_path):
    """Nothing is known of its user: features of the one whose number it borrows are none of it."""
    file = tmp_path / "m.recsys"
    recsys.Recommender(spec).fit(with_a_cold_user()).save(file)
    found = recsys.load(file)
    history = ["m4", "m8", "m9"]
    top = found.recommend_history(history, n=3)
    with TestClient(create_app(file)) as client:
        for item, score, sentence in zip(top["item"], top["score"], top["why"], strict=True):
            why = found.explain_history(history, item)
            assert why.score == pytest.approx(score, abs=1e-5) and why.sentence == sentence
            shares = sum(row[2] for row in why.rows)
            assert shares + why.reasons.bias == pytest.approx(score, abs=1e-5)
            if why.products is not None:
                assert why.products.score == pytest.approx(score, abs=1e-4)
                assert not any("country" in name for name, _ in why.multiplied)
            asked = {"history": history, "item": item}
            assert client.post("/explain", json=asked).json() == why.as_dict() | {"unknown": []}
    nothing = found.recommend_history([], n=1)
    assert found.explain_history([], nothing["item"][0]).score == pytest.approx(nothing["score"][0])


def test_products_of_a_user_without_likes_are_those_of_the_features(tmp_path):
    found = recsys.Recommender("fm:iterations=2,factors=3").fit(with_a_cold_user())
    top = found.recommend("cold", n=1)
    why = found.explain("cold", top["item"][0])
    assert [name for name, _ in why.multiplied] == ["the item's own", "country=FI"]
    assert why.products.score == pytest.approx(top["score"][0], abs=1e-5)


def test_products_name_the_features_of_users_and_of_items(tmp_path):
    data = with_a_cold_user()
    file = tmp_path / "m.recsys"
    recsys.Recommender("fm:iterations=2,factors=3").fit(data).save(file)
    found = recsys.load(file)
    for user, item in (("u3", "m4"), ("u8", "m1")):
        row = data.user_ids.tolist().index(user)
        package, column = found.package, data.item_ids.tolist().index(item)
        made = products(
            found.ranker, row, package.user_items[row], column, package.titles, most=10_000,
            **package.feature_names,
        )  # fmt: skip
        assert made.listed[:12] == found.explain(user, item).products.listed
        names = {name for one in made.listed for name in one.names}
        own = {name for name in names if name.startswith("country=")}
        assert own == {f"country={['FI', 'IT'][row % 2]}"}
        titles = {str(data.titles[k]) for k in data.matrix[row].indices}
        assert {name for name in names if name.startswith("Film")} == titles
        assert {name.partition("=")[0] for name in names - titles} == {"country", "genres"}


def test_an_explanation_is_text_and_html_with_its_products(tmp_path, capfd):
    file = tmp_path / "m.recsys"
    recsys.Recommender("fm:iterations=2,factors=3").fit(DATA).save(file)
    why = recsys.load(file).explain("u3", "m4")
    lines = [f"{value:+.4g}  {name}" for name, value in why.multiplied]
    assert len(lines) > 3 and str(why).splitlines()[-len(lines) :] == lines
    page = why._repr_html_()
    assert all(f"<td>{escape(name)}</td>" in page for name, _ in why.multiplied)
    capfd.readouterr()
    assert cli.call(["explain", "--ranker", str(file), "--user", "u3", "--item", "m4"]) == 0
    shown = capfd.readouterr().out
    assert "The score by features" in shown
    for name, value in why.multiplied:
        assert re.search(rf"{re.escape(name)} +{re.escape(f'{value:+.4g}')}", shown), name


def test_changes_count_features_of_a_known_user_and_none_of_a_new_one():
    found = recsys.Recommender("fm:iterations=4,factors=4").fit(with_a_cold_user())
    ranker, moved = found.ranker, 0
    for user in ("u3", "u8", "u9"):
        listed = found.recommend(user, n=DATA.n_items)
        for place in (0, 4):
            why = found.explain(user, listed["item"][place], changes=3)
            assert why.changes["rank"] == place + 1
            row = found.package.profile(user).row
            for one in why.changes["listed"]:
                less = row.copy()
                less[0, found.package.item_index[one["item"]]] = 0
                less.eliminate_zeros()
                item = found.package.item_index[why.item]
                known = ranker.scores(found.package.profile(user).user, less)[0, item]
                new = ranker.scores(0, less, recalculate_user=True)[0, item]
                assert one["score"] == pytest.approx(float(known), abs=1e-7)
                moved += abs(known - new) > 1e-4
    assert moved
    stored = recsys.Recommender("lmf:factors=4,iterations=5").fit(recsys.load_dataset("sample"))
    differ = 0
    listed = stored.recommend("u0001", n=40)
    for rank, item, score in zip(listed["rank"], listed["item"], listed["score"], strict=True):
        why = stored.explain("u0001", item, changes=1)
        differ += why.changes["rank"] != rank
        wanted = []
        if abs(score - why.score) > 1e-3 * max(1.0, abs(why.score)):
            wanted.append(f"its score in the list is {score:.4g}, ")
        if why.changes["rank"] != rank:
            wanted.append(f"the list has it at rank {rank}, ")
        assert len(why.notes) == len(wanted)
        assert all(note.startswith(start) for note, start in zip(why.notes, wanted, strict=True))
    assert differ
    history = ["m4", "m8", "m9", "m11"]
    top = found.recommend_history(history, n=3)["item"]
    for place, item in enumerate(top, 1):
        why = found.explain_history(history, item, changes=2)
        assert why.changes["rank"] == place
        for one in why.changes["listed"]:
            rest = [k for k in history if k != one["item"]]
            assert found.explain_history(rest, item).score == pytest.approx(one["score"], abs=1e-6)


def test_formulas_and_changes_are_text_and_html(tmp_path, capfd):
    file = tmp_path / "m.recsys"
    recsys.Recommender("cf-komd:kernel=mc,degree=2").fit(DATA).save(file)
    why = recsys.load(file).explain("u3", "m4", **MORE)
    assert len(why.formulas["listed"]) == 3 and len(why.changes["listed"]) == 2
    lines = why.sentences
    assert {one["text"] for one in why.formulas["listed"]} <= set(lines)
    for one in why.changes["listed"]:
        assert f"Without {one['title']}: rank {one['rank']:,}, score {one['score']:.4g}." in lines
    assert str(why).splitlines()[-len(lines) :] == lines
    assert all(f"<p>{escape(line)}</p>" in why._repr_html_() for line in lines)
    capfd.readouterr()
    asked = ["explain", "--ranker", str(file), "--user", "u3", "--item", "m4"]
    assert cli.call([*asked, "--formulas", "3", "--changes", "2", "--model-rule", "5"]) == 0
    shown = " ".join(capfd.readouterr().out.split())
    assert all(line in shown for line in lines)
    cold = recsys.load(file).explain_history([], "m4", **MORE)
    assert cold.formulas is None and cold.notes[0].startswith("no formulas: nothing is liked")
    assert cold.changes["listed"] == [] and cold.notes[0] in str(cold)
    assert recsys.load(file).explain("u3", "m4").sentences == []
    for wrong in (
        ["--formulas", "-1"], ["--changes", "-1"], ["--people", "--formulas", "1"],
        ["--people", "--changes", "1"], ["--model-rule", "-1"], ["--people", "--model-rule", "1"],
    ):  # fmt: skip
        assert cli.call([*asked, *wrong]) == 2
        assert len(capfd.readouterr().err.splitlines()) == 1
    with pytest.raises(recsys.InputError, match="changes"):
        recsys.load(file).explain("u3", "m4", changes=-1)
    with TestClient(create_app(file)) as client:
        for wrong in ({"formulas": -1}, {"formulas": 101}, {"changes": 11}, {"formulas": True}):
            answer = client.post("/explain", json={"user": "u3", "item": "m4", **wrong})
            assert answer.status_code == 422 and next(iter(wrong)) in answer.json()["detail"]


WRONG = [
    (["--ranker", "m", "--data", "t.csv"], "pass --ranker FILE or --data FILE, not both"),
    (["--ranker", "m"], "exactly one of --user ID and --item ID"),
    (["--ranker", "m", "--user", "u3", "--item", "m4"], "exactly one of --user ID and --item ID"),
    (["--user", "u3"], "--user and --item are for --ranker FILE"),
    ([], "pass --data FILE, a table of categories, or --ranker FILE"),
    (["--ranker", "m", "--user", "u3", "-n", "0"], "-n"),
    (["--ranker", "m", "--user", "nobody"], "nobody"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG, ids=str)
def test_wrong_calls_of_rules_are_told_in_a_line(arguments, text, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    recsys.Recommender("popularity").fit(DATA).save("m")
    capfd.readouterr()
    assert cli.call(["rules", *arguments]) == 2
    out, err = capfd.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and text in err
