"""What every ranker class offers beside ranking: parameters, abilities, state, names to import."""

import ast
import copy
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import recsys
from recsys import (
    CFKOMD,
    EASE,
    Blend,
    FitError,
    InputError,
    MSDw,
    Ranker,
    list_rankers,
    load_ranker,
    make_ranker,
)
from recsys.evaluation.models import COMPARED
from recsys.kernels import make_kernel
from recsys.links import make_link_predictor
from recsys.rankers.auto import candidate_specs
from recsys.rankers.base import ABILITIES
from recsys.rankers.registry import RANKERS, offered_models
from recsys.registry import format_spec, parse_spec

ABLE = {
    "als": "embeddings fold-in similar-items similar-users",
    "bpr": "embeddings similar-items similar-users",
    "lmf": "embeddings explain fold-in similar-items similar-users",
    "content": "cold-items explain fold-in similar-items",
    "popularity": "fold-in",
    "user-knn": "explain fold-in similar-users",
    "all-subsets": "cold-items cold-users embeddings fold-in similar-items",
    "random-features": "cold-users embeddings fold-in similar-items",
} | dict.fromkeys(
    ("fm", "sparse-fm", "hofm", "bilinear", "pairnet"),
    "cold-items cold-users embeddings explain fold-in similar-items",
)
ABLE["pair-svm"] = "cold-items cold-users explain fold-in similar-items"
ABLE |= dict.fromkeys(("pair-dnn", "honfm"), "cold-items cold-users fold-in similar-items")
IN_TIME = (
    "auto",
    "blend",
    "bm25",
    "cf-komd",
    "cf-omd",
    "content",
    "cosine",
    "ease",
    "ecf-omd",
    "graph-filter",
    "msdw",
    "slim",
    "slist",
    "tfidf",
)


@pytest.mark.thorough
@pytest.mark.parametrize("name", list_rankers())
def test_clones_have_the_parameters_and_nothing_learned(name, liked):
    made = make_ranker(name)
    params = made.get_params()
    fitted = make_ranker(name, **({"rounds": 1} if name == "auto" else {})).fit(liked, False)
    for ranker in (made, fitted):
        again = clone(ranker)
        assert type(again) is type(ranker) and again.get_params() == ranker.get_params()
        assert not hasattr(again, "n_items_")
    assert made.set_params(**params) is made and made.get_params() == params
    with pytest.raises(InputError, match="has no parameter 'regularisatoin'"):
        made.set_params(regularisatoin=1)


@pytest.mark.parametrize("name", list_rankers())
def test_abilities_are_those_of_its_methods(name):
    expected = set(ABLE.get(name, "explain fold-in similar-items").split())
    uses = {"times"} if name in IN_TIME else set()
    assert RANKERS.get(name).capabilities == expected | uses
    uses = {"item_features", "user_features"} if "cold-users" in expected else uses
    uses |= {"item_features", "item_texts"} if name in ("auto", "content") else set()
    assert RANKERS.get(name).uses == uses


def test_what_a_subclass_writes_is_what_it_can():
    class Mine(Ranker):
        name = "mine"

        def _fit(self, data):
            self.seen_ = data.times

        def _scores(self, rows, users=None):
            out = np.zeros(rows.matrix.shape, np.float32)
            out[0, rows.matrix.indices] = 0 if rows.times is None else rows.times
            return out

    class InTime(Mine):
        uses = frozenset({"times"})

    assert Ranker.capabilities == frozenset() and Mine.capabilities == {"fold-in"}
    assert InTime.capabilities == {"fold-in", "times"} and set(ABILITIES) & InTime.capabilities == set()
    assert InTime().reads_times() and InTime().wanted() == {"times"}
    assert not Mine().reads_times() and not Mine().wanted()
    likes, when = [[1, 0, 1]], [[3.0, 7.0, 0.0]]
    assert InTime().fit(likes, times=when).scores(0, likes).tolist() == [[3, 0, 0]]  # of the fit
    assert Mine().fit(likes, times=when).scores(0, likes).tolist() == [[0, 0, 0]]
    assert InTime().fit(likes, times=when).seen_.data.tolist() == [3.0, 0.0]
    assert InTime().fit([[1, 1]], times=[[3.0, 3.0]]).seen_ is None  # tells nothing apart


