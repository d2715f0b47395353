"""No module imports itself through others, imports inside functions included."""

import grimp
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

# Known circles, each named by one of its imports; none is to be added.
KNOWN = {
    frozenset({"recsys.data.given_test", "recsys.data.interactions", "recsys.data.profiles", "recsys.data.reading"}),
}  # fmt: skip


def circles(imports):
    """Return the sets of modules that import each other, of {module: what it imports}."""
    names = sorted(imports)
    at = {name: k for k, name in enumerate(names)}
    ends = [(at[name], at[other]) for name in names for other in imports[name] if other in at]
    rows, columns = zip(*ends, strict=True)
    graph = csr_matrix(([1] * len(ends), (rows, columns)), shape=(len(names),) * 2)
    labels = connected_components(graph, connection="strong")[1]
    found = {}
    for name, label in zip(names, labels.tolist(), strict=True):
        found.setdefault(label, set()).add(name)
    return {frozenset(names) for names in found.values() if len(names) > 1}


def test_no_module_imports_itself_through_others():
    graph = grimp.build_graph("recsys", cache_dir=None)
    found = circles({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    assert not found - KNOWN, "untie these: let what both need be a module below them"
    assert not KNOWN - found, "these are untied: take them off the list"


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "a"}, "d": {"a"}}) == {frozenset("abc")}


def test_an_import_in_a_function_counts(tmp_path, monkeypatch):
    package = tmp_path / "circular_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("from circular_package.two import f\n")
    (package / "two.py").write_text("def f():\n    from circular_package.one import f\n")
    monkeypatch.syspath_prepend(tmp_path)
    graph = grimp.build_graph("circular_package", cache_dir=None)
    found = circles({name: graph.find_modules_directly_imported_by(name) for name in graph.modules})
    assert found == {frozenset({"circular_package.one", "circular_package.two"})}
