"""The path of the connector DAG bundle in Airflow's ``[dag_processor] dag_bundle_config_list``.

The stable name: every installation has it in its settings. The code is in ``sluiceway.provider.dag_bundle.bundle``.
"""

from __future__ import annotations

from sluiceway.provider.dag_bundle.bundle import ConnectorDagBundle

__all__ = ["ConnectorDagBundle"]
