"""The search sinks: write records to indexes of OpenSearch and Elasticsearch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sluiceway.api import IntervalRepeat, SinkConnector, SinkRecord
from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.search.connection import Server
from sluiceway.connectors.search.sink.config import (
    AIVEN,
    AUTO_IDS,
    CONFLUENT,
    ID_STRATEGY,
    aiven_conflicts,
    aiven_options,
    confluent_conflicts,
    confluent_options,
)
from sluiceway.connectors.search.sink.documents import Documents
from sluiceway.connectors.search.sink.options import Ids, SearchOptions
from sluiceway.connectors.search.sink.task import SearchSinkTask
from sluiceway.connectors.search.validation import SearchConnector
from sluiceway.errors import DataError


class ElasticsearchSinkTask(SearchSinkTask):
    """The task of a config of Confluent's connector."""

    @classmethod
    def options(cls, config: Mapping[str, str]) -> SearchOptions:
        return confluent_options(config)


class OpenSearchSinkTask(SearchSinkTask):
    """The task of a config of Aiven's connector."""

    @classmethod
    def options(cls, config: Mapping[str, str]) -> SearchOptions:
        return aiven_options(config)


class SearchSinkConnector(SearchConnector, SinkConnector):
    """Base of both connectors, which differ in their keys."""

    task_class: ClassVar[type[SearchSinkTask]]

    @classmethod
    def options(cls, config: Mapping[str, str]) -> SearchOptions:
        """Return the options of a config. Raises ConfigError."""
        return cls.task_class.options(config)

    @classmethod
    def server(cls, config: Mapping[str, str]) -> Server:
        return cls.options(config).server

    @classmethod
    def preview(cls, config: Mapping[str, str], records: Sequence[SinkRecord]) -> Sequence[str]:
        options = cls.options(config)
        documents, texts = Documents(options), []
        for record in records:
            try:
                action = documents.action(record, options.target_of(record.topic))
            except DataError as error:
                texts.append(f"Refused: {error}")
            else:
                texts.append("Nothing" if action is None else action.lines.decode().rstrip("\n"))
        return texts

    @classmethod
    def interval_repeat(cls, config: Mapping[str, str]) -> IntervalRepeat:
        automatic = config.get(AUTO_IDS, "").strip().lower() == "true"
        adds = automatic or config.get(ID_STRATEGY, "").strip().lower() == Ids.NONE.value
        return IntervalRepeat.ADDS if adds else IntervalRepeat.MERGES

    def start(self, config: Mapping[str, str]) -> None:
        self.options(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._config] * max_tasks


class ElasticsearchSinkConnector(SearchSinkConnector):
    """Writes the records of its topics to indexes of Elasticsearch or OpenSearch: a record replaces, changes or deletes the
    document with its key, or is a new one. Offsets are the documents' versions, so that a record that is written
    again changes nothing. The options are those of Confluent's connector. Tested with OpenSearch; the bulk API is the same.
    """

    task_class = ElasticsearchSinkTask
    java_class = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"
    java_task_class = "io.confluent.connect.elasticsearch.ElasticsearchSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFLUENT

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
        return confluent_conflicts(values, config)


class OpenSearchSinkConnector(SearchSinkConnector):
    """Writes the records of its topics to indexes or data streams of OpenSearch: a record replaces, changes or deletes the
    document with its key, or is a new one. Offsets are the documents' versions, so that a record that is written
    again changes nothing. The options are those of Aiven's connector.
    """

    task_class = OpenSearchSinkTask
    java_class = "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector"
    java_task_class = "io.aiven.kafka.connect.opensearch.OpensearchSinkTask"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return AIVEN

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
        return aiven_conflicts(values, config)
