"""Quadratic programs on the simplex."""
