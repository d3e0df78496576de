"""Starts processes that tests kill."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

# Imports of tasks, connectors and tables take a process longer than its task may run. What only some tasks import is among them.
_PRELOADED = (
    "confluent_kafka",
    "deltalake",
    "pyarrow.parquet",
    "pyiceberg.catalog.sql",
    "pyiceberg.table",
    "sluiceway.connectors.delta",
    "sluiceway.connectors.iceberg",
    "sluiceway.worker.executor",
)


def fresh_processes() -> ForkServerContext:
    """Return the context of processes that have nothing of this one.

    They are forks of a process that has imported modules and done nothing else, because a fork of this one would lack the threads
    of its Kafka clients.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context
