"""The faults: each a mistake that somebody might make, and the tests that are there for it."""

from tests.mutants.mutant import Mutant


def orders(name):
    """The enumeration of all orders of tied items, for one metric."""
    return (f"tests/evaluation/test_metrics.py::test_equals_the_mean_over_all_orders[{name}]",)


def lists(name):
    """The definition of a metric of lists."""
    return (f"tests/evaluation/test_metrics.py::test_metrics_of_lists_equal_their_definitions[{name}]",)


def protocol(name):
    """A protocol against its slow twin."""
    return (f"tests/contract/test_references.py::test_protocols[{name}]",)


def ranker(name):
    """A ranker against its slow twin."""
    return (f"tests/contract/test_references.py::test_rankers[{name}]",)


LISTS = ("tests/evaluation/test_metrics.py::test_list_metrics",)
HALVES = ("tests/data/test_splits.py::test_half_profiles[-time]",)
ENCODING = ("tests/data/test_features.py", "-k", "random or whole")
KERNELS = ("tests/contract/test_references.py::test_kernels",)
METRICS = ("tests/contract/test_references.py::test_metrics",)
GRAM = ("tests/kernels/test_item_gram.py::test_all_forms_hold_the_kernel[mc]",)
MACHINES = ("tests/kernel_machines/test_machines.py", "-k", "easymkl")
PROX = ("tests/fm/test_solvers.py", "-k", "proximal_operators")
PENALTIES = ("tests/fm/test_penalties.py",)
FILES = ("tests/test_model_file.py", "-k", "no_mutated_file_loads")
PROGRAMS = ("tests/test_simplex_qp.py",)
FILTERS = "tests/rankers/test_graph_filter.py"
RECENT = "tests/rankers/test_recent_margin.py"
REPORTS = ("tests/evaluation/test_run.py", "-k", "means_over_folds or holm")
STATISTICS = ("tests/data/test_statistics.py",)
TIES = ("tests/contract/test_rankers.py", "-k", "equal_scores and popularity")
SEQUENCES = ("tests/rankers/test_slist.py", "-k", "every_cut_written_out")

