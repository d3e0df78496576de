"""Runs PySpark's daemon, which forks Python workers, with the modules that tasks need already imported. For local mode.

Spark starts it as ``python -m sluiceway.spark.local_daemon`` (``spark.python.daemon.module``).
"""

from __future__ import annotations

import gc

from sluiceway.spark.import_path import use_one_pyspark, without_numpy

if __name__ == "__main__":
    use_one_pyspark()

    with without_numpy():
        from pyspark.daemon import manager

    import sluiceway.runtime.sink.worker_sink_task
    import sluiceway.runtime.source.worker_source_task
    import sluiceway.worker.executor
    import sluiceway.worker.kafka_task_services  # noqa: F401 (the forked workers inherit the imports)

    # Workers share the memory of these objects until they write to it, as their garbage collections would.
    gc.collect()
    gc.freeze()
    manager()
