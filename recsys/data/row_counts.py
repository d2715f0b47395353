"""Counts of the rows of a table: kept, merged, or left out and why."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

# Why a row is left out, in the order in which it is looked at: a row counts for the first reason.
FAULTS = {
    "fields": ("row with another number of fields than the header", "rows with another number of fields "
               "than the header"),
    "header": ("row that repeats the header", "rows that repeat the header"),
    "totals": ("row of totals", "rows of totals"),
    "user": ("row without a user", "rows without a user"),
    "item": ("row without an item", "rows without an item"),
    "unrated": ("row without a rating", "rows without a rating"),
    "rating": ("row whose rating is no number", "rows whose rating is no number"),
    "untimed": ("row without a time", "rows without a time"),
    "time": ("row whose time cannot be read", "rows whose time cannot be read"),
    "weight": ("row whose weight is no number above 0", "rows whose weight is no number above 0"),
    "zero": ("row rated at or below 0, which is no interaction,",
             "rows rated at or below 0, which are no interactions,"),
    "low": ("row rated below the least rating", "rows rated below the least rating"),
}  # fmt: skip


@dataclass(frozen=True)
class RowCounts:
    """Counts of the rows of a table.

    >>> counts = RowCounts(4, {"user": 1}, {"user": "line 3"}, repeated=1, kept=2, roles="user = who")
    >>> counts.sentences()
    ['1 row without a user is left out (line 3).']
    >>> counts.description
    'user = who; 4 rows, 2 interactions, 1 merged, 1 left out'
    """

    rows: int  # below the header, blank lines and comments not counted
    # by reason, one of `FAULTS`: the first of a row
    left_out: dict[str, int] = field(default_factory=dict)
    # where the first row of each reason is, as "line 7"
    first: dict[str, str] = field(default_factory=dict)
    repeated: int = 0  # rows about a pair that another row is about, too
    kept: int = 0  # pairs that are used
    roles: str = ""  # which columns were read as what

    @property
    def description(self) -> str:
        """How the table was read, as a sentence."""
        parts = [f"{self.rows:,} row{'s' * (self.rows != 1)}"]
        parts.append(f"{self.kept:,} interaction{'s' * (self.kept != 1)}")
        if self.repeated:
            parts.append(f"{self.repeated:,} merged")
        parts.append(f"{sum(self.left_out.values()):,} left out")
        return f"{self.roles}; {', '.join(parts)}"

    def sentences(self) -> list[str]:
        """Return a sentence for each reason that there is."""
        out = []
        for fault, number in self.left_out.items():
            one, many = FAULTS[fault]
            first = self.first.get(fault, "")
            if number == 1:
                out.append(f"1 {one} is left out{f' ({first})' if first else ''}.")
            else:
                out.append(
                    f"{number:,} {many} are left out{f', the first in {first}' if first else ''}."
                )
        return out

    def without(self, fault: str, pairs: int) -> RowCounts:
        """Return the counts after some of the pairs were left out, too."""
        left_out = self.left_out | {fault: self.left_out.get(fault, 0) + pairs}
        return replace(self, left_out=left_out, kept=self.kept - pairs)
