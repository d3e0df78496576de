"""``sluiceway get``: shows connectors, plugins and loggers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sluiceway.cli.common import Subparsers, add_names, add_server, client
from sluiceway.cli.output import Rows, add_output, counts, show
from sluiceway.cli.troubleshooting import explained

if TYPE_CHECKING:
    from sluiceway.rest.client import ConnectClient


@dataclass(frozen=True)
class _Kind:
    text: str
    request: Callable[[ConnectClient, argparse.Namespace], Any]
    rows: Callable[[Any, argparse.Namespace], Rows]
    of_connector: bool = False


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("get", help="show connectors, or one connector's status, config, tasks, topics or offsets")
    kinds = parser.add_subparsers(title="what to show", metavar="WHAT", required=True)
    for name, kind in _KINDS.items():
        # kubectl takes both, and names.
        each = kinds.add_parser(name, help=kind.text, aliases=["connector"] if name == "connectors" else [])
        if kind.of_connector:
            add_names(each, nargs=None)
        if name == "connectors":
            add_names(each, nargs="*")
        if name == "config":
            each.add_argument("--show-secrets", action="store_true", help="do not mask secrets, as apply needs it")
        if name == "plugins":
            add_all_plugins(each)
        if name == "plugin":
            each.add_argument("name", metavar="CLASS")
        add_output(each)
        add_server(each)
        each.set_defaults(run=run, kind=name)


def add_all_plugins(parser: argparse._ActionsContainer) -> None:
    """Add the option that also lists plugins other than connectors."""
    parser.add_argument("-a", "--all", action="store_true", help="also list converters, transforms and predicates")


def run(options: argparse.Namespace) -> int:
    """Request the resource that ``kind`` names and print it."""
    kind = _KINDS[options.kind]
    with client(options) as api:
        document = kind.request(api, options)
    show(document, kind.rows(document, options), options.output)
    for trace in _traces(document) if options.kind == "status" and options.output == "table" else ():
        print(trace)
    return 0


def connector_rows(statuses: dict[str, Any]) -> Rows:
    rows = [("NAME", "TYPE", "STATE", "TASKS")]
    rows += [(name, status["type"], status["connector"]["state"], counts(status)) for name, status in sorted(statuses.items())]
    return rows


def status_rows(status: dict[str, Any]) -> Rows:
    return [("NAME", "STATE", "WORKER"), *((name, part["state"], part["worker_id"]) for name, part in _parts(status))]


def offset_rows(offsets: list[dict[str, Any]]) -> Rows:
    return [("PARTITION", "OFFSET"), *map(_offset_row, offsets)]


def plugin_rows(plugins: list[dict[str, Any]]) -> Rows:
    """Return the plugins; with the language that is used if some are installed in two."""
    rows = [("CLASS", "TYPE", "VERSION", "USED")]
    rows += [(each["class"], each["type"], str(each.get("version", "")), each.get("used", "")) for each in plugins]
    return rows if any(each.get("used") for each in plugins) else [row[:-1] for row in rows]


def key_rows(keys: list[dict[str, Any]]) -> Rows:
    rows = [("KEY", "TYPE", "DEFAULT", "IMPORTANCE")]
    for key in keys:
        default = "(required)" if key["required"] else str(key["default_value"] if key["default_value"] is not None else "")
        rows.append((key["name"], key["type"], default, key["importance"]))
    return rows


def logger_rows(loggers: dict[str, Any]) -> Rows:
    return [("LOGGER", "LEVEL"), *((name, str(each["level"])) for name, each in sorted(loggers.items()))]


def _offset_row(each: dict[str, Any]) -> tuple[str, str]:
    """Return partition and offset; those of a sink in the syntax of ``offsets set``."""
    partition, offset = each["partition"], each["offset"] or {}
    if partition.keys() == {"kafka_topic", "kafka_partition"} and offset.keys() <= {"kafka_offset"}:
        return f"{partition['kafka_topic']}:{partition['kafka_partition']}", str(offset.get("kafka_offset", "-"))
    return _pairs(partition), _pairs(offset)


def _traces(status: dict[str, Any]) -> list[str]:
    return [f"\n{name}: {explained(part)}" for name, part in _parts(status) if part.get("trace")]


def _parts(status: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    name = status["name"]
    return [(name, status["connector"]), *((f"{name}-{task['id']}", task) for task in status["tasks"])]


def _pairs(values: dict[str, Any] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in (values or {}).items()) or "-"


def _connectors(api: ConnectClient, options: argparse.Namespace) -> dict[str, Any]:
    """Return the statuses of the named connectors, or of all. Raises RestError for one that does not exist."""
    statuses = api.statuses()
    return {name: statuses.get(name) or api.status(name) for name in options.names or statuses}


def _config(api: ConnectClient, options: argparse.Namespace) -> dict[str, str]:
    from sluiceway.cli.secrets import masked_by_type

    config = api.config(options.name)
    return config if options.show_secrets else masked_by_type(api, config)


def _task_rows(tasks: list[dict[str, Any]], _options: argparse.Namespace) -> Rows:
    rows = [("TASK", "CONFIG")]
    for task in tasks:
        rows.append((f"{task['id']['connector']}-{task['id']['task']}", _pairs(task["config"])))
    return rows


def _tasks(api: ConnectClient, options: argparse.Namespace) -> list[dict[str, Any]]:
    from sluiceway.cli.secrets import DeclaredPasswords, masked

    passwords = DeclaredPasswords(api).keys(api.config(options.name))
    return [{**task, "config": masked(task["config"], passwords)} for task in api.tasks(options.name)]


_KINDS = {
    "connectors": _Kind("connectors and their states (default: all)", _connectors, lambda found, _: connector_rows(found)),
    "status": _Kind(
        "state of a connector and its tasks, with the errors of failed ones and what others wait for",
        lambda api, options: api.status(options.name),
        lambda found, _: status_rows(found),
        True,
    ),
    "config": _Kind(
        "a connector's config, without secrets", _config, lambda found, _: [("KEY", "VALUE"), *sorted(found.items())], True
    ),
    "tasks": _Kind("a connector's tasks and their configs", _tasks, _task_rows, True),
    "topics": _Kind(
        "the topics that a connector uses",
        lambda api, options: api.topics(options.name),
        lambda found, _: [("TOPIC",), *((topic,) for topic in found)],
        True,
    ),
    "offsets": _Kind(
        "a connector's offsets", lambda api, options: api.offsets(options.name), lambda found, _: offset_rows(found), True
    ),
    "plugins": _Kind(
        "the installed plugins",
        lambda api, options: api.plugins(connectors_only=not options.all),
        lambda found, _: plugin_rows(found),
    ),
    "plugin": _Kind(
        "the keys of a plugin's config", lambda api, options: api.plugin_config(options.name), lambda found, _: key_rows(found)
    ),
    "loggers": _Kind("log levels", lambda api, _: api.loggers(), lambda found, _: logger_rows(found)),
}
