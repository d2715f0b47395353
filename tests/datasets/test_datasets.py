import gzip
import hashlib
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from recsys import DatasetError
from recsys.data import split
from recsys.datasets import fetch as datasets
from recsys.datasets import list_datasets, load_dataset
from recsys.datasets.public import sample_folder
from tests.synthetic import planted_catalogue

SIZES = {
    "movielens": (943, 1682, 100_000),
    "filmtrust": (1508, 2071, 35_494),
    "bookcrossing": (2802, 5892, 70_593),
    "ciaodvd": (17_615, 16_121, 72_345),
    "movielens-1m": (6040, 3706, 1_000_209),
    "movielens-latest-small": (610, 9724, 100_836),
    "jester": (24_430, 100, 1_031_893),
}


LARGE = ("movielens-1m", "jester")  # seconds to read: in the slow tier


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in LARGE)) for name in SIZES]
)
def test_real_data_have_their_published_sizes(name, data_dir):
    try:
        data = load_dataset(name, data_dir)
    except DatasetError:
        pytest.skip(f"{name} is not in the folder")
    assert (data.n_users, data.n_items, len(data.users)) == SIZES[name]


def fold_of(data):
    return next(split(data, "published")).test


def test_jester_is_binarised_before_its_users_are_chosen(tmp_path):
    """Three likes among 95 ratings stay; 90 likes, or none, go; ids are places in the file."""
    cells = {1: [5.0] * 89 + [99.0] * 11, 2: [5.0] * 90 + [99.0] * 10, 3: [-5.0] * 100}
    cells[4] = [-1.0] * 92 + [3.0, 0.5, 9.9] + [99.0] * 5
    cells[5] = [0.0, 2.5] + [99.0] * 98
    lines = [",".join(map(str, [sum(c != 99 for c in row), *row])) for row in cells.values()]
    with gzip.open(tmp_path / "jester-data-1.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    data = load_dataset("jester", tmp_path)
    liked = {}
    for u, i, r in zip(data.users, data.items, data.rating, strict=True):
        liked.setdefault(data.user_ids[u], []).append((int(data.item_ids[i]), r))
    assert liked == {
        "1": [(j, 5.0) for j in range(1, 90)],
        "4": [(93, 3.0), (94, 0.5), (95, 9.9)],
        "5": [(2, 2.5)],
    }
    assert data.time is None and "1 users who like 90 jokes or more and 1 who like none" in data.notes[0]


def test_movielens_has_titles_genres_users_and_times(movielens):
    assert "Toy Story (1995)" in movielens.titles
    row = movielens.item_features.loc["1"]
    assert row["genres"] == "Animation|Children's|Comedy" and row["year"] == "1995"
    assert movielens.user_features.loc["1"]["occupation"] == "technician"
    assert movielens.time.min() > 8e8 and movielens.name == "movielens"


def test_the_sample_is_what_the_generator_makes(tmp_path):
    planted = planted_catalogue()
    data = planted.interactions
    tables = {
        "interactions": pd.DataFrame(
            {
                "user_id": data.user_ids[data.users],
                "item_id": data.item_ids[data.items],
                "timestamp": data.time.astype(np.int64),
            }
        ),
        "items": data.item_features.sort_index().reset_index(),
        "users": data.user_features.sort_index().reset_index(),
        "rules": pd.DataFrame({"user_id": data.user_ids, "rule": planted.rules}),
    }
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False, lineterminator="\n")
    for path in sample_folder().iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name
    data = load_dataset("sample")
    assert data.n_users == 400 and data.item_features is not None and data.user_features is not None


