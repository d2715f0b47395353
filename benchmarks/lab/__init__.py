"""The Boolean kernel lab: scripts that rerun chapters 6 to 10 of Polato's thesis.

Each is run as `python -m benchmarks.lab.NAME` from the root of the project, reads the tables
from `$RECSYS_DATA/categorical`, and writes CSV and PNG into `benchmarks/results/`.
"""
