"""Small model files of each released format: `python -m tests.golden.formats` writes those of this version.

A file is `formats/VERSION-NAME.recsys`, and what it scored when it was written is in `formats/VERSION.json`. Files of a
release are never written again; before it is tagged, `--again` does.
"""

import json
import sys
from pathlib import Path

import numpy as np

import recsys
from recsys import make_ranker
from recsys.links import make_link_predictor
from recsys.utils import model_file
from tests.links.networks import NETWORKS, layers_of, write_network
from tests.reference import links as reference

FOLDER = Path(__file__).with_name("formats")
# One of each kind of file: dense, sparse, counts, parts, sequences, factors, rows of users.
MODELS = {
    "popularity": ("popularity", {}),
    "ease": ("ease", {"regularization": 10.0, "keep_inverse": True}),
    "msdw": ("msdw", {}),
    "slim": ("slim", {"l1": 0.01}),
    "slist": ("slist", {}),
    "cf-komd": ("cf-komd", {"kernel": "mc", "degree": 2}),
    "ecf-omd": ("ecf-omd", {}),
    "cf-gram": ("cf-gram", {}),
    "fuzzy-komd": ("fuzzy-komd", {}),
    "als": ("als", {"factors": 3, "iterations": 2}),
    "fm": ("fm", {"factors": 2, "iterations": 2}),
    "all-subsets": ("all-subsets", {"factors": 2, "iterations": 2}),
    "random-features": ("random-features", {"n_components": 4}),
    "blend": ("blend", {"models": "ease+popularity"}),
    "sparse-fm": ("sparse-fm", {"factors": 2, "iterations": 2}),
    "bayesian-fm": ("bayesian-fm", {"factors": 2, "iterations": 3, "draws": 2}),
    "lmf": ("lmf", {"factors": 3, "iterations": 2}),
    "graph-filter": ("graph-filter", {"factors": 3}),
    "cosine": ("cosine", {}),
    "user-knn": ("user-knn", {"top_k": 5}),
    "tifu-knn": ("tifu-knn", {"top_k": 5}),
}

# Link predictors: terms, shared features, columns of ones, sparse objects; networks are written without PyTorch.
SMALL = {"n_components": 2, "max_iter": 3}
LINK_MODELS = {
    "link-pairnet": ("pairnet", {"degree": 4, "similarity": True, **SMALL}),
    "link-fm": ("fm", {"degree": 3, "fit_lower": "augment", **SMALL}),
    "link-pair-svm": ("pair-svm", {}),
}
LINK_NETWORKS = {f"link-{name}": name for name in NETWORKS}


def liked():
    """Return 20 users × 12 items, the same on every version."""
    rows = [[(7 * u + 5 * i + u * i) % 3 == 0 and i != u % 5 for i in range(12)] for u in range(20)]
    return np.array(rows, dtype=np.float32)


def scored(ranker):
    """Return what is compared: the scores of three users' rows."""
    rows = liked()[:3]
    scores = np.stack([ranker.scores(u, rows[[u]])[0] for u in range(3)])
    return [[float(f"{value:.6g}") for value in row] for row in scores]


def objects():
    """Return 12 objects of one kind by 5 features, and pairs of them with labels."""
    X = np.array([[(3 * i + j * j + i * j) % 4 - 1.0 for j in range(5)] for i in range(12)])
    pairs = np.array([(i, j) for i in range(12) for j in range(i + 1, 12)])
    return X, pairs, pairs.sum(axis=1) % 3 == 0


def link_scored(model):
    """Return what is compared of a link predictor."""
    X, pairs, _ = objects()
    return [float(f"{value:.6g}") for value in model.decision_function(X, None, pairs[:6])]


def network_scored(manifest, arrays):
    """Return the same of a network, by enumeration."""
    X, pairs, _ = objects()
    tables, dense = layers_of(arrays)
    kind, both = manifest["link_predictor"], manifest["state"]["symmetric_"]
    scores = [reference.network(kind, tables, dense, X[i], X[j], both) for i, j in pairs[:6]]
    return [float(f"{value:.6g}") for value in scores]


def write_links(version):
    """Write the files of link predictors, and return what they score."""
    X, pairs, labels = objects()
    out = {}
    for name, (kind, params) in LINK_MODELS.items():
        model = make_link_predictor(kind, **params).fit(X, None, pairs, labels)
        model.save(FOLDER / f"{version}-{name}.recsys")
        out[name] = link_scored(model)
    for name, kind in LINK_NETWORKS.items():
        both = kind == "pair-dnn"
        path = FOLDER / f"{version}-{name}.recsys"
        write_network(path, kind, (5, 5), degree=4, symmetric=both)
        out[name] = network_scored(*model_file.read(path))
    return out


def table():
    """Return the likes as a table with text ids and titles of the items."""
    import pandas as pd

    users, items = np.nonzero(liked())
    likes = pd.DataFrame({"user": [f"user {u}" for u in users], "item": [f"item {i}" for i in items]})
    films = pd.DataFrame(
        {"item": [f"item {i}" for i in range(12)], "title": [f"Film {i}" for i in range(12)]}
    )
    return likes, films


def write(again=False):
    """Write the files of this version, unless they are there."""
    version = recsys.__version__
    told = FOLDER / f"{version}.json"
    assert again or not told.exists(), (
        f"{told.name} is there: files of a release are never written again"
    )
    FOLDER.mkdir(exist_ok=True)
    out = {}
    for name, (ranker, params) in MODELS.items():
        model = make_ranker(ranker, **params).fit(liked(), show_progress=False)
        model.save(FOLDER / f"{version}-{name}.recsys")
        out[name] = scored(model)
    out |= write_links(version)
    likes, films = table()
    data = recsys.Interactions.from_frame(likes, user="user", item="item", items=films)
    recommender = recsys.Recommender("ease").fit(data)
    recommender.save(FOLDER / f"{version}-catalogue.recsys")
    out["catalogue"] = recommender.recommend("user 3", n=3, why=False)["item"].tolist()
    told.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write("--again" in sys.argv[1:])
