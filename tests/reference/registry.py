"""The slow twins by name: every ranker, kernel, metric and protocol has one, and is compared with it."""

from recsys.registry import Registry

RANKERS = Registry("reference of a ranker")
KERNELS = Registry("reference of a kernel")
METRICS = Registry("reference of a metric")
PROTOCOLS = Registry("reference of a protocol")
