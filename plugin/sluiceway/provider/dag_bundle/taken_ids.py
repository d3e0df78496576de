"""Keeps connectors away from the ids of DAGs that are not theirs. No I/O.

Of two files that define one DAG, Airflow uses the one that it has parsed last. A connector of the name of somebody's DAG would
replace that DAG, and pause it with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sluiceway.config.connector import APPLICATION
from sluiceway.errors import ConflictError
from sluiceway.provider.dag_bundle.dag_ids import APPLICATION_PREFIX, application_dag_id, dag_id
from sluiceway.provider.dag_bundle.dag_keys import DAG, is_generated

OtherBundles = Callable[[Collection[str]], Mapping[str, str]]
"""Returns the bundles of those of the given DAGs that other bundles define, by DAG."""


def refusal(name: str, dag: str, bundle: str) -> str:
    """Return the sentence about a connector whose DAG exists in another bundle."""
    return (
        f"Connector {name}: DAG {dag} exists in bundle {bundle}, and would be replaced by the connector's. Choose another name, "
        f"or, if that DAG runs the connector, set {DAG}={dag}."
    )


def reserved(name: str) -> str:
    """Return the sentence about a connector whose DAG would be that of a shared application."""
    return f"Connector {name}: names that begin with {APPLICATION_PREFIX} are those of shared applications' DAGs. Choose another."


def refuse_taken_ids(others: OtherBundles, name: str, config: Mapping[str, str]) -> None:
    """Raise ConflictError if a DAG that the connector needs has the id of a DAG of another bundle, or of an application."""
    if not is_generated(config):
        return
    if name.startswith(APPLICATION_PREFIX):
        raise ConflictError(reserved(name))
    needed = [dag_id(name), *([application_dag_id(config[APPLICATION])] if config.get(APPLICATION) else [])]
    for dag, bundle in others(needed).items():
        raise ConflictError(refusal(name, dag, bundle))
