"""The config and the store that a table source and its task share."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.connectors.tables.format import TableFormat
from sluiceway.connectors.tables.source.config import SourceOptions
from sluiceway.connectors.tables.source.store import SourceStore


class SourceFormat(TableFormat[SourceOptions, SourceStore]):
    """Base class of a format's source connector and its task."""

    @classmethod
    def shared_options(cls, config: Mapping[str, str]) -> SourceOptions:
        return SourceOptions.of(cls.prefix, cls.definition, config)
