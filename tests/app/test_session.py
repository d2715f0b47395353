"""The session: what is chosen, whose it is, and what the address keeps of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("streamlit")

from app.session import BUILT, LONGEST, Session, between, browser_of

ADDRESS = {"data": ["movielens"], "user": ["7"], "model": ["ease"], "dislikes": ["a", "b"], "n": ["12"]}


def again(here):
    """A session that begins from the address of another, as after a reload."""
    return Session({k: v if isinstance(v, list) else [v] for k, v in here.address().items()})


def test_the_address_gives_back_what_was_chosen():
    here = Session()
    chosen = {
        "data": "movielens", "user": "7", "model": "ease", "dislikes": ["a", "b"], "n": 12,
        "variety": 0.3, "years": (1980, 1999), "links.graph": "cora", "every": "all", "open": "",
    }  # fmt: skip
    for name, value in chosen.items():
        here.set(name, value)
    new = again(here)
    defaults = {"n": 10, "variety": 0.0, "years": (1900, 2020), "dislikes": [], "open": "x"}
    for name, value in chosen.items():
        assert new.get(name, defaults.get(name, "")) == value, name
    assert again(new).address() == new.address()


def test_defaults_are_not_in_the_address():
    here = Session()
    here.default("n", 10)
    here.set("n", 10)
    assert here.address() == {}
    here.set("n", 11)
    assert here.address() == {"n": "11"}


def test_what_belongs_to_a_dataset_or_a_person_stays_theirs():
    here = Session()
    here.set("user", "u5")
    here.set("dislikes", ["film"])
    here.set("item", "m1")
    here.set("model", "ease")
    here.set("user", "u6")
    assert here.get("dislikes", []) == [] and here.get("item") == "m1"
    here.set("dislikes", ["other"])
    here.set("mode", BUILT)
    assert here.get("dislikes", []) == []
    here.set("mode", "user")
    here.set("user", "u5")
    assert here.get("dislikes", []) == ["film"]
    here.set("data", "another")
    assert here.get("user") is None and here.get("item") is None and here.get("dislikes", []) == []
    assert here.get("model") == "ease" and "item" not in here.address()
    here.set("data", "sample")
    assert here.get("user") == "u5" and here.address()["dislikes"] == ["film"]


def test_what_an_address_cannot_mean_is_the_default():
    for text in ("1" * 400, "x", "nan", "1e999", "[1]", '"3"', "true", "", "1.5"):
        assert Session({"n": [text]}).get("n", 10) == 10, text
    assert Session({"n": ["12.0"]}).get("n", 10) == 12
    assert Session({"variety": ["1"]}).get("variety", 0.0) == 1.0
    long = "1" * 400
    assert Session({"variety": [long]}).get("variety", 0.5) == 0.5
    assert not between(1, 9)(Session({"years": [long, long]}).get("years", (10, 11)))
    assert Session({"years": ["1990"]}).get("years", (1, 2)) == (1, 2)
    assert Session({"flag": ["1"]}).get("flag", False) is False
    assert Session({"flag": ["true"]}).get("flag", False) is True
    assert Session({"user": ["123"]}).get("user", "u1") == "123"


@given(st.dictionaries(st.text(max_size=9), st.lists(st.text(max_size=9), min_size=1, max_size=3)))
def test_no_address_breaks_a_session(given):
    here = Session(given)
    for name in [*given, "data", "mode", "user"]:
        for default in (None, "", 3, 0.5, True, [], (1, 2), (0.5, 0.75)):
            found = here.get(name, default)
            assert found is None or default is None or type(found) is type(default)
    here.address()


def test_a_long_address_leaves_out_its_longest_part():
    here = Session()
    here.set("model", "ease")
    here.set("likes", [f"item {k}" for k in range(3000)])
    found = here.address()
    assert found == {"model": "ease"} and len(str(found)) < LONGEST


@pytest.mark.parametrize(
    ("value", "ok"),
    [
        (10**400, False),
        (3, True),
        ((2, 5), True),
        ((5, 2), False),
        (9, False),
        (math.nan, False),
        ("3", False),
    ],
)
def test_numbers_that_a_widget_takes(value, ok):
    assert between(1, 5)(value) is ok


def test_what_an_address_says_of_a_user_that_is_not_there_is_nobodys():
    here = Session({"user": ["zzz"], "more": ["m0003"], "dislikes": ["m0005", "m0006"]})
    here.choose_user("u0001")  # the first of the data, who is shown instead
    assert here.get("more", []) == [] == here.get("dislikes", []) and here.get("user") == "u0001"


def test_what_was_chosen_for_the_user_who_was_there_first_stays_theirs():
    here = Session({"dislikes": ["m0005"]})
    here.choose_user("u0001")
    assert here.get("dislikes", []) == ["m0005"]
    here.default("user", "u0001")
    assert here.address() == {"dislikes": ["m0005"]}
    new = again(here)
    new.choose_user("u0001")
    new.set("user", "u0002")
    assert new.get("dislikes", []) == []
    new.set("user", "u0001")
    assert new.get("dislikes", []) == ["m0005"]


def test_a_browser_is_known_by_the_token_under_the_mask():
    def cookie(mask, token=b"secret-token-of-16"):
        masked = bytes(byte ^ mask[k % len(mask)] for k, byte in enumerate(token))
        return f"2|{mask.hex()}|{masked.hex()}|1732280000"

    one, two = browser_of(cookie(b"abcd")), browser_of(cookie(b"wxyz"))
    assert one == two != "" and browser_of(cookie(b"abcd", b"another-token-16-b")) != one
    for wrong in ("", None, 3, "2|zz|yy|1", "2|||1", "a|b", "1|2|3|4|5"):
        assert browser_of(wrong) == ""


def test_the_address_is_written_only_where_it_differs(monkeypatch):
    from streamlit.runtime.state import QueryParamsProxy
    from streamlit.testing.v1 import AppTest

    written, before = [], QueryParamsProxy.from_dict
    monkeypatch.setattr(
        QueryParamsProxy, "from_dict", lambda here, new: written.append(new) or before(here, new)
    )
    at = AppTest.from_string("from app.session import write_address; write_address()")
    here = at.session_state["session"] = Session()
    for name, value in {"n": 12, "model": "ease", "dislikes": ["a", "b"], "likes": ["c"]}.items():
        here.set(name, value)
    here.set("more", [])
    there = {"n": ["12"], "model": ["ease"], "dislikes": ["a", "b"], "likes": ["c"]}
    assert not at.run().exception and written == [there]
    assert again(Session(at.query_params)).get("dislikes", []) == ["a", "b"]
    at.run()
    assert len(written) == 1, "nothing has changed"
    here.set("model", "slim")
    at.run()
    assert written[1:] == [there | {"model": ["slim"]}]
    here.forget("dislikes")
    at.run()
    assert len(written) == 3 and "dislikes" not in at.query_params and at.query_params["likes"]
