"""Files of networks, written without PyTorch: what docs/format.md says is enough."""

import numpy as np

from recsys.utils import model_file

WIDTH, HIDDEN = 3, 4
NETWORKS = ("pair-dnn", "honfm", "concat-dnn")


def drawn(name, widths, degree=2, layers=1, symmetric=False, seed=0):
    """Return the manifest and the arrays of a network with normal weights."""
    rng = np.random.default_rng(seed)
    params = {"n_components": WIDTH, "hidden": HIDDEN, "layers": layers}
    if name != "concat-dnn":
        params["degree"] = degree
    orders = 1 if name == "concat-dnn" else degree - 1
    sizes = [WIDTH, *[HIDDEN] * layers, 1]
    arrays = {f"tables_.{k}": rng.normal(size=(widths[k % 2], WIDTH)) for k in range(2 * orders)}
    for k in range(layers + 1):
        arrays[f"weights_.{k}"] = rng.normal(size=(sizes[k + 1], sizes[k]))
        arrays[f"biases_.{k}"] = rng.normal(size=sizes[k + 1])
    state = {
        "classes_": [[0, 1], "int64"],
        "n_features_": list(widths),
        "symmetric_": symmetric,
    }
    manifest = {"link_predictor": name, "params": params, "state": state}
    return manifest, {key: array.astype(np.float32) for key, array in arrays.items()}


def write_network(path, name, widths, **options):
    """Write such a network, and return its arrays."""
    manifest, arrays = drawn(name, widths, **options)
    model_file.write(path, manifest, arrays)
    return arrays


def layers_of(arrays):
    """Return the tables, and weights and biases of each layer, of a file's arrays in float64."""
    numbers = {key: array.astype(float) for key, array in arrays.items()}
    count = {kind: sum(key.startswith(f"{kind}_.") for key in arrays) for kind in ("tables", "weights")}
    tables = [numbers[f"tables_.{k}"] for k in range(count["tables"])]
    dense = [(numbers[f"weights_.{k}"], numbers[f"biases_.{k}"]) for k in range(count["weights"])]
    return tables, dense
