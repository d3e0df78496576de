"""What a connector's operator tells OpenLineage, where its provider is installed. Runs in the Airflow task's process."""

from __future__ import annotations

import logging
from typing import Any

from airflow.exceptions import AirflowException

from sluiceway.errors import ConnectError
from sluiceway.provider.lineage.datasets import DataSet, Lineage

log = logging.getLogger(__name__)


class LineageMixin:
    """The methods that OpenLineage's listener asks an operator for; both ends of the connector at the start and at the end.

    A connector that runs for weeks is known from its first minute; on_complete and on_failure repeat it, with the config that
    really ran.
    """

    def get_openlineage_facets_on_start(self) -> Any:
        return self._openlineage()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        return self._openlineage()

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        return self._openlineage()

    def lineage(self) -> Lineage | None:
        """Return both ends of the connector, None if they are not known; may ask Kafka, and raise ConnectError."""
        raise NotImplementedError

    def _openlineage(self) -> Any:
        """Return an OperatorLineage; None without the provider, or while it is not known what the connector moves."""
        try:
            from airflow.providers.openlineage.extractors import OperatorLineage
        except ImportError:
            return None
        try:
            found = self.lineage()
        except (ConnectError, AirflowException) as error:  # no reason for a task to fail; if it is one, the task says it again
            log.warning("No lineage: %s", error)
            return None
        if found is None:
            return None
        return OperatorLineage(inputs=[*map(_dataset, found.inputs)], outputs=[*map(_dataset, found.outputs)])


def _dataset(found: DataSet) -> Any:
    from airflow.providers.common.compat.openlineage.facet import Dataset

    return Dataset(namespace=found.namespace, name=found.name)
