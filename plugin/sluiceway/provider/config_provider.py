"""AirflowConfigProvider: ``${airflow:conn_id:password}``, ``${airflow:variable:NAME}``, ``${airflow:run:data_interval_start}``.

Airflow answers in its own processes: the API server, and the tasks. A driver and its executors have no Airflow, so the task
that submits a driver looks up what the configs refer to and hands it over (``environment``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from sluiceway.config.parsing import parse_list
from sluiceway.config.providers import ConfigData, ConfigProvider
from sluiceway.config.variables import HANDED_OVER, WORKER_OVERRIDE, Resolver, references
from sluiceway.errors import ConfigError
from sluiceway.provider.driver.run_variables import NAMES, RUN

VARIABLE = "variable"
_EXTRA = "extra."
_FIELDS = ("conn_type", "host", "login", "password", "port", "schema")


class AirflowConfigProvider(ConfigProvider):
    """Looks up Airflow's connections (by id and field) and variables (path ``variable``), wherever Airflow keeps them.

    Fields are ``login``, ``password``, ``host``, ``port``, ``schema``, ``conn_type``, ``uri``, ``extra`` (all of it as JSON)
    and ``extra.<name>``. Path ``run`` is the DAG run that runs the connector: only its task knows it (``environment``).
    """

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        if not path:
            raise ConfigError("An Airflow reference is ${airflow:<connection id>:<field>} or ${airflow:variable:<name>}.")
        if path == RUN:
            unknown = sorted(set(keys) - set(NAMES))
            what = (
                f"A DAG run has no variable {unknown[0]!r}: there are {', '.join(NAMES)}."
                if unknown
                else (f"${{airflow:{RUN}:...}} is known only while a DAG runs the connector, not here.")
            )
            raise ConfigError(what)
        if path == VARIABLE:
            found: dict[str, str | None] = {key: _variable(key) for key in keys}
        else:
            connection = _connection(path)
            found = {key: _field(connection, path, key) for key in keys}
        return ConfigData({key: value for key, value in found.items() if value is not None})


def environment(
    properties: Mapping[str, str],
    config: Mapping[str, str],
    run: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment variable that hands a driver what its worker's and its connector's config take from Airflow.

    Runs in an Airflow task, before it submits the driver; ``properties`` is the worker's file as it is written. Empty if
    nothing refers to Airflow. Raises ConfigError for a connection or variable that does not exist. The values are masked in
    the task's log. ``run`` are the DAG run's variables, ``overrides`` worker properties that win over those in the file.
    """
    handed = {WORKER_OVERRIDE + key: value for key, value in (overrides or {}).items()}
    names = _providers(properties)
    wanted = {each for each in (*references(properties), *references(config)) if each.provider in names}
    if not wanted and not handed:
        return {}
    ours = Resolver.of({key: value for key, value in properties.items() if key.startswith("config.providers")})
    found: dict[str, str] = {}
    for reference in sorted(wanted):
        if reference.path == RUN and reference.key in (run or {}):
            handed[":".join(reference)] = (run or {})[reference.key]
            continue
        text = f"${{{':'.join(reference)}}}"
        value = ours.resolve({"value": text})["value"]
        if value != text:
            found[":".join(reference)] = value
    text = json.dumps({**handed, **found})
    _mask([*found.values(), text] if found or overrides else [])  # what the run tells is no secret
    return {HANDED_OVER: text}


def _providers(properties: Mapping[str, str]) -> set[str]:
    """Return the names under which a worker's properties declare this provider."""
    ours = (AirflowConfigProvider.__name__, f"{__name__}.{AirflowConfigProvider.__name__}", "Airflow")
    names = parse_list(properties.get("config.providers"))
    return {name for name in names if properties.get(f"config.providers.{name}.class", "").strip().replace(":", ".") in ours}


def _connection(conn_id: str) -> Any:
    try:
        from airflow.sdk import Connection
        from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError
    except ImportError:
        raise _no_airflow(conn_id) from None
    try:
        return Connection.get(conn_id)
    except (AirflowException, AirflowRuntimeError):  # not its text: some backends quote what they read
        raise ConfigError(f"Airflow has no connection {conn_id!r}, which a config refers to; create it.") from None


def _variable(name: str) -> str:
    try:
        from airflow.sdk import Variable
        from airflow.sdk.exceptions import AirflowException, AirflowRuntimeError
    except ImportError:
        raise _no_airflow(f"{VARIABLE}:{name}") from None
    try:
        return str(Variable.get(name))
    except (KeyError, AirflowException, AirflowRuntimeError):
        raise ConfigError(f"Airflow has no variable {name!r}, which a config refers to; create it.") from None


def _field(connection: Any, conn_id: str, field: str) -> str | None:
    if field == "uri":
        return str(connection.get_uri())
    if field == "extra":
        return None if connection.extra is None else str(connection.extra)
    if field.startswith(_EXTRA):
        value = connection.extra_dejson.get(field[len(_EXTRA) :])
        return value if value is None or isinstance(value, str) else json.dumps(value)
    if field not in _FIELDS:
        raise ConfigError(
            f"An Airflow connection has no field {field!r} (asked of {conn_id}): there are {', '.join(_FIELDS)}, uri, extra "
            "and extra.<name>."
        )
    value = getattr(connection, field)
    return None if value is None else str(value)


def _no_airflow(what: str) -> ConfigError:
    return ConfigError(
        f"${{airflow:{what}}} cannot be looked up here: this process has no Airflow. Run the connector by its DAG, whose task "
        "hands over what the configs refer to."
    )


def _mask(values: Collection[str]) -> None:
    """Keep values out of the task's log."""
    from airflow.sdk.log import mask_secret

    for value in values:
        mask_secret(value)
