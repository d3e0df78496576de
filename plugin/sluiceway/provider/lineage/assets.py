"""Names the Airflow assets of connectors: a source's topics, what a sink writes to, and the connector itself."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sluiceway.config.connector import OUTLETS
from sluiceway.config.parsing import parse_list
from sluiceway.provider.lineage.datasets import first_server, lineage, uri

if TYPE_CHECKING:
    from airflow.sdk import Asset, AssetAlias

log = logging.getLogger(__name__)


def topic_uri(bootstrap_servers: str, topic: str) -> str:
    """Return the URI of a topic, with the first server of ``bootstrap_servers``."""
    return f"kafka://{first_server(bootstrap_servers)}/{quote(topic, safe='')}"


def connector_uri(connector: str) -> str:
    """Return the URI of a connector. Each run that moves records creates an event of this asset."""
    return f"sluiceway://connectors/{quote(connector, safe='')}"


def written_uris(
    connector: str, config: Mapping[str, str], *, sink: bool, bootstrap_servers: str, topics: Collection[str]
) -> list[str]:
    """Return the URIs of the assets that a run updates.

    Args:
        topics: the connector's active topics (KIP-558).
    """
    found = [connector_uri(connector)]
    if not sink:
        found += [topic_uri(bootstrap_servers, topic) for topic in sorted(topics)]
    else:
        found += [uri(each) for each in lineage(config, bootstrap=bootstrap_servers, sink=True).outputs]
    return [*found, *(each for each in parse_list(config.get(OUTLETS)) if each not in found)]


def connector_alias(connector: str) -> AssetAlias:
    """Return the outlet of a connector's task. An alias, because the assets are known only after the run."""
    from airflow.sdk import AssetAlias

    return AssetAlias(f"sluiceway-{connector}")


def connector_asset(connector: str) -> Asset:
    """Return the asset of a connector, for the schedule of a DAG that runs after it."""
    from airflow.sdk import Asset

    return Asset(connector_uri(connector))


def topic_asset(bootstrap_servers: str, topic: str) -> Asset:
    """Return the asset of a topic, for the schedule of a DAG that runs after a source has written to it."""
    from airflow.sdk import Asset

    return Asset(topic_uri(bootstrap_servers, topic))


def emit(outlet_events: Any, alias: AssetAlias, uris: Collection[str], extra: Mapping[str, Any]) -> None:
    """Add an event for each asset, which Airflow stores when the task succeeds. Runs in the Airflow task.

    Args:
        outlet_events: of the task's context.
        extra: the extra of every event, as JSON values.
    """
    for asset in _assets(uris):
        outlet_events[alias].add(asset, extra=dict(extra))


def asset_uris(uris: Collection[str]) -> list[str]:
    """Return URIs as Airflow stores them, without those that none of its assets can have."""
    return [asset.uri for asset in _assets(uris)]


def _assets(uris: Collection[str]) -> Iterator[Asset]:
    from airflow.sdk import Asset

    for each in uris:
        try:
            yield Asset(each)
        except ValueError as error:  # a provider of Airflow's has rules of its own for a scheme
            log.warning("No event of asset %s: %s", each, error)
