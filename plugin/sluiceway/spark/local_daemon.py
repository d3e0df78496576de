"""Runs PySpark's daemon, which forks Python workers, with the modules that tasks need already imported. For local mode.

Spark starts it as ``python -m sluiceway.spark.local_daemon`` (``spark.python.daemon.module``).
"""

from __future__ import annotations

import gc
import signal

from sluiceway.spark.import_path import use_one_pyspark, without_numpy

if __name__ == "__main__":
    use_one_pyspark()

    with without_numpy():
        from pyspark import daemon

    import sluiceway.runtime.sink.worker_sink_task
    import sluiceway.runtime.source.worker_source_task
    import sluiceway.worker.executor
    import sluiceway.worker.kafka_task_services  # noqa: F401 (the forked workers inherit the imports)

    # Workers share the memory of these objects until they write to it, as their garbage collections would.
    gc.collect()
    gc.freeze()
    # A service manager asks all processes of a service to end at once, but tasks commit before they do: Spark, which the driver
    # has asked to stop them, ends this process by closing its input. So what PySpark does on SIGTERM, it does on another signal.
    daemon.SIGTERM = signal.SIGUSR1  # type: ignore[attr-defined]  # imported there
    signal.signal(signal.SIGTERM, lambda *_: None)  # not SIG_IGN, which programs that plugins start would inherit
    daemon.manager()
