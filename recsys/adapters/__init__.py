"""Rankers inside other libraries, and reports in other tools; each module says which one it needs.

`recsys.adapters.rectools` and `recsys.adapters.lenskit` define classes on the bases of these libraries,
so that importing them needs the library; `recsys.adapters.mlflow` and `recsys.adapters.onnx` need it
when they are called; `recsys.adapters.implicit` makes rankers instances of implicit's `RecommenderBase`.
"""

from recsys.adapters.mlflow import log_report, log_study

__all__ = ["log_report", "log_study"]
