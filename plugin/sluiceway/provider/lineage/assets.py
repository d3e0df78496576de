"""Airflow assets of connectors: the topics that a source writes to, what a sink writes to, and the connector itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sluiceway.config.parsing import parse_list
from sluiceway.provider.lineage.datasets import first_server

if TYPE_CHECKING:
    from airflow.sdk import Asset, AssetAlias

OUTLETS = "airflow.outlets"
"""A connector's key: URIs of what it writes to, separated by commas, beside those that are known without it."""


def topic_uri(bootstrap_servers: str, topic: str) -> str:
    """Return the URI of a topic: its cluster's first server, as the worker names it, and its name."""
    return f"kafka://{first_server(bootstrap_servers)}/{quote(topic, safe='')}"


def connector_uri(connector: str) -> str:
    """Return the URI of a connector: an event for each run that moved something."""
    return f"sluiceway://connectors/{quote(connector, safe='')}"


def written_uris(
    connector: str, config: Mapping[str, str], *, sink: bool, bootstrap_servers: str, topics: Collection[str]
) -> list[str]:
    """Return the URIs of all that a run has written to; ``topics`` are those that the connector was seen to use. Pure."""
    found = [connector_uri(connector)]
    if not sink:
        found += [topic_uri(bootstrap_servers, topic) for topic in sorted(topics)]
    elif (file := PurePosixPath(config.get("file", ""))).is_absolute():
        found.append(f"file://{quote(str(file))}")
    return [*found, *(uri for uri in parse_list(config.get(OUTLETS)) if uri not in found)]


def connector_alias(connector: str) -> AssetAlias:
    """Return the outlet of a connector's task: which assets it stands for is known when it has run."""
    from airflow.sdk import AssetAlias

    return AssetAlias(f"sluiceway-{connector}")


def connector_asset(connector: str) -> Asset:
    """Return the asset of a connector, for the schedule of a DAG that is to follow it."""
    from airflow.sdk import Asset

    return Asset(connector_uri(connector))


def topic_asset(bootstrap_servers: str, topic: str) -> Asset:
    """Return the asset of a topic, for the schedule of a DAG that is to follow what sources write to it."""
    from airflow.sdk import Asset

    return Asset(topic_uri(bootstrap_servers, topic))


def emit(outlet_events: Any, alias: AssetAlias, uris: Collection[str], extra: Mapping[str, Any]) -> None:
    """Have Airflow store an event for each asset once the task has succeeded. Airflow task."""
    from airflow.sdk import Asset

    for uri in uris:
        outlet_events[alias].add(Asset(uri), extra=dict(extra))
