"""The config provider for ``${airflow:conn_id:password}``, ``${airflow:variable:NAME}`` and ``${airflow:run:ds}``.

Airflow's connections and variables can be read in its own processes only, such as the API server and tasks. A driver and its
executors have no Airflow, so the task that submits a driver resolves the references and passes on the values (``environment``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluiceway.config.environment import HANDED_OVER, ISOLATED
from sluiceway.config.parsing import parse_list
from sluiceway.config.password import Password
from sluiceway.config.providers import ConfigData, ConfigProvider
from sluiceway.config.variables import WORKER_OVERRIDE, Resolver, references, resolver
from sluiceway.errors import ConfigError
from sluiceway.provider.driver.run_variables import NAMES, RUN
from sluiceway.provider.masks import mask

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig

VARIABLE = "variable"
_EXTRA = "extra."
_FIELDS = ("conn_type", "host", "login", "password", "port", "schema")


class AirflowConfigProvider(ConfigProvider):
    """Reads Airflow's connections (path: connection id, key: field) and variables (path: ``variable``), from any secrets backend.

    Fields are ``login``, ``password``, ``host``, ``port``, ``schema``, ``conn_type``, ``uri``, ``extra`` (all of it as JSON)
    and ``extra.<name>``. The path ``run`` is the DAG run that runs the connector; only the run's task can resolve it.
    """

    def check(self, path: str, key: str) -> None:
        if not path:
            raise ConfigError("A reference to Airflow must be ${airflow:<connection id>:<field>} or ${airflow:variable:<name>}.")
        if path == RUN and key not in NAMES:
            raise _no_run([key])
        if path not in (RUN, VARIABLE):
            _check_field(path, key)

    def get(self, path: str, keys: Collection[str]) -> ConfigData:
        """Return the values of a connection's fields, or of variables; raises ConfigError, without any value."""
        if not path:
            self.check(path, "")
        if path == RUN:
            raise _no_run(keys)
        if ISOLATED in os.environ:
            raise ConfigError("Values of Airflow are given to the connector's driver only, not to requests and previews.")
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
    """Return the environment variable that passes the values of references to Airflow to a driver; empty if there are none.

    Runs in an Airflow task, before it submits the driver. Masks the values in the task's log.

    Args:
        properties: the worker's file, with unresolved references.
        config: the connector's config, with unresolved references.
        run: the DAG run's variables (``run_variables``).
        overrides: worker properties that override those in the file.

    Raises:
        ConfigError: a connection, field or variable does not exist.
    """
    passed = {WORKER_OVERRIDE + key: value for key, value in (overrides or {}).items()}
    names = _providers(properties)
    wanted = {each for each in (*references(properties), *references(config)) if each.provider in names}
    if not wanted and not passed:
        return {}
    ours = Resolver.of({key: value for key, value in properties.items() if key.startswith("config.providers")})
    found: dict[str, str] = {}
    for reference in sorted(wanted):
        if reference.path == RUN and reference.key in (run or {}):
            passed[":".join(reference)] = (run or {})[reference.key]
            continue
        text = f"${{{':'.join(reference)}}}"
        value = ours.resolve({"value": text})["value"]
        if value != text:
            found[":".join(reference)] = value
    text = json.dumps({**passed, **found})
    mask([*found.values(), text] if found or overrides else [])  # values of the DAG run are not secret
    return {HANDED_OVER: text}


def resolve_masked(worker: WorkerConfig, config: Mapping[str, str]) -> dict[str, str]:
    """Return settings with references resolved by a worker's providers; mask the values in the task's log. Raises ConfigError."""
    found = resolver(worker).resolve(config)
    mask([value for key, value in found.items() if value != config[key]])
    return found


def for_run(worker: WorkerConfig, run: Mapping[str, str]) -> WorkerConfig:
    """Return a worker config with which the run's own task resolves references to its run. ``run`` as in ``environment``."""
    names = _providers(worker.raw)
    own = {f"{name}:{RUN}:{key}": Password(value) for name in names for key, value in run.items()}
    return replace(worker, secrets={**worker.secrets, **own})


def refers_to_airflow(properties: Mapping[str, str], config: Mapping[str, str]) -> bool:
    """Return whether a connector's config refers to values that only its own driver can be given, as ``environment`` does."""
    names = _providers(properties)
    return any(each.provider in names for each in references(config))


def _providers(properties: Mapping[str, str]) -> set[str]:
    """Return the names that a worker's ``config.providers`` gives this provider."""
    ours = (AirflowConfigProvider.__name__, f"{__name__}.{AirflowConfigProvider.__name__}", "Airflow")
    names = parse_list(properties.get("config.providers"))
    return {name for name in names if properties.get(f"config.providers.{name}.class", "").strip().replace(":", ".") in ours}


def _no_run(keys: Collection[str]) -> ConfigError:
    unknown = sorted(set(keys) - set(NAMES))
    if unknown:
        return ConfigError(f"A DAG run has no variable {unknown[0]!r}; available are {', '.join(NAMES)}.")
    return ConfigError(
        f"${{airflow:{RUN}:...}} is available only while a DAG runs the connector. Run the connector by its DAG to resolve it."
    )


def _connection(conn_id: str) -> Any:
    try:
        from airflow.sdk import Connection
        from airflow.sdk.exceptions import AirflowRuntimeError

        from sluiceway.provider.compat import AirflowException
    except ImportError:
        raise _no_airflow(conn_id) from None
    try:
        return Connection.get(conn_id)
    # Its text may contain secrets: some backends quote values. Airflow 3.0 looks for a task's supervisor in every process.
    except (AirflowException, AirflowRuntimeError, ImportError):
        raise ConfigError(f"Airflow has no connection {conn_id!r}, which a config refers to; create it.") from None


def _variable(name: str) -> str:
    try:
        from airflow.sdk import Variable
        from airflow.sdk.exceptions import AirflowRuntimeError

        from sluiceway.provider.compat import AirflowException
    except ImportError:
        raise _no_airflow(f"{VARIABLE}:{name}") from None
    try:
        return str(Variable.get(name))
    except (KeyError, AirflowException, AirflowRuntimeError, ImportError):  # as above
        raise ConfigError(f"Airflow has no variable {name!r}, which a config refers to; create it.") from None


def _field(connection: Any, conn_id: str, field: str) -> str | None:
    if field == "uri":
        return str(connection.get_uri())
    if field == "extra":
        return None if connection.extra is None else str(connection.extra)
    if field.startswith(_EXTRA):
        value = connection.extra_dejson.get(field[len(_EXTRA) :])
        return value if value is None or isinstance(value, str) else json.dumps(value)
    _check_field(conn_id, field)
    value = getattr(connection, field)
    return None if value is None else str(value)


def _check_field(conn_id: str, field: str) -> None:
    if field not in (*_FIELDS, "uri", "extra") and not field.startswith(_EXTRA):
        raise ConfigError(
            f"An Airflow connection has no field {field!r} (referred to in connection {conn_id}); available are "
            f"{', '.join(_FIELDS)}, uri, extra and extra.<name>."
        )


def _no_airflow(what: str) -> ConfigError:
    return ConfigError(
        f"Cannot resolve ${{airflow:{what}}}: this process has no Airflow. Run the connector by its DAG, whose task resolves "
        "the reference and passes on the value."
    )
