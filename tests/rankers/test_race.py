"""The race of auto's candidates: in time, by a clock that only fits move, and fair."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from recsys import FitError, InputError, make_ranker
from recsys.datasets import load_dataset
from recsys.explain import text
from recsys.rankers import _candidates, _clock, _race, auto
from recsys.rankers._candidates import JUDGES, Task
from recsys.rankers._clock import Clock, OutOfTime
from recsys.rankers._race import Race
from recsys.rankers._standardised import fitted
from recsys.utils.progress import listening, report

QUICK = ("popularity", "msdw", "ease:regularization=10", "cf-komd", "als:factors=2,iterations=2")
SPECS = [*QUICK, *(f"ease:regularization={k}" for k in range(100, 900, 100))]


@pytest.fixture
def likes():
    """As many likes as make three samples: two tastes, and no more."""
    rng = np.random.default_rng(0)
    taste = rng.integers(0, 2, 4000)
    return sp.csr_matrix(
        (rng.random((4000, 40)) < np.where(taste[:, None] == np.arange(40) // 20, 0.5, 0.1)) * 1.0
    )


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still while nothing is fitted; a fit takes `cost` for each like, and `fixed`."""
    clock = SimpleNamespace(now=0.0, worked=0.0, share=1.0, cost={}, fixed={}, fits=[])
    told = SimpleNamespace(perf_counter=lambda: clock.now, process_time=lambda: clock.worked)
    for module in (_clock, _candidates):
        monkeypatch.setattr(module, "time", told)

    def slow(spec, liked, times=None, item_features=None):
        clock.fits.append((spec, liked.nnz))
        for k in range(10):
            fixed = clock.fixed.get(spec, 0.0) if liked.nnz > 900 else 0.0  # beyond a corner
            seconds = (fixed + clock.cost.get(spec, 0.0) * liked.nnz) / 10
            clock.now, clock.worked = clock.now + seconds, clock.worked + clock.share * seconds
            report("iteration", k, 10)
        return fitted(spec, liked, times)

    for module in (_candidates, _race, auto):
        monkeypatch.setattr(module, "fitted", slow)
    monkeypatch.setattr(auto, "tried", lambda *size: SPECS)
    return clock


@pytest.mark.thorough
def test_with_time_for_all_it_is_the_fit_without_a_budget(likes, clock):
    clock.cost = dict.fromkeys(SPECS, 1e-6)
    free = make_ranker("auto").fit(likes, show_progress=False)
    fits = len(clock.fits)
    bounded = make_ranker("auto", budget=1000.0).fit(likes, show_progress=False)
    assert bounded.part_names_ == free.part_names_ and bounded.dropped_ == free.dropped_
    np.testing.assert_array_equal(bounded.part_weights_, free.part_weights_)
    np.testing.assert_array_equal(bounded.scores(3, likes[3]), free.scores(3, likes[3]))
    assert fits == len(SPECS) + len(free.parts)


@pytest.mark.thorough
@pytest.mark.parametrize("budget", [3.0, 10.0, 30.0, 100.0])
def test_it_ends_in_time_and_says_what_it_dropped_and_why(likes, clock, budget):
    """Alone all would take 13 × 0.2 times as many seconds as there are thousand likes, over 200."""
    clock.cost = dict.fromkeys(SPECS, 2e-4) | {"popularity": 1e-7}
    told = []
    with listening(lambda *one: told.append(one)):
        model = make_ranker("auto", budget=budget).fit(likes, show_progress=False)
    assert clock.now <= 1.2 * budget
    assert set(model.part_names_) | set(model.dropped_) == set(SPECS)
    assert not set(model.part_names_) & set(model.dropped_)
    assert all(model.dropped_.values()) and model.parts
    sentence = text.left_out(model)
    assert all(spec in sentence for spec in model.dropped_)
    shares = [done / total for _, done, total in told]
    assert shares == sorted(shares) and shares[-1] <= 1


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.1, 2.0])
def test_a_budget_of_processor_seconds_is_kept_whatever_the_clock_says(likes, clock, share):
    clock.cost = dict.fromkeys(SPECS, 2e-4) | {"popularity": 1e-7}
    clock.share = share  # of a processor that a fit has: others take the rest
    model = make_ranker("auto", processor_budget=10.0).fit(likes, show_progress=False)
    assert clock.worked <= 12 and model.parts
    assert set(model.part_names_) | set(model.dropped_) == set(SPECS)
    clock.now = clock.worked = 0.0
    make_ranker("auto", budget=20.0, processor_budget=10.0).fit(likes, show_progress=False)
    assert clock.now <= 24 and clock.worked <= 12


