"""Shared proximal operators, and quadratic programs on the simplex."""