def test_planted_rules_hold_for_the_share_they_should():
    planted = planted_catalogue(300, 400, off_rule=0.3, seed=1)
    data, inside, total = planted.interactions, 0, 0
    genres = data.item_features["genres"].str.split("|").to_list()
    decade = [f"{int(year) // 10 * 10}s" for year in data.item_features["year"]]
    for u in range(data.n_users):
        clauses = [clause.split(" & ") for clause in planted.rules[u].split(" | ")]
        for i in data.items[data.users == u]:
            has = {*genres[i], decade[i]}
            inside += any(all(name in has for name in clause) for clause in clauses)
            total += 1
    assert planted.off_rule == pytest.approx(0.3, abs=0.02)
    assert inside / total >= 1 - planted.off_rule
    counts = np.sort(np.bincount(data.items))[::-1]
    assert counts[:40].sum() > 0.25 * counts.sum()  # a tenth of the items has a quarter of everything


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "CON", "a/b", "", "movielens\n", "Movielens", None, "movielns"]
)
def test_unknown_names_are_refused(name):
    with pytest.raises(DatasetError, match="unknown dataset .*(did you mean|known)"):
        load_dataset(name)


def test_absent_and_offline_says_where_to_put_which_file(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("RECSYS_DATA", raising=False)
    with pytest.raises(
        DatasetError,
        match=r"bookcrossing has no public download: put interactions.csv.gz in bookcrossing/ under --data-dir",
    ):
        load_dataset("bookcrossing", tmp_path)
    with pytest.raises(DatasetError, match="data folder .* does not exist"):
        load_dataset("movielens", tmp_path / "absent")


def test_every_dataset_can_be_loaded_or_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setattr(
        datasets, "_download", lambda dataset: (_ for _ in ()).throw(DatasetError(dataset.place))
    )
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("RECSYS_DATA", raising=False)
    for name in set(list_datasets()) - {"sample"}:
        with pytest.raises(DatasetError, match=r"in [a-z0-9-]+/ under --data-dir"):
            load_dataset(name)


ROWS = "".join(f"{u}\t{i}\t3\t{100 + i}\n" for u in range(1, 5) for i in range(1, 4))


def archive(path, members=None):
    with zipfile.ZipFile(path, "w") as package:
        for name, text in (members or {"ml-100k/u.data": ROWS}).items():
            package.writestr(name, text)
    return path


def test_an_official_archive_in_the_folder_is_recognised(tmp_path):
    archive(tmp_path / "ml-100k.zip")
    assert load_dataset("movielens", tmp_path).n_users == 4


def test_archives_with_escaping_names_write_nothing_outside(tmp_path):
    folder = tmp_path / "in" / "data"
    folder.mkdir(parents=True)
    archive(
        folder / "ml-100k.zip", {"../../evil": "x", "/abs": "x", "..\\up": "x", "ml-100k/u.data": ROWS}
    )
    load_dataset("movielens", folder)
    assert {p.name for p in tmp_path.rglob("*") if p.is_file()} == {"ml-100k.zip", "u.data"}
    archive(folder / "ml-1m.zip", {"../../evil": "x"})
    with pytest.raises(DatasetError, match="does not contain ratings.dat"):
        load_dataset("movielens-1m", folder)
    (folder / "ml-1m.zip").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(DatasetError, match="damaged zip"):
        load_dataset("movielens-1m", folder)


def test_an_archive_is_unpacked_by_many_at_once(tmp_path):
    """All of them find whole files, whoever wrote them."""
    rows = "".join(f"{u}\t{i}\t3\t{100 + i}\n" for u in range(1, 41) for i in range(1, 41))
    for k in range(10):
        folder, ready = tmp_path / str(k), threading.Barrier(8)
        folder.mkdir()
        archive(folder / "ml-100k.zip", {"ml-100k/u.data": rows})

        def load(_, folder=folder, ready=ready):
            ready.wait(timeout=30)
            return len(load_dataset("movielens", folder).users)

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(load, range(8))) == {1600}
        assert {p.name for p in folder.iterdir()} == {"ml-100k.zip", "u.data"}


