"""What property tests draw from: small matrices that hit the edges often."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

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
