"""Solvers and proximal operators that several models share, and programs on the simplex."""
