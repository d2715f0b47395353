"""Past one machine's memory: from partitioned Parquet, by an engine's workers, to a mapped ranker."""

from recsys.partitioned.fit import Fitted, fit_partitions
from recsys.partitioned.lists import recommend_partitions

__all__ = ["Fitted", "fit_partitions", "recommend_partitions"]