def test_what_cannot_be_unpacked_is_a_fault_of_the_dataset(tmp_path):
    path = tmp_path / "ml-100k.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as package:
        package.writestr("ml-100k/u.data", "1\t1\t3\t100\n" * 3_000_000)
    with pytest.raises(DatasetError, match="unpack to more than 30,000,000"):
        load_dataset("movielens", tmp_path)
    content = archive(path).read_bytes()
    path.write_bytes(content[:60] + b"9" + content[61:])
    with pytest.raises(DatasetError, match="damaged zip"):
        load_dataset("movielens", tmp_path)
    archive(path)
    (tmp_path / "u.data").mkdir()
    with pytest.raises(DatasetError, match="is a folder"):
        load_dataset("movielens", tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"ml-100k.zip", "u.data"}


class Server(BaseHTTPRequestHandler):
    def __init__(self, content, *args):
        self.content = content
        super().__init__(*args)

    def do_GET(self):
        if "/absent" in self.path:
            self.send_error(404)
            return
        self.send_response(200)
        body = self.content[:50] if "/cut" in self.path else self.content
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    content = archive(tmp_path / "served.zip").read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, content))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("RECSYS_DATA", raising=False)
    entry = datasets.DATASETS.get("movielens")

    def use(path, sha256=None):
        from dataclasses import replace

        url = f"http://127.0.0.1:{server.server_port}/{path}/ml-100k.zip"
        changed = replace(entry, url=url, sha256=sha256 or hashlib.sha256(content).hexdigest())
        monkeypatch.setitem(datasets.DATASETS._entries, "movielens", changed)

    yield use
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("path", ["absent", "cut"])
def test_a_download_that_fails_leaves_nothing(path, served, tmp_path):
    served(path)
    with pytest.raises(DatasetError, match="could not be downloaded"):
        load_dataset("movielens")
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_what_is_downloaded_is_kept(served):
    served("good")
    assert load_dataset("movielens").n_users == 4
    served("absent")
    assert load_dataset("movielens").n_users == 4


def test_a_wrong_checksum_is_refused_and_removed_and_the_next_run_is_clean(served, tmp_path):
    served("good", sha256="0" * 64)
    with pytest.raises(DatasetError, match="checksum is wrong.*put u.data"):
        load_dataset("movielens")
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    served("good")
    assert load_dataset("movielens").n_users == 4


def test_without_a_network_one_line_offers_the_sample(served, monkeypatch, capfd):
    import socket

    from recsys import cli

    def nowhere(host, *given, **named):
        raise socket.gaierror(-2, "Name or service not known")

    served("good")
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    assert cli.call(["evaluate", "--dataset", "movielens"]) == 2
    out, err = capfd.readouterr()
    assert out == "" and len(err.splitlines()) == 1, err
    assert err.startswith("recsys: movielens is not on disk and could not be downloaded")
    assert "under --data-dir, or use the dataset sample" in err


def test_what_a_killed_download_leaves_is_not_used(served, tmp_path):
    folder = tmp_path / "cache" / "ml-100k"
    folder.mkdir(parents=True)
    (folder / "tmpabc123").write_bytes(b"half")
    served("good")
    assert load_dataset("movielens").n_users == 4


def test_a_new_dataset_is_one_decorated_reader(monkeypatch, tmp_path):
    from recsys.data import Interactions

    monkeypatch.setattr(datasets.DATASETS, "_entries", dict(datasets.DATASETS._entries))

    @datasets.dataset("pairs", "Pairs", files=("pairs.csv",), or_files=(("pairs.tsv",),))
    def read(folder):
        return Interactions.from_frame(next(folder.glob("pairs.?sv")))

    with pytest.raises(DatasetError, match=r"put pairs.csv in pairs/ under --data-dir"):
        load_dataset("pairs", tmp_path)
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "pairs.tsv").write_text("user\titem\na\tx\nb\tx\n")
    assert load_dataset("pairs", tmp_path).n_users == 2 and "pairs" in list_datasets()
