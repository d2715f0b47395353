import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from recsys.datasets.categorical import encode, read_categorical
from recsys.explain import learn_rule, signed_weights
from recsys.kernels import make_kernel, margin, radius
from recsys.utils.extras import install_hint
from recsys.utils.spec import parse_spec
from tests.reference import rules as reference

TABLE = "colour,size,target\n" + "".join(
    f"{c},{s},{'yes' if c == 'red' and s == 'big' else 'no'}\n"
    for c in ("red", "blue", "green")
    for s in ("big", "small")
    for _ in range(8)
)


@pytest.fixture
def recsys(recsys, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    return recsys


def test_rules_print_the_rule_and_end_with_its_figures(recsys):
    code, out, err = recsys("rules", "--data", "t.csv", "--target", "target", "--positive", "yes")
    assert code == 0 and err == ""
    assert "colour=red ∧ size=big" in out
    assert re.fullmatch(
        r"accuracy 1\.000  fidelity 1\.000  clauses 1  literals 2", out.rstrip().split("\n")[-1]
    )


def test_rules_as_json_and_on_a_generated_table(recsys):
    code, out, _ = recsys("rules", "--data", "monks-1", "--json", "-", "--seed", 3)
    found = json.loads(out)
    assert code == 0 and found["accuracy"] == 1.0 and found["seed"] == 3
    assert ["jacket_color=1"] in found["clauses"]


@pytest.mark.parametrize("seconds", [(), ("--seconds", 0.5)])
def test_rules_say_what_no_rule_weighs_more_than(recsys, seconds):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (80, 3))
    y = np.where(rng.random(80) < 0.15, rng.integers(0, 2, 80), X[:, 0] & X[:, 1])
    lines = ["a,b,c,kind", *(",".join(map(str, [*row, "ny"[k]])) for row, k in zip(X, y, strict=True))]
    Path("noisy.csv").write_text("\n".join(lines))
    asked = ("rules", "--data", "noisy.csv", "--target", "kind", "--positive", "y", "--max-clauses", 2)
    code, out, _ = recsys(*asked, "--max-literals", 2, *seconds)
    assert code == 0
    table = encode(["a", "b", "c", "kind"], [line.split(",") for line in lines[1:]], "kind", ["y"], "t")
    learn, _, known, _ = train_test_split(
        table.X, table.y, test_size=0.3, random_state=0, stratify=table.y
    )
    learned = learn_rule(learn, known, max_clauses=2, max_literals=2, names=table.names)
    signed, cost = signed_weights(learned.machine, len(known)), learned.min_gain
    best = reference.best(learn, signed, 2, 2, cost)
    code, json_out, _ = recsys(*asked, "--max-literals", 2, *seconds, "--json", "-")
    found = json.loads(json_out)
    clauses = [[table.names.index(name) for name in clause] for clause in found["clauses"]]
    assert found["weight"] == pytest.approx(reference.worth(clauses, learn, signed))
    assert found["exact"] and found["gap"] == 0 and found["guarantee"] in out.splitlines()
    assert reference.worth(clauses, learn, signed, cost) == pytest.approx(best)
    assert best == pytest.approx(found["bound"])
    assert found["guarantee"].startswith(
        "No rule of at most 2 clauses of at most 2 literals weighs more"
    )
    assert out.splitlines()[-1].startswith("accuracy ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rules"], "pass --data FILE"),
        (["rules", "--data", "absent.csv"], "absent.csv"),
        (["rules", "--data", "t.csv", "--target", "tarket"], "did you mean 'target'"),
        (["rules", "--data", "t.csv", "--test-size", "1.5"], "--test-size"),
        (["rules", "--data", "t.csv", "--max-clauses", "0"], "--max-clauses"),
        (["rules", "--data", "t.csv", "--seconds", "-1"], "--seconds"),
        (["rules", "--data", "t.csv", "--target", "colour"], "--positive"),
        (["kernels", "--kernel", "mc"], "pass --data FILE"),
        (["kernels", "--select"], "pass --data FILE"),
        (["kernels", "--data", "t.csv", "--kernel", "mc", "--out", "k.npy", "--select"], "--out"),
        (["kernels", "--data", "t.csv", "--curve", "c.png", "--select"], "--curve"),
        (["kernels", "--data", "t.csv", "--kernel", "mcc"], "did you mean 'mc'"),
        (["kernels", "--data", "t.csv", "--kernel", "mc:deg=2"], "did you mean 'degree'"),
        (["kernels", "--data", "t.csv", "--kernel", "mc", "--kernel", "md", "--out", "k.npy"], "once"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(recsys, arguments, message):
    code, out, err = recsys(*arguments)
    assert code == 2 and message in err and len(err.strip().split("\n")) == 1 and out == ""


def test_kernels_are_listed_computed_written_and_drawn(recsys, tmp_path):
    code, out, _ = recsys("kernels")
    assert code == 0 and "mdnf-sum" in out and "degree=2" in out
    code, out, _ = recsys("kernels", "--data", "t.csv", "--kernel", "mc:degree=2", "--out", "k.npy")
    K = np.load(tmp_path / "k.npy")
    assert code == 0 and K.shape == (48, 48) and np.allclose(np.diag(K), 1) and "mc:degree=2" in out
    code, out, _ = recsys("kernels", "--data", "t.csv", "--json", "-", "--kernel", "linear")
    assert json.loads(out)[0]["kernel"] == "linear"
    pytest.importorskip("matplotlib")
    code, out, _ = recsys("kernels", "--data", "t.csv", "--curve", "c.png", "--up-to", 3)
    assert code == 0 and (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"


def test_a_kernel_is_chosen_by_its_radius_margin_ratio(recsys):
    specs = ("linear", "mc:degree=2", "mdnf:d=2,c=2")
    named = [part for spec in specs for part in ("--kernel", spec)]
    code, out, err = recsys("kernels", "--data", "t.csv", *named, "--select", "--json", "k.json")
    assert code == 0, err
    told = json.loads(Path("k.json").read_text())
    table, ratios = read_categorical(Path("t.csv"), None, None), []
    for row, (name, params) in zip(told, map(parse_spec, specs), strict=True):
        K = make_kernel(name, **params)(table.X, normalize=True)
        mixed = 0.99 * K + 0.01 * np.mean(np.diag(K)) * np.eye(len(K))
        ratios.append(radius(mixed) ** 2 / margin(mixed, table.y) ** 2 / len(K))
        assert row["radius_margin_ratio"] == pytest.approx(ratios[-1], rel=1e-4)
        assert row["margin"] == pytest.approx(margin(K, table.y)) and f"{row['margin']:.4f}" in out
    best = specs[int(np.argmin(ratios))]
    last = out.strip().splitlines()[-1]
    assert last == f"Smallest radius-margin ratio: {best}, {min(ratios):.4f}."
    code, out, _ = recsys("kernels", "--data", "t.csv", *named, "--json", "-")
    assert code == 0 and all("radius_margin_ratio" not in row for row in json.loads(out))


def test_a_chart_without_matplotlib_says_how_to_get_it(recsys, monkeypatch):
    from recsys.cli import charts

    monkeypatch.setattr(charts.importlib.util, "find_spec", lambda name: None)
    code, _, err = recsys("kernels", "--data", "t.csv", "--curve", "c.png")
    assert code == 2 and install_hint("plot") in err
