"""Files with a line a user, and folders with two of them."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recsys import InputError
from recsys.data import Interactions, read_interactions
from recsys.data.profiles import is_profiles, read_profiles


def pairs(data, held=None):
    """The pairs of ids, those held out or the others where `held` says which."""
    keep = np.ones(len(data.users), dtype=bool) if held is None else data.held_out == held
    return set(zip(data.user_ids[data.users[keep]], data.item_ids[data.items[keep]], strict=True))


def folder(path, **files):
    for name, text in files.items():
        (path / f"{name}.txt").write_text(text)
    return path


LINES = st.lists(
    st.tuples(st.integers(0, 30), st.lists(st.integers(0, 12), max_size=6)),
    min_size=1, max_size=12, unique_by=lambda line: line[0],
).filter(lambda lines: any(items for _, items in lines))  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    LINES, st.sampled_from(["\n", "\r\n", " \n", "\n\n"]), st.booleans(), st.booleans(),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)  # fmt: skip
def test_a_file_has_the_pairs_of_its_lines(tmp_path_factory, lines, end, packed, last, encoding):
    path = tmp_path_factory.mktemp("p") / ("likes.txt.gz" if packed else "likes.txt")
    text = end.join(" ".join(map(str, (user, *items))) for user, items in lines) + end * last
    path.write_bytes(gzip.compress(text.encode(encoding)) if packed else text.encode(encoding))
    assert is_profiles(path)
    data = read_interactions(path)
    assert pairs(data) == {(str(user), str(item)) for user, items in lines for item in items}
    assert read_profiles(path).empty == sum(not items for _, items in lines)
    assert data.n_users == sum(bool(items) for _, items in lines) and data.held_out is None
    assert data.name == path.name and data.columns.user == "user"
    repeated = sum(len(items) - len(set(items)) for _, items in lines)
    assert any("repeated" in note for note in data.notes) == (repeated > 0)
    assert any("without items left out" in note for note in data.notes) == any(not i for _, i in lines)


def test_a_folder_is_both_files_with_the_test_half_marked(tmp_path):
    data = read_interactions(folder(tmp_path, train="0 1 2\n1 2\n2 1\n", test="0 3\n1 1 3\n7 1 2\n"))
    assert pairs(data, False) == {("0", "1"), ("0", "2"), ("1", "2"), ("2", "1")}
    assert pairs(data, True) == {("0", "3"), ("1", "1"), ("1", "3")}
    assert data.name == tmp_path.name
    assert data.notes == (
        "test half: 3 pairs of 2 users, tested by the protocol published",
        "test half: 1 user not among the interactions left out, with 2 pairs",
        "test half: 1 item that only it has: ranked, too",
        "protocols other than published, and fit, take the pairs of test.txt as any",
    )
    assert pairs(Interactions.from_frame(tmp_path)) == pairs(data)
    folder(tmp_path, valid="0 9\n")
    assert read_interactions(tmp_path).notes[-1] == "valid.txt is not read"
    (tmp_path / "test.txt").unlink()
    alone = read_interactions(tmp_path, name="mine")
    assert alone.held_out is None and alone.name == "mine" and pairs(alone) == pairs(data, False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1 2 3\n2 x 4\n", r"line 2: 'x' is not an integer; each line is the user and then the user's"),
        ("1 2\n\n2\t3\n", r"line 3: '2\\t3' is not an integer"),
        ("1 2 3.5\n", "line 1: '3.5' is not an integer"),
        (
            "1 5 3\n2 5 4\n1 6 3\n",
            "line 3: user 1 has line 1 already; .* Give rows of user, item and rati",
        ),
        ("1\n2\n", "no interactions; each line is the user"),
        ("", "no interactions"),
    ],
)
def test_what_is_no_profile_is_refused_by_line(tmp_path, text, told):
    path = tmp_path / "train.txt"
    path.write_text(text)
    for place in (path, tmp_path):
        if place is tmp_path or is_profiles(path):
            with pytest.raises(InputError, match=told) as caught:
                read_interactions(place)
            assert "\n" not in str(caught.value) and "train.txt" in str(caught.value)


def test_tables_stay_tables(tmp_path):
    """What has a header, another ending, other separators, or names for its columns."""
    for name, text in (
        ("a.txt", "user_id item_id\n"), ("b.csv", "1 2 3\n"), ("c.txt", "1\t2\t3\n"), ("d.txt", "1,2\n"),
        ("e.txt", "1 2 3.5\n"), ("f.txt", "\n"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        assert not is_profiles(tmp_path / name), name
    (tmp_path / "g.txt").write_text("1 2 3\n1 3 4\n")
    data = read_interactions(tmp_path / "g.txt", names=("user_id", "item_id", "rating"), delimiter=" ")
    assert data.rating.tolist() == [3, 4]


def test_columns_cannot_be_named_where_there_are_none(tmp_path):
    folder(tmp_path, train="0 1 2\n")
    for place in (tmp_path, tmp_path / "train.txt"):
        with pytest.raises(InputError, match="no columns: leave user and min_rating out"):
            read_interactions(place, user="who", min_rating=3)


def test_a_folder_needs_a_training_file(tmp_path):
    folder(tmp_path, test="0 1\n")
    with pytest.raises(InputError, match=r"is a folder; name a file, or a folder with train.txt and"):
        read_interactions(tmp_path)
    (tmp_path / "train.txt").mkdir()
    with pytest.raises(InputError, match=r"train.txt is a folder"):
        read_interactions(tmp_path)


def test_blanks_at_the_ends_of_the_first_line_change_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("0 0 1 2\n1 1 2\n")
    (tmp_path / "b.txt").write_text(" 0 0 1 2\t \n1 1 2\n")
    one, other = (read_interactions(tmp_path / f"{name}.txt") for name in "ab")
    np.testing.assert_array_equal(one.matrix.toarray(), other.matrix.toarray())
