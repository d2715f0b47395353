"""What is kept for all sessions: by key, by its size, and of one kind."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("streamlit")

from app.store import Store
from tests.app.page_runs import box, open_page

TABLE = b"user_id,item_id\na,x\na,y\nb,x\nb,z\n"


class Slow:
    """What `Store` does, by a list of all that is kept, the one asked for longest ago first."""

    def __init__(self, most):
        self.most, self.kept = most, []

    def keep(self, key, value, size):
        self.kept = [one for one in self.kept if one[0] != key] + [(key, value, size)]
        while sum(size for _, _, size in self.kept) > self.most and len(self.kept) > 1:
            self.kept = self.kept[1:]

    def find(self, key):
        for one in self.kept:
            if one[0] == key:
                self.kept = [other for other in self.kept if other is not one] + [one]
                return one[1]
        return None


@given(
    st.integers(0, 30),
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 20) | st.none()), max_size=40),
)
def test_what_was_asked_for_longest_ago_is_dropped_first(most, steps):
    fast, slow = Store(most), Slow(most)
    for number, (key, size) in enumerate(steps):
        if size is None:
            assert fast.find(key) == slow.find(key)
        else:
            fast.keep(key, number, size)
            slow.keep(key, number, size)
    for key in "abcde":
        assert fast.find(key) == slow.find(key)


def test_the_latest_is_kept_whatever_its_size():
    kept = Store(most=1)
    kept.keep("a", "large", 10**12)
    assert kept.find("a") == "large" and kept.find("b") is None
    kept.keep("b", "larger", 10**13)
    assert kept.find("a") is None and kept.find("b") == "larger"


def test_threads_share_a_store():
    kept, wrong = Store(most=50), []

    def work(mine):
        try:
            for k in range(2000):
                kept.keep(f"{mine} {k % 30}", (mine, k), 3)
                found = kept.find(f"{mine} {(k * 7) % 30}")
                if found is not None and found[0] != mine:
                    wrong.append(found)
        except Exception as error:  # the store was broken
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(kept._kept) == 16


def test_tokens_follow_from_name_and_content():
    from app import state

    one = state.keep_file("a.csv", b"1")
    assert one == state.keep_file("a.csv", b"1") and len(one) == 24
    assert len({one, state.keep_file("b.csv", b"1"), state.keep_file("a.csv", b"2")}) == 3
    assert state.files().find(one) == (one, "a.csv", b"1")


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["recommend", "compare", "data"])
def test_the_token_of_a_file_is_no_dataset(page):
    """It crashed the page: bytes have no ratings."""
    from app import state

    token = state.keep_file("likes.csv", TABLE)
    assert state.files().find(token) is not None
    at = open_page(page, {"data": state.UPLOAD + token})
    assert at.session_state["session"].get("data") == "sample" == box(at, "Dataset").value


def test_the_name_of_a_table_is_no_file():
    from app import state
    from app.uploads import UploadedTable
    from recsys.datasets import load_dataset

    name = state.keep_table(UploadedTable(load_dataset("sample")), "a table")
    for token in (name, name.removeprefix(state.UPLOAD)):
        at = open_page("data", {"data.file": token})
        assert "The uploaded file is no longer here" in at.warning[0].value