def test_times_are_read_under_the_parameters_that_read_them():
    assert not EASE().reads_times() and EASE(recency=0.5).reads_times()
    assert not make_ranker("als").reads_times()
    assert EASE().wanted() == frozenset() and EASE(recency=0.5).wanted() == {"times"}
    assert make_ranker("fm").wanted() == {"item_features", "user_features"}


def test_a_blend_reads_times_as_its_parts_do_and_takes_them_until_it_has_some(liked):
    still, moving = Blend([EASE(), MSDw()]), Blend([EASE(recency=1.0), MSDw()])
    for blend in (still, moving):
        assert blend.reads_times() and blend.wanted() == {"times"}
    assert make_ranker("auto").wanted() == {"item_features", "item_texts", "times"}
    assert not still.fit(liked, False).reads_times() and moving.fit(liked, False).reads_times()
    assert still.wanted() == {"times"}  # a refit may have other parts


def test_every_ranker_class_can_be_imported_from_the_top():
    for name in list_rankers():
        kind = RANKERS.get(name)
        assert getattr(recsys, kind.__name__) is kind and kind.__name__ in recsys.__all__
        assert kind.__name__ in dir(recsys)
    with pytest.raises(AttributeError, match="no attribute 'Ease'"):
        recsys.Ease  # noqa: B018


def test_the_names_for_type_checkers_are_those_that_are_there():
    tree = ast.parse(Path(recsys.__file__).read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    told = {(node.module, alias.name) for node in checked.body for alias in node.names}
    told.discard(("typing", "Any"))
    assert told == {(module, name) for name, module in recsys._HOME.items()}
    assert sorted(recsys._HOME) == sorted(recsys.__all__)
    for name in recsys.__all__:
        assert getattr(recsys, name) is not None


@pytest.mark.parametrize("name", list_rankers())
def test_every_parameter_is_documented_in_the_class_or_a_base(name):
    kind = RANKERS.get(name)
    documented = "\n".join(inspect.cleandoc(base.__doc__ or "") for base in kind.__mro__)
    for parameter in make_ranker(name).get_params():
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)* : ", documented, re.MULTILINE), parameter


def test_what_auto_tries_is_declared_by_the_rankers_and_can_be_made():
    small, large = candidate_specs(2000, 100_000), candidate_specs(20_000, 10**6)
    timed, large_timed = candidate_specs(2000, 100_000, True), candidate_specs(20_000, 10**6, True)
    for spec in {*small, *large, *timed, *large_timed, *offered_models(), *COMPARED}:
        name, params = parse_spec(spec)
        make_ranker(name, **params)
    assert "bilinear:iterations=5" in small and not any("bilinear" in spec for spec in large)
    assert (
        len(small) == 11 and len(candidate_specs(1000, 100_000)) == 9 and len(large) == len(set(large))
    )
    assert "popularity:unseen=true" in candidate_specs(2000, 100_000, unseen=True)
    assert set(small) < set(timed) and set(large) < set(large_timed)
    assert all("recency" in s or "slist" in s for s in {*timed, *large_timed} - {*small, *large})
    assert "cf-omd" not in offered_models() and "lmf" in offered_models()


def test_search_spaces_name_parameters_that_there_are():
    for name in list_rankers():
        made = make_ranker(name).get_params()
        cls = RANKERS.get(name)
        assert set(cls.search_space) <= set(made)
        for key, (other, values) in cls.searched_where.items():
            assert key in cls.search_space and other in made and values
            assert all(value in cls.search_space.get(other, values) for value in values)


