"""Renders the documentation page (Markdown) of a generated DAG. No I/O.

The page has no config: Airflow stores it, and shows it to everybody who may read the DAG.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.provider.dag_bundle.dag_keys import MICRO_BATCH, DagKeys

_REST = "/sluiceway/connectors"


def connector_page(name: str, config: Mapping[str, str], keys: DagKeys, application: str | None = None) -> str:
    """Return the page of a connector's DAG. ``application`` is the shared application that runs it, if any."""
    path = f"{_REST}/{quote(name, safe='')}"
    links = " · ".join(f"[{each}]({path}/{each})" for each in ("status", "config", "offsets", "topics"))
    return (
        f"Connector `{name}` (`{config.get(CONNECTOR_CLASS, '')}`) {_schedule(keys, application)}.\n\n"
        "Kafka stores its config, offsets and status in Kafka Connect's format. Pausing this DAG pauses the connector, and "
        "pausing the connector pauses this DAG. This DAG is generated from the connector's config: change it there.\n\n"
        f"REST: {links}\n"
    )


def application_page(name: str) -> str:
    """Return the page of a shared application's DAG."""
    return (
        f"Spark application `{name}`: the driver of the connectors that share it, because of `sluiceway.application` in their "
        "configs or `sluiceway.application.default` in the worker's.\n\n"
        "Each connector has its own DAG, which pauses and resumes that connector alone. Pausing this DAG stops the application "
        "and all its connectors until the DAG is unpaused."
    )


def _schedule(keys: DagKeys, application: str | None) -> str:
    if application:
        return f"runs until it is paused, in the shared application `{application}`"
    if keys.mode != MICRO_BATCH:
        return "runs until it is paused"
    if keys.assets:
        when = f"when {'one' if keys.any_asset else 'all'} of {', '.join(f'`{each}`' for each in keys.assets)} changed"
    elif keys.lag is not None:
        when = f"when its lag reaches {keys.lag} records"
    elif keys.on_change:
        when = "when its system has something new"
    else:
        when = f"`{keys.schedule}`" if keys.schedule else "when it is triggered"
    return f"moves the available records at each run ({when})"
