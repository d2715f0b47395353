"""Which of EASE's options exclude each other."""

import numpy as np
import pytest

from recsys import InputError, make_ranker


def test_the_whole_inverse_is_kept_of_the_whole_model_only(liked):
    with pytest.raises(InputError, match="keep_inverse is for the whole inverse"):
        make_ranker("ease", keep_inverse=True, top_k=3)
    with pytest.raises(InputError, match="keep_inverse needs the whole inverse of .* does not fit"):
        make_ranker("ease", keep_inverse=True, memory=1000).fit(liked, show_progress=False)
    with pytest.raises(InputError, match="keep_inverse updates an inverse of rows that count alike"):
        make_ranker("ease", keep_inverse=True, votes=0.5).fit(liked, show_progress=False)
    thin = make_ranker("ease", top_k=3).fit(liked, show_progress=False)
    assert ((np.asarray(thin.weights_) != 0).sum(axis=0) <= 3).all()
