"""What property tests draw from: small matrices that hit the edges often."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from recsys.data import Interactions

# Parameters that fit vectors over two variables, where the defaults do not.
SMALL_KERNELS = {"mdnf": {"d": 1, "c": 2}, "mdnf-sum": {"d": 2, "c": 2}}


@st.composite
def liked_matrices(draw, max_users=8, max_items=8, min_users=1, min_items=1, some=True):
    """Binary user × item CSR; empty and full rows and columns are common."""
    users = draw(st.integers(min_users, max_users))
    items = draw(st.integers(min_items, max_items))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dense = rng.random((users, items)) < draw(st.sampled_from([0.1, 0.4, 0.7, 1.0]))
    if draw(st.booleans()):
        dense[rng.integers(users)] = draw(st.booleans())
    if draw(st.booleans()):
        dense[:, rng.integers(items)] = draw(st.booleans())
    if some and not dense.any():
        dense[rng.integers(users), rng.integers(items)] = True
    return sp.csr_matrix(dense, dtype=np.float32)


@st.composite
def interactions(draw, timed=None):
    """Rows in any order, of ids as text; with times often, which are tied and of unknown age often.

    Some users have one item, some everything late; some ids have no row, as inside a training part,
    and some rows are a test half often.
    """
    pairs = draw(
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=4, max_size=60, unique=True)
    )
    users, items = np.array(pairs).T
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    time = None
    if draw(st.booleans()) if timed is None else timed:
        values = draw(st.sampled_from([[1.0, 2.0, 3.5], [-np.inf, -2.0, 0.0, 7.0], list(range(100))]))
        time = rng.choice(np.array(values, dtype=float), len(pairs))
        if draw(st.booleans()):
            time[users == users[0]] = values[-1]
    held = rng.random(len(pairs)) < 0.4 if draw(st.booleans()) else None
    names = np.array([f"{kind}{k}" for kind in "ui" for k in range(10)], dtype=object).reshape(2, 10)
    if draw(st.booleans()):  # as read
        data = Interactions.from_ids(names[0][users], names[1][items], time=time)
        return replace(data, held_out=held)
    return Interactions(
        users.astype(np.int32),
        items.astype(np.int32),
        names[0][:7],
        names[1],
        time=time,
        held_out=held,
    )
