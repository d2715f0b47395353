# %% [markdown]
# # Boolean kernels and the rules behind them
#
# A hard-margin machine on κ*, and the monotone DNF it follows (chapter 7).

# %%
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from recsys.datasets.categorical import load_table
from recsys.explain import agreement, search_rule, signed_weights
from recsys.kernel_machines import GRAM, KOMD, radius_margin_ratio
from recsys.kernels import make_kernel
from recsys.kernels.propositional import parse

table = load_table("tic-tac-toe")
X, held, y, truth = train_test_split(table.X, table.y, test_size=0.3, random_state=0, stratify=table.y)
machine = KOMD(regularization=0.0, kernel="mdnf-sum", kernel_params={"d": 10, "c": 5}).fit(X, y)
print(f"machine: {np.mean(machine.predict(held) == truth):.3f} of the held-out boards")

# %%
signed = signed_weights(machine, len(y))
found = search_rule(X, signed, names=table.names)
right = agreement(found.rule, held, truth == 1)
print(f"weight {found.weight:.3f} of at most {found.bound:.3f}, accuracy {right:.3f}")
assert right == 1.0
print(str(found.rule).replace(" ∨ ", "\n∨ "))

# %% [markdown]
# The radius-margin ratio chooses among kernels without validation.

# %%
kernels = {
    "linear": make_kernel("linear"),
    "mC 2": make_kernel("mc", degree=2),
    "mC 3": make_kernel("mc", degree=3),
    "a ⊕ b": parse("a ^ b"),
}
ratios = {
    name: radius_margin_ratio(kernel(X, normalize=True), y, identity=0.01)
    for name, kernel in kernels.items()
}
pd.Series(ratios, name="ratio").sort_values()

# %% [markdown]
# GRAM learns the combination with the smallest ratio.

# %%
gram = GRAM().fit(X, y)
print(
    f"ratio {gram.ratios_[0]:.4f} → {gram.ratio_:.4f} in {gram.n_iter_} steps, stopped by {gram.stopped_}"
)
pd.Series(gram.weights_, index=[*range(1, len(gram.weights_)), "identity"], name="weight").round(3)