MUTANTS = [
    Mutant(
        "off by one in AP@k: a hit does not count itself",
        "evaluation/metrics/expectation.py",
        "ahead = before + 1.0 + (",
        "ahead = before + (",
        orders("map-full"),
    ),
    Mutant(
        "AP@k divided by k where there are fewer positives",
        "evaluation/metrics/ranking.py",
        "total / np.minimum(k, positives)",
        "total / k",
        orders("map"),
    ),
    Mutant(
        "the discount of nDCG begins one place early",
        "evaluation/metrics/expectation.py",
        "total += r / n / np.log2(place + 2.0)",
        "total += r / n / np.log2(place + 1.0000001)",
        orders("ndcg"),
    ),
    Mutant(
        "ties count as wins in AUC",
        "evaluation/metrics/expectation.py",
        "0.5 * (low - above)",
        "1.0 * (low - above)",
        orders("auc"),
    ),
    Mutant(
        "a group of ties is cut one place late",
        "evaluation/metrics/expectation.py",
        "inside = min(end, k) - start",
        "inside = min(end, k + 1) - start",
        orders("precision"),
    ),
    Mutant(
        "an item nobody has is as novel as one user's",
        "evaluation/metrics/lists.py",
        "np.maximum(context.popularity, 0.5)",
        "np.maximum(context.popularity, 1.0)",
        LISTS,
    ),
    Mutant(
        "unexpectedness is counted for items that nobody wanted",
        "evaluation/metrics/lists.py",
        "listed[rows].multiply(tested[rows]).tocoo()",
        "listed[rows].tocoo()",
        lists("serendipity"),
    ),
    Mutant(
        "a user of several folds is drawn as several users",
        "evaluation/significance.py",
        "distinct, who = np.unique(users, return_inverse=True)",
        "distinct = who = np.arange(len(users))",
        ("tests/evaluation/test_report.py", "-k", "several_folds"),
    ),
    Mutant(
        "less is better where more is",
        "evaluation/significance.py",
        'less = better == "less"',
        'less = better != "less"',
        ("tests/evaluation/test_run.py", "-k", "less_may_be"),
    ),
    Mutant(
        "a dataset's name is markup",
        "evaluation/report.py",
        "<strong>{escape(self.dataset)}</strong>",
        "<strong>{self.dataset}</strong>",
        ("tests/evaluation/test_report.py", "-k", "escapes"),
    ),
    Mutant(
        "coverage is of the recommended places, not of the catalogue",
        "evaluation/metrics/lists.py",
        ") / context.train.shape[1])",
        ") / max(1, ranked.size))",
        LISTS,
    ),
    Mutant(
        "a list metric sees the longest list asked for",
        "evaluation/measuring.py",
        "metric.measure(ids[:, :k], context)",
        "metric.measure(ids, context)",
        METRICS,
    ),
    Mutant(
        "the deviation over folds is that of a population",
        "evaluation/report.py",
        "np.std(means, ddof=1)",
        "np.std(means, ddof=0)",
        REPORTS,
    ),
    Mutant(
        "all start-up trials are one",
        "tuning.py",
        "SeedSequence((seed, number))",
        "SeedSequence((seed, 0))",
        ("tests/test_tuning.py", "-k", "not_interrupted"),
    ),
    Mutant(
        "models are compared by what has one value a fold",
        "evaluation/run.py",
        "        if metric.per_user\n",
        "        if True\n",
        REPORTS,
    ),
    Mutant(
        "every p-value is multiplied by their number",
        "evaluation/significance.py",
        "np.arange(len(given), 0, -1)",
        "np.full(len(given), len(given))",
        REPORTS,
    ),
    Mutant(
        "the smaller half of a profile trains",
        "data/splits.py",
        "(lengths[data.users] + 1) // 2",
        "lengths[data.users] // 2",
        HALVES,
    ),
    Mutant(
        "a user's only item is held out",
        "data/splits.py",
        "held = (place >= left) & (left > 0)",
        "held = place >= left",
        protocol("leave-one-out"),
    ),
    Mutant(
        "of several last items the one that comes last in the file is tested",
        "data/splits.py",
        "data.time if in_time and data.time is not None else draws, draws)",
        "data.time if in_time and data.time is not None else draws)",
        ("tests/data/test_splits.py", "-k", "as_often_whatever_their_place"),
    ),
    Mutant(
        "what happened when training ends trains",
        "data/splits.py",
        'np.searchsorted(starts, np.asarray(data.time), side="right")',
        'np.searchsorted(starts, np.asarray(data.time), side="left")',
        (*protocol("rolling"), "tests/data/test_splits.py::test_windows_of_rolling_follow_each_other"),
    ),
    Mutant(
        "models learn when test items happened",
        "data/features.py",
        'found["times"].multiply(train != 0).tocsr()',
        'found["times"].tocsr()',
        ("tests/evaluation/test_protocols.py", "-k", "no_time_of_a_test_item"),
        compiled=True,
    ),
    Mutant(
        "a number on the edge of a bucket falls into the one below",
        "data/features.py",
        'side="right"',
        'side="left"',
        ENCODING,
    ),
    Mutant(
        "missing cells are a value of their own",
        "data/features.py",
        "_indicators([part for part in cell if part] for cell in parts)",
        "_indicators([*cell] for cell in parts)",
        ENCODING,
    ),
    Mutant(
        "a power law's weights are squared",
        "data/statistics.py",
        "w=np.sqrt(w)",
        "w=w",
        STATISTICS,
    ),
    Mutant(
        "two empty vectors have nothing in common under Tanimoto",
        "kernels/dot_product.py",
        "s / np.maximum(a + b - s, 1), 1.0)",
        "s / np.maximum(a + b - s, 1), 0.0)",
        KERNELS,
    ),
    Mutant(
        "the union of two vectors counts what they share twice",
        "kernels/boolean.py",
        "return hit[a] - (hit[a + b - s] - hit[b])",
        "return hit[a] - (hit[np.minimum(a + b, n)] - hit[b])",
        KERNELS,
    ),
    Mutant(
        "the item matrix is not normalised",
        "kernels/item_gram.py",
        "return values(kernel, s, i, j, sizes, n)",
        "return values(kernel, s, i, j, sizes, n, False)",
        GRAM,
    ),
    Mutant(
        "EasyMKL weighs by the reciprocal of the margin",
        "kernel_machines/mkl.py",
        "shares = np.maximum(forms(grams, sign * gamma)[0], 0.0)",
        "shares = 1.0 / np.maximum(forms(grams, sign * gamma)[0], 1e-12)",
        MACHINES,
    ),
    Mutant(
        "EasyMKL regularises the mean of the kernels, not their sum",
        "kernel_machines/mkl.py",
        "margin_weights(grams.sum(axis=0), sign",
        "margin_weights(grams.mean(axis=0), sign",
        MACHINES,
    ),
    Mutant(
        "the proximal operator of TI steps twice as far",
        "fm/penalties.py",
        "sizes[j] = max(sizes[j] - cut * S**r, 0.0) if kept[j] else 0.0",
        "sizes[j] = max(sizes[j] - 2.0 * cut * S**r, 0.0) if kept[j] else 0.0",
        PROX,
    ),
    Mutant(
        "a file's checksum is not looked at",
        "utils/model_file.py",
        "if checksum != _checksum(manifest, table, [array.ravel() for array in arrays.values()]):",
        "if False:",
        FILES,
    ),
    Mutant(
        "the programs forget their ridge",
        "optim/simplex_qp.py",
        "g[i] = Kp[i] + ridge[i] * a[i] - q[i]",
        "g[i] = Kp[i] - q[i]",
        PROGRAMS,
    ),
    Mutant(
        "the ridge of an old like falls, where it should rise",
        "rankers/margin.py",
        "ridge /= np.maximum(omega, LEAST_WEIGHT)",
        "ridge *= np.maximum(omega, LEAST_WEIGHT)",
        (f"{RECENT}::test_ecf_omd",),
    ),
    Mutant(
        "cf-omd's likes all have the ridge of the newest",
        "rankers/margin.py",
        "ridge[X.indices[span]] = 1.0, ridges[span]",
        "ridge[X.indices[span]] = 1.0, ridges[X.indptr[u]]",
        (f"{RECENT}::test_cf_omd",),
    ),
    Mutant(
        "equal scores go by falling index",
        "utils/topn.py",
        "return s < t or (s == t and i > j)",
        "return s < t or (s == t and i < j)",
        (*TIES, "--compiled"),
    ),
    Mutant(
        "of a repeated pair the earliest row is kept",
        "data/interactions.py",
        "rows = rows[order[::-1]]",
        "rows = rows[order]",
        ("tests/data/test_interactions.py::test_the_latest_of_a_repeated_pair_is_kept_by_datetime_too",),
    ),
    Mutant(
        "MSDw's exponents are exchanged",
        "rankers/msdw.py",
        "users, 1.0 - self.alpha, self.alpha, self.locality",
        "users, self.alpha, 1.0 - self.alpha, self.locality",
        ranker("msdw"),
    ),
    Mutant(
        "EASE is half as regular as asked",
        "rankers/ease.py",
        "np.full(len(own), float(self.regularization))",
        "np.full(len(own), 0.5 * float(self.regularization))",
        ranker("ease"),
    ),
    Mutant(
        "items that nobody has are in the mean popularity of EASE's ridge",
        "rankers/ease.py",
        "own[had].mean()",
        "own.mean()",
        ("tests/rankers/test_ease.py", "-k", "nobody_has"),
    ),
    Mutant(
        "EASE's dropout is added as it is",
        "rankers/ease.py",
        "own * (self.dropout / (1.0 - self.dropout))",
        "own * self.dropout",
        ("tests/rankers/test_ease.py", "-k", "all_ways_to_hide"),
    ),
    Mutant(
        "a projection is not brought back to the items' popularity",
        "rankers/graph_filter.py",
        "(along @ self.directions_.T) / scale",
        "(along @ self.directions_.T) / 1.0",
        ranker("graph-filter"),
    ),
    Mutant(
        "a graph keeps its largest eigenvalue",
        "rankers/graph_filter.py",
        "A.data /= np.sqrt(largest_eigenvalue(liked, per_user, self.per_item_))",
        "A.data /= 1.0",
        (f"{FILTERS}::test_each_filter", "-k", "gf-cf"),
    ),
    Mutant(
        "a sparse inverse's blocks are filled on one side of the diagonal",
        "rankers/ease.py",
        "                    A[b, a] = data[p]\n",
        "                    A[b, a] = 0.0\n",
        ("tests/rankers/test_ease.py", "-k", "most_like"),
    ),
    Mutant(
        "a sparse inverse keeps the most shared items, not the most alike",
        "rankers/ease.py",
        "np.float64(counts[p]) ** 2 / own[items[p]]",
        "np.float64(counts[p]) ** 2",
        ("tests/rankers/test_ease.py", "-k", "most_like"),
    ),
    Mutant(
        "a blend does not bring its parts to one scale",
        "rankers/blend.py",
        "np.where(deviation > 1e-12, deviation, 1.0)",
        "1.0",
        ranker("blend"),
    ),
    Mutant(
        "a lower bound counts one failure too few",
        "explain/item_rules.py",
        "betaincinv(hits, of - hits + 1, ",
        "betaincinv(hits, of - hits + 1e-9, ",
        ("tests/explain/test_counts.py::test_the_lower_bound_is_the_exact_one",),
    ),
    Mutant(
        "the overlap of two items is not divided by their sizes",
        "reranking.py",
        "out = shared / np.outer(size, size)",
        "out = shared / size.max() ** 2",
        ("tests/reranking", "-k", "overlap"),
    ),
    Mutant(
        "products give kernels of rows in which an entry outweighs the rest, too",
        "random_features/_bases.py",
        "(4 * degree * largest <= total)",
        "(0 * largest <= total)",
        ("tests/random_features/test_products.py", "-k", "accurate"),
    ),
    Mutant(
        "the operators of TI and CS forget half of their strength",
        "fm/penalties.py",
        "power_cuts(sizes, cut, 2)",
        "power_cuts(sizes, 0.5 * cut, 2)",
        PENALTIES,
    ),
    Mutant(
        "the slope of the squared hinge is half of what it is",
        "multilinear/losses.py",
        "return -2.0 * y * np.maximum(0.0, 1.0 - y * p)",
        "return -y * np.maximum(0.0, 1.0 - y * p)",
        ("tests/fm/test_solvers.py", "-k", "finite_differences"),
    ),
    Mutant(
        "a history is taken newest first",
        "rankers/package.py",
        "when = np.arange(1.0, len(history) + 1)",
        "when = np.arange(1.0, len(history) + 1)[::-1]",
        ("tests/rankers/test_package.py", "-k", "in_order_or_has_times"),
    ),
    Mutant(
        "a like counts itself twice in what comes before",
        "rankers/sequences.py",
        "share = 1.0 if q > s else 0.5",
        "share = 1.0",
        SEQUENCES,
    ),
    Mutant(
        "a like is not in the row of the cut right after it",
        "rankers/sequences.py",
        "1.0 + step[:, :, None]",
        "step[:, :, None]",
        SEQUENCES,
    ),
    Mutant(
        "what comes next is decayed from the place before it",
        "rankers/sequences.py",
        "future[k, b] * t_steps[q, b] + law[k]",
        "(future[k, b] + law[k]) * t_steps[q, b]",
        SEQUENCES,
    ),
    Mutant(
        "likes of an equal time are newer than each other",
        "rankers/protocol.py",
        "(times[order][1:] != times[order][:-1])",
        "(times[order][1:] >= times[order][:-1])",
        ("tests/rankers/test_recency.py", "-k", "ages_are_counted"),
    ),
    Mutant(
        "auto hides the earlier half",
        "rankers/auto.py",
        "np.argsort(-when[begin:end]",
        "np.argsort(when[begin:end]",
        ("tests/rankers/test_prepare.py", "-k", "auto_hides"),
    ),
    Mutant(
        "a product of three features counted whole for each of its pairs",
        "links/pairwise.py",
        "weights * c[t] / (t * (m - t))",
        "weights * c[t]",
        ("tests/links/test_comparison.py", "-k", "reasons_are_those_of_enumeration"),
    ),
    Mutant(
        "weights of rows that are of a sum of 1 and not of a mean of 1",
        "utils/estimators.py",
        "scaled / scaled.mean()",
        "scaled / scaled.sum()",
        ("tests/fm/test_sample_weight.py", "-k", "objective_is_that_of_the_definition"),
    ),
    Mutant(
        "an object predicted to be linked to what it is linked to",
        "links/comparison.py",
        "graph.links[graph.links[:, 1] == index, 0], [index]",
        "[index]",
        ("tests/links/test_comparison.py", "-k", "strongest_links_are_the_best"),
    ),
    Mutant(
        "what is tested trains, too, where both files have it",
        "data/reading.py",
        "inside, added = np.isin(have, pairs), ",
        "inside, added = np.zeros(len(have), dtype=bool), ",
        ("tests/data/test_given_test.py", "-k", "training_is_all"),
    ),
    Mutant(
        "items that only the test half has are no candidates",
        "data/reading.py",
        "known = rows[users[test.users[rows]] >= 0]",
        "known = rows[(users[test.users[rows]] >= 0) & np.isin(item_ids[test.items[rows]], data.item_ids)]",
        ("tests/data/test_given_test.py", "-k", "training_is_all"),
    ),
    Mutant(
        "a user without training is evaluated under published",
        "data/splits.py",
        "np.flatnonzero(known & has_test)",
        "np.flatnonzero(has_test)",
        protocol("published"),
    ),
    Mutant(
        "a search reads the test half",
        "tuning.py",
        "keep = np.isin(",
        "keep = True | np.isin(",
        ("tests/test_tuning.py", "-k", "never_read"),
    ),
    Mutant(
        "what breaks ties reaches the next score",
        "rankers/blend.py",
        "np.float64(4.0)",
        "np.float64(0.4)",
        ("tests/rankers/test_blend.py", "-k", "only_equal_ones"),
    ),
    Mutant(
        "nearest users write beyond an array where there are more items than users",
        "rankers/scoring.py",
        "        if skip_liked:  # else rows may be of other things",
        "        if True:  # else rows may be of other things",
        ("tests/rankers/test_user_knn.py", "-k", "within_their_arrays"),
    ),
]