def test_cheap_candidates_are_fitted_first_and_kept(likes, clock):
    quick = ["popularity", "msdw", "cf-komd"]
    clock.cost = dict.fromkeys(SPECS, 1e-2) | dict.fromkeys(quick, 1e-6)
    model = make_ranker("auto", budget=20.0).fit(likes, show_progress=False)
    whole = max(size for _, size in clock.fits)
    first = [spec for spec, size in clock.fits if size > 0.7 * whole][:3]
    assert first == quick
    before = [spec for spec, _ in clock.fits[: clock.fits.index(("cf-komd", whole)) + 1]]
    assert set(before) == set(quick)  # nothing else was even compiled
    assert set(quick) < set(model.validation_) and set(model.part_names_) <= set(quick)
    assert clock.now <= 24


@pytest.mark.thorough
def test_the_best_half_of_a_sample_goes_on(likes, clock):
    clock.cost = dict.fromkeys(SPECS, 4e-5)
    model = make_ranker("auto", budget=30.0).fit(likes, show_progress=False)
    whole = max(size for _, size in clock.fits)
    through = {spec for spec, size in clock.fits if size > 0.7 * whole}
    assert 1 < len(through) < len(SPECS)
    raced = [why for why in model.dropped_.values() if "it was number" in why]
    assert raced and all("of the interactions" in why for why in raced)
    assert "popularity" not in model.part_names_  # which knows no taste


@pytest.mark.thorough
def test_a_fit_that_does_not_grow_with_the_likes_is_found_out(likes, clock):
    """Nine of three seconds on whatever sample: by the first sample each would take two minutes."""
    clock.fixed = {spec: 3.0 for spec in SPECS if spec.startswith("ease")}
    model = make_ranker("auto", budget=90.0).fit(likes, show_progress=False)
    sizes = [size for spec, size in clock.fits if spec.startswith("ease")]
    whole = max(sizes)
    assert sum(900 < size < 0.7 * whole for size in sizes) == 1  # siblings are not timed again
    assert all(spec in model.validation_ for spec in SPECS)
    assert set(model.dropped_.values()) <= {auto.NOT_CHOSEN} and clock.now <= 90


def test_a_fit_that_is_as_slow_as_it_seemed_is_stopped_and_raced(likes, clock):
    clock.cost = dict.fromkeys(SPECS[4:], 5e-4)  # 18 s each on everything, and quick on the samples
    model = make_ranker("auto", budget=60.0).fit(likes, show_progress=False)
    assert clock.now <= 72 and model.parts
    assert set(model.dropped_) | set(model.part_names_) == set(SPECS)
    assert not any("stopped" in why for why in model.dropped_.values())


def test_a_fit_that_takes_too_long_is_stopped(likes, clock):
    clock.cost = {"als:factors=2,iterations=2": 0.05}
    model = make_ranker("auto", budget=60.0).fit(likes, show_progress=False)
    assert "stopped after" in model.dropped_["als:factors=2,iterations=2"]
    assert clock.now <= 72 and len(model.dropped_) + len(model.parts) == len(SPECS) > 5
    assert sum("stopped" in why for why in model.dropped_.values()) == 1


