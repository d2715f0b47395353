"""Colours and marks of charts, on screen and in print."""

from __future__ import annotations

# Okabe and Ito's colours, distinct for colour-blind readers, and marks for printing in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = "osD^vPX"
