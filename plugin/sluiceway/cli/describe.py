"""``sluiceway describe``: prints all details of a connector or a plugin."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sluiceway.cli.batches import batch_rows, batches_of
from sluiceway.cli.common import Subparsers, add_names, add_server, client, worker
from sluiceway.cli.get import key_rows, offset_rows, status_rows
from sluiceway.cli.output import Rows, add_output, table, text
from sluiceway.cli.troubleshooting import explained

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient

Response = TypeVar("Response")


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("describe", help="show all details of a connector or a plugin")
    kinds = parser.add_subparsers(title="what to describe", metavar="WHAT", required=True)
    connector = kinds.add_parser(
        "connector", aliases=["connectors"], help="config, state, tasks, forms of batches, topics and offsets"
    )
    add_names(connector, nargs=None)
    connector.add_argument("--timing", action="store_true", help="only when the steps of its last start were reached")
    connector.add_argument(
        "--worker", type=Path, metavar="WORKER.properties", help="worker file for --timing (default: that of 'sluiceway up')"
    )
    plugin = kinds.add_parser("plugin", help="config keys with their documentation")
    plugin.add_argument("name", metavar="CLASS")
    for each, run in ((connector, run_connector), (plugin, run_plugin)):
        add_output(each)
        add_server(each)
        each.set_defaults(run=run)


def run_connector(options: argparse.Namespace) -> int:
    from sluiceway.cli.secrets import masked_by_type

    if options.timing:
        return _print_times(options)
    with client(options) as api:
        document = {**_described(api, options.name), "config": masked_by_type(api, api.config(options.name))}
    if options.output != "table":
        print(text(document, options.output))
        return 0
    status: dict[str, Any] = document["status"]
    print(f"Name   {options.name}\nType   {status['type']}\nState  {status['connector']['state']}")
    if (shared := document["application"]) is not None:
        print(f"Spark application  {shared['application'] or 'its own'} ({shared['reason']})")
    _section("Config", [("KEY", "VALUE"), *sorted(document["config"].items())])
    _section("Tasks", status_rows(status))
    if document["batches"]:
        _section("Batches", batch_rows(document["batches"]))
    if document["topics"]:
        _section("Topics", [("TOPIC",), *((topic,) for topic in document["topics"])])
    if document["offsets"]:
        _section("Offsets", offset_rows(document["offsets"]))
    for part in (status["connector"], *status["tasks"]):
        if part.get("trace"):
            name = f"task {part['id']}" if "id" in part else "the connector"
            title = f"Status of {name}" if part["state"] == "RUNNING" else f"Error of {name}"
            print(f"\n{title}\n{explained(part)}")
    return 0


def _print_times(options: argparse.Namespace) -> int:
    """Print the times of the connector's last start in an application of its own, which its driver wrote to the status topic."""
    from sluiceway.worker.start_times import read_times, steps

    times = read_times(worker(options.worker), options.name)
    found = steps(times)
    if options.output != "table":
        document = [{"step": step, "at": times[step], "seconds": round(own, 3)} for step, own, _ in found]
        print(text(document, options.output))
        return 0
    rows = [(step, f"{own:.1f}", f"{total:.1f}") for step, own, total in found]
    print(table([("STEP", "SECONDS", "SINCE THE FIRST"), *rows]))
    return 0


def run_plugin(options: argparse.Namespace) -> int:
    from sluiceway.cli.findings import note_on_class

    with client(options) as api:
        keys = api.plugin_config(options.name)
        note = note_on_class(api, options.name)
    if options.output != "table":
        print(text(keys, options.output))
        return 0
    if note is not None:
        print(f"{note}\n")
    print(table(key_rows(keys)))
    for key in keys:
        if key.get("documentation"):
            print(f"\n{key['name']}\n  {key['documentation']}")
    return 0


def _described(api: ConnectClient, name: str) -> dict[str, Any]:
    return {
        "status": api.status(name),
        "application": _if_available(lambda: api.application(name)),
        "batches": _if_available(lambda: batches_of(api.metrics(name), name)),
        "topics": _if_available(lambda: api.topics(name)),
        "offsets": _if_available(lambda: api.offsets(name)),
    }


def _if_available(request: Callable[[], Response]) -> Response | None:
    """Return the response, or None if the server has none: topic tracking may be off, offsets may not exist yet."""
    from sluiceway.rest.client import RestError

    try:
        return request()
    except RestError as error:
        if error.status in (400, 403, 404, 500):
            return None
        raise


def _section(title: str, rows: Rows) -> None:
    print(f"\n{title}\n{table(rows)}")