def test_a_blend_of_objects_is_the_blend_of_their_text(liked, tmp_path):
    parts = [EASE(regularization=3.0), CFKOMD(kernel="rbf", kernel_params={"gamma": 0.5}), MSDw()]
    blend = Blend(parts, weights=(1, 2, 3)).fit(liked, False)
    text = "ease:regularization=3.0+cf-komd:kernel=rbf;gamma=0.5+msdw"
    same = Blend(text, weights="1+2+3").fit(liked, False)
    users = np.arange(60)
    np.testing.assert_allclose(blend.scores(users, liked), same.scores(users, liked), rtol=1e-6)
    assert not hasattr(parts[0], "n_items_")  # copies are fitted
    copied = clone(blend)
    assert copied.models[0] is not parts[0] and copied.models[0].get_params() == parts[0].get_params()
    blend.save(tmp_path / "m")
    again = load_ranker(tmp_path / "m")
    np.testing.assert_array_equal(again.scores(users, liked), same.scores(users, liked))
    np.testing.assert_array_equal(
        again.fit(liked, False).scores(users, liked), same.scores(users, liked)
    )
    for wrong in ([], [3], [Blend()], [make_ranker("bpr")]):
        with pytest.raises(InputError, match="models"):
            Blend(wrong).fit(liked)
    with pytest.raises(InputError, match="weights must be 1 non-negative numbers"):
        Blend([EASE()], weights=[1.0, 2.0]).fit(liked)
    assert copy.deepcopy(again).scores(3, liked[3]).shape == (1, 40)


def test_misspelt_parameters_of_cf_komd_are_told_the_nearest():
    for given, near in (("regularisation", "regularization"), ("kernal", "kernel"), ("gama", "gamma")):
        with pytest.raises(InputError, match=f"'cf-komd' has no parameter '{given}': .*'{near}'"):
            make_ranker("cf-komd", kernel="rbf", **{given: 1})
    assert make_ranker("cf-komd", kernel="rbf", gamma=0.3).kernel_params == {"gamma": 0.3}


def test_a_specification_reads_back_what_was_written():
    for name, params in (
        ("ease", {"regularization": 1e-05}),
        ("cf-komd", {"kernel": "mc", "degree": 2, "unrated": "mean"}),
        ("msdw", {"alpha": 0.30000000000000004}),
    ):
        assert parse_spec(format_spec(name, params)) == (name, params)
    for value in ("a,b", "true", "1.0", "x+y"):
        with pytest.raises(InputError, match="cannot be written"):
            format_spec("x", {"text": value})


@pytest.mark.parametrize("name", ["als", "bpr", "ease", "fm", "blend", "cf-komd"])
def test_scores_of_a_row_folded_in_are_those_it_is_ranked_by(name, liked):
    ranker = make_ranker(name).fit(liked, False)
    if "fold-in" not in ranker.capabilities:
        with pytest.raises(InputError, match="cannot rank users it was not fitted on"):
            ranker.scores(0, liked[3], recalculate_user=True)
        return
    scores = ranker.scores(10**6, liked[3], recalculate_user=True)[0]  # a label that no user has
    ids, values = ranker.recommend(0, liked[3], 40, False, recalculate_user=True)
    np.testing.assert_array_equal(scores[ids], values)
    assert ids.tolist() == np.lexsort((np.arange(40), -scores)).tolist()


def test_a_fit_that_diverges_is_one_error(liked):
    with pytest.raises(FitError, match="^bpr diverged: raise regularization or lower"):
        make_ranker("bpr", learning_rate=1e30, factors=4).fit(liked, show_progress=False)


def test_values_beyond_what_als_can_square_are_one_error(liked):
    with pytest.raises(FitError, match="^als diverged"):
        make_ranker("als", factors=4).fit(liked * np.float32(1e30), show_progress=False)


# Of a graph filter there are no more factors than items, however many are asked for.
FACTORED = [
    name
    for name in list_rankers()
    if "factors" in make_ranker(name).get_params() and name != "graph-filter"
]


@pytest.mark.parametrize("name", FACTORED)
def test_factors_that_do_not_fit_are_refused_with_their_bytes(name, liked):
    with pytest.raises(
        InputError, match=r"factors=2000000000 of .*40 items: needs .* GB.*lower factors"
    ):
        make_ranker(name, factors=2_000_000_000).fit(liked, show_progress=False)
    with pytest.raises(InputError, match="factors must be an integer from 1 to 2147483647"):
        make_ranker(name, factors=10**400)


def test_a_parameter_called_name_is_one_that_there_is_not():
    for make, name in ((make_ranker, "ease"), (make_kernel, "md"), (make_link_predictor, "pairnet")):
        with pytest.raises(InputError, match="has no parameter 'name'"):
            make(name, name="x")


def test_a_ranker_with_its_parameters_in_one_text_is_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"keywords, make_ranker\('als', …\), not 'als:factors=8'"):
        make_ranker("als:factors=8")
