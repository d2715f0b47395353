"""Solvers and operators that several models share: programs on the simplex, proximal steps."""
