"""The process from which Spark forks Python workers in local mode: PySpark's, with what tasks need imported once for all.

Spark runs it as ``python -m sluiceway.spark.local_daemon`` (``spark.python.daemon.module``), and tells it the worker's module.
"""

from __future__ import annotations

import sys

from sluiceway.spark.unpacked import without_archives

if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)

    from pyspark.daemon import manager

    import sluiceway.runtime.sink.worker_sink_task
    import sluiceway.runtime.source.worker_source_task
    import sluiceway.worker.executor
    import sluiceway.worker.kafka_channel  # noqa: F401 (imported for the workers, which are forks)

    manager()