def test_what_a_fit_will_take_is_told_from_two_samples(likes):
    race = Race(Task(likes, None, np.arange(3), likes[:3], 0), Clock(60.0))
    race.took = {
        "one": [(1000, 2.0)],
        "flat": [(1000, 2.0), (4000, 2.0)],
        "grows": [(1000, 1.0), (4000, 4.0)],
    }
    assert race.expected("one", 10_000) == 20.0
    assert race.expected("flat", 10_000) == 2.0 and race.expected("flat", 100_000) == 12.5
    assert race.expected("grows", 10_000) == pytest.approx(10.0)


def test_samples_are_of_whole_users_and_judged_by_the_same(likes):
    held = np.arange(500, 1000)
    task = Task(likes, likes, held, likes[held], 3)
    small, large = task.sample(9000), task.sample(20_000)
    np.testing.assert_array_equal(small.held, large.held)
    assert len(small.held) == JUDGES and np.isin(small.held, held).all()
    for sample, least in ((small, 9000), (large, 20_000)):
        lengths = np.diff(sample.train.indptr)
        assert ((lengths == 0) | (lengths == np.diff(likes.indptr))).all()
        assert least - 40 <= sample.train.nnz <= least + 40 and (sample.train != sample.times).nnz == 0
        np.testing.assert_array_equal(sample.test.toarray(), likes[sample.held].toarray())


def test_a_step_that_is_late_is_stopped_at_its_next_report():
    clock = Clock(60.0)
    with pytest.raises(OutOfTime), clock.step("slow", most=0.0):
        report("first", 0, 2)
    heard = []
    with listening(lambda *told: heard.append(told)), Clock(None, 4).step("second", 2.0, 0.5):
        report("half", 1, 2)
    assert heard == [("second", 2.0, 4), ("second, half", 2.25, 4)]


@pytest.mark.parametrize("key", ["budget", "processor_budget"])
@pytest.mark.parametrize("budget", [0, -1.0, "long"])
def test_budgets_that_are_none_are_refused(budget, key):
    with pytest.raises(InputError, match=f"^{key} must be a finite number above 0"):
        make_ranker("auto", **{key: budget})


@pytest.mark.thorough
def test_a_budget_is_kept_on_real_data(tmp_path):
    data = load_dataset("sample").matrix
    model = make_ranker("auto", budget=600).fit(data, show_progress=False)
    model.save(tmp_path / "m.recsys")
    again = type(model).load(tmp_path / "m.recsys")
    state = model.get_state()
    state.scalars["dropped_"] = {"ease": 3}
    with pytest.raises(ValueError, match="dropped_ does not tell why"):
        make_ranker("auto").set_state(state)
    assert again.dropped_ == model.dropped_ and text.left_out(again) == text.left_out(model) != ""


def test_a_budget_for_nothing_fits_the_quickest(likes, clock):
    """Also where no fit could be measured: the first by name may be the slowest."""
    clock.cost = dict.fromkeys(SPECS, 1.0)
    model = make_ranker("auto", budget=1e-6).fit(likes, show_progress=False)
    assert model.part_names_ == ["popularity"]
    assert set(model.dropped_) == set(SPECS) - {"popularity"}
    assert not any("0.0 s" in why for why in model.dropped_.values())


def test_few_likes_are_not_cut_unjudged(likes, clock):
    """Of data too small for samples the quick ones are fitted, and none for its place in a list."""
    few = likes[:500]
    slow = ["popularity", "msdw", "cf-komd"]
    fast = [spec for spec in SPECS if spec not in slow]
    clock.cost = dict.fromkeys(slow, 3e-3) | dict.fromkeys(fast, 1e-5)
    model = make_ranker("auto", budget=60.0).fit(few, show_progress=False)
    assert set(fast) <= set(model.part_names_) | {
        spec for spec, why in model.dropped_.items() if why == auto.NOT_CHOSEN
    }
    assert any("would take about" in model.dropped_.get(spec, "") for spec in slow)
    assert clock.now <= 72


