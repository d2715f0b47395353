"""Which item matrices are kept as arrays."""

SMALL = 128_000_000  # bytes of a dense matrix that are not worth saving


def worth_dense(items: int, budget: int | None) -> bool:
    """Return whether weights that are sparse are kept as an array: a small one, within the budget."""
    return 4 * items * items <= (SMALL if budget is None else min(SMALL, budget))
