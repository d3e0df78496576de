"""Reads connectors from what other platforms keep them in, as parsed documents. No I/O.

* Strimzi: custom resources ``KafkaConnector`` (``kafka.strimzi.io``).
* Confluent for Kubernetes: custom resources ``Connector`` (``platform.confluent.io``).
* Amazon MSK Connect: the answer of ``aws kafkaconnect describe-connector``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.errors import ConfigError

_STRIMZI, _CONFLUENT = ("kafka.strimzi.io", "KafkaConnector"), ("platform.confluent.io", "Connector")
# The names of the class, the number of tasks, and the config in a resource's spec.
_FIELDS = {_STRIMZI: ("class", "tasksMax", "config"), _CONFLUENT: ("class", "taskMax", "configs")}
_STATES = {"running": "RUNNING", "paused": "PAUSED", "stopped": "STOPPED"}


def is_resource(document: object) -> bool:
    """Return whether a document is a Kubernetes resource."""
    return isinstance(document, Mapping) and "apiVersion" in document and "kind" in document


def items_of(document: Mapping[str, Any]) -> list[Any]:
    """Return the resources in one, which may be a list of them, as ``kubectl get -o yaml`` prints it."""
    items = document.get("items")
    return items if isinstance(items, list) else [document]


def is_connector(document: object) -> bool:
    """Return whether a document is a connector of another platform. Files often have other resources beside it."""
    if not isinstance(document, Mapping):
        return False
    return _kind(document) in _FIELDS or "connectorConfiguration" in document


def as_request(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a connector of another platform as a request of the REST API: name, config, and initial state.

    Raises ConfigError for a field that does not have its type.
    """
    if "connectorConfiguration" in document:
        config = _mapping(document, "connectorConfiguration", where)
        return {"name": document.get("connectorName") or config.get("name") or "", "config": config}
    kind = _kind(document)
    spec, metadata = _mapping(document, "spec", where), _mapping(document, "metadata", where)
    class_, tasks, configs = _FIELDS[kind]
    named = {"connector.class": spec.get(class_), "tasks.max": spec.get(tasks)}
    found: dict[str, Any] = {
        "name": spec.get("name") or metadata.get("name") or "",
        "config": {**{key: value for key, value in named.items() if value is not None}, **_mapping(spec, configs, where)},
    }
    state = _state(spec, where)
    return found if state is None else {**found, "initial_state": state}


def _kind(document: Mapping[str, Any]) -> tuple[str, str]:
    return str(document.get("apiVersion", "")).partition("/")[0], str(document.get("kind", ""))


def _mapping(document: Mapping[str, Any], field: str, where: str) -> Mapping[str, Any]:
    found = document.get(field) or {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"{where}: {field} must be a map.")
    return found


def _state(spec: Mapping[str, Any], where: str) -> str | None:
    given = spec.get("state")
    if given is None:
        return "PAUSED" if str(spec.get("pause", "")).lower() == "true" else None
    if str(given).lower() not in _STATES:
        raise ConfigError(f"{where}: spec.state is {given!r}, not one of {', '.join(_STATES)}.")
    return _STATES[str(given).lower()]
