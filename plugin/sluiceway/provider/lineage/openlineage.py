"""Reports a connector's lineage to OpenLineage, if its provider is installed. Runs in the Airflow task."""

from __future__ import annotations

import logging
from typing import Any

from sluiceway.errors import ConnectError
from sluiceway.provider.compat import AirflowException
from sluiceway.provider.lineage.datasets import DataSet, Description, Lineage

log = logging.getLogger(__name__)


class LineageMixin:
    """The methods that OpenLineage's listener calls on an operator.

    Lineage is reported at the start, since a connector may run for weeks, and again at the end, with the config that has run,
    and with the rows and bytes that were moved.
    """

    def get_openlineage_facets_on_start(self) -> Any:
        """Return the lineage when the task starts."""
        return self._openlineage()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return the lineage when the task has succeeded."""
        return self._openlineage()

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """Return the lineage when the task has failed."""
        return self._openlineage()

    def lineage(self) -> Lineage | None:
        """Return the connector's lineage; None if it is not known. May read from Kafka, and raise ConnectError."""
        raise NotImplementedError

    def _openlineage(self) -> Any:
        """Return an OperatorLineage; None without the provider, or if the lineage is not known."""
        try:
            from airflow.providers.openlineage.extractors import OperatorLineage
        except ImportError:
            return None
        try:
            found = self.lineage()
        except (ConnectError, AirflowException) as error:  # not a reason to fail the task; if it is, the task itself reports it
            log.warning("Cannot report lineage to OpenLineage: %s", error)
            return None
        if found is None:
            return None
        known = found.descriptions
        return OperatorLineage(
            inputs=[_input(each, known.get(each, Description())) for each in found.inputs],
            outputs=[_output(each, known.get(each, Description())) for each in found.outputs],
        )


def _input(found: DataSet, known: Description) -> Any:
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet

    facets: dict[str, Any] = {}
    if known.rows is not None:
        facets["inputStatistics"] = InputStatisticsInputDatasetFacet(rowCount=known.rows, size=known.size)
    return InputDataset(namespace=found.namespace, name=found.name, facets=_schema(known), inputFacets=facets)


def _output(found: DataSet, known: Description) -> Any:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet

    facets: dict[str, Any] = {}
    if known.rows is not None:
        facets["outputStatistics"] = OutputStatisticsOutputDatasetFacet(rowCount=known.rows, size=known.size)
    return OutputDataset(namespace=found.namespace, name=found.name, facets=_schema(known), outputFacets=facets)


def _schema(known: Description) -> dict[str, Any]:
    from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields

    fields = [SchemaDatasetFacetFields(name=each.name, type=each.type, description=each.doc) for each in known.fields]
    return {"schema": SchemaDatasetFacet(fields=fields)} if fields else {}
