"""The slow twins by name: every ranker, kernel and metric has one, and is compared with it."""

from recsys.registry import Registry

RANKERS = Registry("reference of a ranker")
KERNELS = Registry("reference of a kernel")
METRICS = Registry("reference of a metric")
