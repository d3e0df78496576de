"""Runs `make demo-hdfs`: log lines go through Kafka into Parquet files on a real HDFS, in hourly folders, and Spark queries them.

Starts the local stack, a NameNode and a DataNode. All of them keep running until `sluiceway down`.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))  # not by PYTHONPATH, which Airflow's processes would inherit

from sluiceway.errors import ConnectError  # noqa: E402
from sluiceway.folders import state_home  # noqa: E402
from sluiceway.rest.client import ConnectClient  # noqa: E402
from sluiceway.stack.addresses import Addresses  # noqa: E402
from sluiceway.stack.airflow import MARKER_VARIABLE  # noqa: E402
from sluiceway.stack.up import up  # noqa: E402
from support.clusters.hadoop import Hdfs  # noqa: E402

LINES = 20_000
TOPIC = "demo-service-log"
SOURCE, SINK = "demo-log-source", "demo-hdfs-sink"
QUERY = """\
SELECT year, month, day, hour, count(*) AS lines, count_if(status >= 500) AS errors, max(millis) AS slowest
FROM logs GROUP BY year, month, day, hour ORDER BY year, month, day, hour"""

Say = Callable[[str], None]
Row = tuple[str, int, int, int]

_TIMESTAMP = {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "version": 1}
#: The schema of a line, so that the topic holds the plain lines.
_SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "at", **_TIMESTAMP},
        {"field": "path", "type": "string"},
        {"field": "status", "type": "int32"},
        {"field": "millis", "type": "int32"},
    ],
}
_PATHS = ("/", "/login", "/cart", "/search", "/api/orders", "/products/1", "/products/2")
_TIMEOUT_SECONDS = 300.0


def sample_lines(count: int = LINES, seed: int = 7) -> list[str]:
    """Return ``count`` lines of a service's log as JSON, one each second. The same seed gives the same lines."""
    choose = random.Random(seed)  # noqa: S311 (sample data)
    start = int(datetime(2026, 1, 5, 6, 0, tzinfo=timezone.utc).timestamp() * 1000)
    return [
        json.dumps(
            {
                "at": start + number * 1000 + choose.randrange(1000),
                "path": choose.choice(_PATHS),
                "status": choose.choice((200, 200, 200, 200, 302, 404, 500)),
                "millis": choose.randrange(1, 900),
            }
        )
        for number in range(count)
    ]


def connector_configs(log: Path, lake: str) -> dict[str, dict[str, str]]:
    """Return the configs of the two connectors."""
    string, converter = "org.apache.kafka.connect.storage.StringConverter", "org.apache.kafka.connect.json.JsonConverter"
    return {
        SOURCE: {
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "file": str(log),
            "topic": TOPIC,
            "value.converter": string,
        },
        SINK: {
            "connector.class": "ParquetSink",
            "tasks.max": "1",
            "topics": TOPIC,
            "value.converter": converter,
            "value.converter.schema.content": json.dumps(_SCHEMA),
            "path": lake,
            "partitioner.class": "HourlyPartitioner",
            "timestamp.extractor": "RecordField",
            "timestamp.field": "at",
            "timezone": "UTC",
            "rotate.schedule.interval.ms": "5000",
        },
    }


def start_hdfs(folder: Path, say: Say) -> Hdfs:
    """Start a NameNode and a DataNode that `sluiceway down` ends; start them again if they run, because ports change."""
    hdfs = Hdfs(folder / "hdfs", nodes=1, env={MARKER_VARIABLE: str(folder)})
    hdfs.stop()
    hdfs.start()
    hdfs.await_ready()
    say(f"HDFS answers on {hdfs.url}, its pages on {hdfs.web}")
    return hdfs


def write_to_hdfs(client: ConnectClient, log: Path, lake: str, say: Say) -> None:
    """Create the connectors and wait until all lines are in committed files. Raises ConnectError after some minutes."""
    if not log.exists():
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(sample_lines()) + "\n", encoding="utf-8")
        say(f"Made {log} with {LINES:,} lines")
    for name, config in connector_configs(log, lake).items():
        client.put_config(name, config)
        say(f"Created connector {name}; its DAG starts a Spark application")
    lines = log.read_bytes().count(b"\n")
    deadline, reported = time.monotonic() + _TIMEOUT_SECONDS, time.monotonic()
    while (done := _committed(client)) < lines:
        states = ", ".join(f"{name} {client.status(name)['connector']['state']}" for name in (SOURCE, SINK))
        if time.monotonic() > deadline:
            raise ConnectError(f"{done:,} of {lines:,} lines are in HDFS after {_TIMEOUT_SECONDS:.0f} s: {states}.")
        if time.monotonic() - reported >= 5:
            reported = time.monotonic()
            say(f"  {states}; {done:,} of {lines:,} lines in HDFS")
        time.sleep(0.5)
    say(f"All {lines:,} lines are in HDFS")


def _committed(client: ConnectClient) -> int:
    return sum(int(each["offset"]["kafka_offset"]) for each in client.offsets(SINK))


def query(lake: str, say: Say) -> list[Row]:
    """Run the query with Spark; print and return its rows as (folder, lines, errors, slowest)."""
    from pyspark.sql import SparkSession

    quiet: dict[str, bool | float | int | str | None] = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = SparkSession.builder.master("local[1]").config(map=quiet).getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        spark.read.parquet(f"{lake}/topics/{TOPIC}").createOrReplaceTempView("logs")
        found = [
            (f"{each.year}-{each.month:02}-{each.day:02} {each.hour:02}h", each.lines, each.errors, each.slowest)
            for each in spark.sql(QUERY).collect()
        ]
    finally:
        spark.stop()
    say(f"\n{QUERY}\n\n{'folder':<16}{'lines':>8}{'errors':>8}{'slowest':>8}")
    for folder, lines, errors, slowest in found:
        say(f"{folder:<16}{lines:>8,}{errors:>8,}{slowest:>8,}")
    return found


def run(home: Path, say: Say) -> tuple[Addresses, list[Row]]:
    """Run the demo in a state folder; return the stack's addresses and the query's rows. Everything keeps running."""
    addresses = up(None, say, home=home)
    hdfs = start_hdfs(home, say)
    lake = f"{hdfs.url}/lake"
    with ConnectClient(addresses.rest) as client:
        write_to_hdfs(client, home / "demo-hdfs/service.log", lake, say)
    return addresses, query(lake, say)


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (the command's output)


def main() -> int:
    """Run the demo in the user's state folder and say how to continue."""
    addresses, _ = run(state_home(), _print)
    _print(
        f"\nREST API   {addresses.rest}\nAirflow    {addresses.airflow}\nEverything keeps running. Stop it with `make down`; "
        "run `make demo-hdfs` again to continue."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
