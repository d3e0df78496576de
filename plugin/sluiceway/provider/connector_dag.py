"""Kept for the files in the DAG bundle that 0.1.0 wrote, which import from here. Use ``sluiceway.provider.dag_bundle``.

A task that starts before the DAG processor's first refresh after the upgrade still parses such a file.
"""

from __future__ import annotations

from sluiceway.provider.dag_bundle.connector_dag import application_dag, connector_dag

__all__ = ["application_dag", "connector_dag"]
