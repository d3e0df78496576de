"""The demo's shop, which keeps records flowing after the first result: a writer process and three connectors.

The connectors share one Spark application, so that all of them cost one JVM and one driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.config.connector import APPLICATION
from sluiceway.stack import demo, demo_writer
from sluiceway.stack.airflow import MARKER_VARIABLE
from sluiceway.stack.process import BackgroundProcess

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

ORDERS, EVENTS, ARCHIVE = "demo-orders", "demo-events", "demo-archive"
QUEUE = "demo-archive-errors"

_SHARED = {"tasks.max": "1", APPLICATION: "demo"}
_JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
_TEXT = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}


def archive_file(folder: Path) -> Path:
    """Return the file into which the sink copies orders and events."""
    return folder / "archive.txt"


def connector_configs(folder: Path) -> dict[str, dict[str, str]]:
    """Return the configs of the three connectors: a source with transforms, a source, and a sink with a dead letter queue."""
    return {
        ORDERS: {
            "connector.class": "JdbcSource",
            "connection.url": f"jdbc:sqlite:{demo_writer.database_file(folder)}",
            "table.whitelist": "orders",
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "topic.prefix": "demo-",
            "poll.interval.ms": "1000",
            "transforms": "hide,shop",
            "transforms.hide.type": "org.apache.kafka.connect.transforms.MaskField$Value",
            "transforms.hide.fields": "email",
            "transforms.hide.replacement": "hidden",
            "transforms.shop.type": "org.apache.kafka.connect.transforms.InsertField$Value",
            "transforms.shop.static.field": "shop",
            "transforms.shop.static.value": "garden",
            **_JSON,
            **_SHARED,
        },
        EVENTS: {
            "connector.class": "FileStreamSource",
            "file": str(demo_writer.log_file(folder)),
            "topic": EVENTS,
            **_TEXT,
            **_SHARED,
        },
        ARCHIVE: {
            "connector.class": "FileStreamSink",
            "topics": f"{ORDERS},{EVENTS}",
            "file": str(archive_file(folder)),
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": QUEUE,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
            **_JSON,
            **_SHARED,
        },
    }


def writer(home: Path) -> BackgroundProcess:
    """Return the process that writes events and orders; ``home`` is the state folder. `sluiceway down` ends it."""
    command = [sys.executable, "-m", demo_writer.__name__, str(home / "demo")]
    return BackgroundProcess("demo-writer", command, home, env={MARKER_VARIABLE: str(home.absolute())})


def start(client: ConnectClient, home: Path, say: Callable[[str], None], *, timeout: float = demo.TIMEOUT) -> None:
    """Start the writer, create the connectors, and wait until they run. Raises ConnectError after ``timeout`` seconds."""
    folder = home / "demo"
    demo_writer.prepare(folder)
    writer(home).start()
    configs = connector_configs(folder)
    demo.create(client, configs, say)
    demo.await_running(client, configs, say, timeout=timeout)
    say(
        f"Records keep flowing: {ORDERS} reads a table of a SQLite database, {EVENTS} a log, and {ARCHIVE} writes both to "
        f"{archive_file(folder)}. Lines that are not JSON go to its dead letter queue, {QUEUE}."
    )
