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

FOLDER = Path(__file__).with_name("formats")
# One of each kind of file: dense, sparse, counts, parts, features, sequences, factors; the last with a catalogue.
MODELS = {
    "popularity": ("popularity", {}),
    "ease": ("ease", {"regularization": 10.0, "keep_inverse": True}),
    "msdw": ("msdw", {}),
    "slim": ("slim", {"l1": 0.01}),
    "slist": ("slist", {}),
    "cf-komd": ("cf-komd", {"kernel": "mc", "degree": 2}),
    "ecf-omd": ("ecf-omd", {}),
    "cf-gram": ("cf-gram", {}),
    "als": ("als", {"factors": 3, "iterations": 2}),
    "fm": ("fm", {"factors": 2, "iterations": 2}),
    "all-subsets": ("all-subsets", {"factors": 2, "iterations": 2}),
    "random-features": ("random-features", {"n_components": 4}),
    "blend": ("blend", {"models": "ease+popularity"}),
}


def liked():
    """Return 20 users × 12 items, the same on every version."""
    rows = [[(7 * u + 5 * i + u * i) % 3 == 0 and i != u % 5 for i in range(12)] for u in range(20)]
    return np.array(rows, dtype=np.float32)


def scored(ranker):
    """Return what is compared: the scores of three users' rows."""
    rows = liked()[:3]
    scores = np.stack([ranker.scores(u, rows[[u]])[0] for u in range(3)])
    return [[float(f"{value:.6g}") for value in row] for row in scores]


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
    likes, films = table()
    data = recsys.Interactions.from_frame(likes, user="user", item="item", items=films)
    recommender = recsys.Recommender("ease").fit(data)
    recommender.save(FOLDER / f"{version}-catalogue.recsys")
    out["catalogue"] = recommender.recommend("user 3", n=3, why=False)["item"].tolist()
    told.write_text(json.dumps(out, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write("--again" in sys.argv[1:])