def test_what_cannot_be_fitted_leaves_something(likes, clock, monkeypatch):
    def fitted_or_not(spec, liked, times=None, item_features=None):
        if spec != "popularity":
            raise FitError("it diverged")
        return fitted(spec, liked, times)

    for module in (_candidates, _race):
        monkeypatch.setattr(module, "fitted", fitted_or_not)
    model = make_ranker("auto", budget=60.0).fit(likes, show_progress=False)
    assert model.part_names_ == ["popularity"]


@pytest.mark.thorough
def test_the_blend_has_figures_of_its_own(likes, clock):
    model = make_ranker("auto", rounds=1).fit(likes, show_progress=False)
    figures = model.validation_
    assert list(figures)[-1] == auto.BLEND and len(figures) == len(SPECS) + 1
    assert figures[auto.BLEND] == figures[model.part_names_[0]]


@pytest.mark.thorough
def test_those_left_behind_come_where_time_is_left(likes, clock):
    """One slow fit makes the race halve; without it there is time for nearly all."""
    clock.cost = dict.fromkeys(SPECS, 1e-6) | {"cf-komd": 1e-3}
    model = make_ranker("auto", budget=60.0).fit(likes, show_progress=False)
    whole = max(size for _, size in clock.fits)
    assert len({spec for spec, size in clock.fits if size > 0.7 * whole}) >= len(SPECS) - 1
    assert not any("it was number" in why for why in model.dropped_.values())


def test_where_few_likes_are_hidden_kept_parts_need_no_time_to_be_fitted_again(likes):
    half = likes[:400].copy()
    many, few = (
        Task(likes[400:], None, np.arange(400), half, 0),
        Task(likes, None, np.arange(3), likes[:3], 0),
    )
    assert few.hidden_share() == pytest.approx(likes[:3].nnz / (likes.nnz + likes[:3].nnz))
    assert few.hidden_share() < _race.FEW < many.hidden_share()
    found = _candidates.Result(seconds={"kept": 4.0, "gone": 2.0}, models={"kept": None})
    assert _race.refitting(few, found) == pytest.approx(_race.MARGIN * 2.0)
    assert _race.refitting(few, found, [100.0]) == pytest.approx(_race.MARGIN * 2.0)
    assert _race.refitting(many, found) == pytest.approx(_race.MARGIN * _race.KEPT * 3.0)
    assert _race.refitting(many, found, [9.0]) == pytest.approx(_race.MARGIN * _race.KEPT * 5.0)
    assert _race.refitting(many, _candidates.Result()) == 0.0


def test_parts_that_were_not_kept_are_fitted_again_first(likes, clock, monkeypatch):
    """Where there is no time to fit them again, kept ones stay as they are; others would be lost."""
    clock.cost = dict.fromkeys(SPECS, 1e-5)
    monkeypatch.setattr(_race, "ROOM", 0.0)
    free = make_ranker("auto", budget=1000.0).fit(likes, show_progress=False)
    assert len(free.parts) > 1
    found = _candidates.Result(
        seconds=dict.fromkeys(free.part_names_, 1.0), models={free.part_names_[0]: free.parts[0]}
    )
    weights = dict(zip(free.part_names_, free.part_weights_, strict=True))
    clock.fits.clear()
    free._fitted_again(weights, found, (likes, None, None), Clock(1000.0))
    assert [spec for spec, _ in clock.fits][-1] == free.part_names_[0]
    assert len(clock.fits) == len(weights)


@pytest.mark.thorough
def test_a_sample_that_takes_much_of_what_is_left_is_not_taken(likes, clock, monkeypatch):
    def sizes():
        clock.fits.clear()
        assert make_ranker("auto", budget=30.0).fit(likes, show_progress=False).parts
        return {size for _, size in clock.fits}

    clock.cost = dict.fromkeys(SPECS, 8e-5)
    fewer = sizes()
    monkeypatch.setattr(_race, "SAMPLING", np.inf)
    more = sizes()
    assert fewer < more and len(more) == len(fewer) + 1
