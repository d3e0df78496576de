"""The search sinks: write records to indexes of OpenSearch and Elasticsearch."""

from __future__ import annotations

import abc
import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import ClassVar

from sluiceway.api import SinkConnector, SinkRecord
from sluiceway.config.definition import ConfigDef, ConfigValue, ValidatedValue
from sluiceway.connectors.search.client import FORBIDDEN, UNAUTHORIZED, RefusedError, SearchClient
from sluiceway.connectors.search.config import (
    AIVEN,
    CONFLUENT,
    PASSWORD,
    USER,
    aiven_conflicts,
    aiven_options,
    confluent_conflicts,
    confluent_options,
)
from sluiceway.connectors.search.documents import Documents
from sluiceway.connectors.search.options import URL, SearchOptions
from sluiceway.connectors.search.task import SearchSinkTask
from sluiceway.errors import ConfigError, DataError

log = logging.getLogger(__name__)


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


class SearchSinkConnector(SinkConnector):
    """Base of both connectors, which differ in their keys."""

    task_class: ClassVar[type[SearchSinkTask]]

    @classmethod
    def options(cls, config: Mapping[str, str]) -> SearchOptions:
        """Return the options of a config. Raises ConfigError."""
        return cls.task_class.options(config)

    @classmethod
    @abc.abstractmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> dict[str, str]:
        """Return the errors of keys that conflict, by the key to change."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Check the keys and the login. A server that cannot be reached is no error, because tasks wait for it."""
        found = cls.check(config)
        if any(each.errors for each in found.values()):
            return found
        try:
            with closing(SearchClient(cls.options(config).server)) as client:
                client.about()
        except OSError as error:
            log.warning("%s", error)
        except RefusedError as error:
            if error.status == FORBIDDEN:  # who may write need not have the right to ask for the server's version
                return found
            for key in (USER, PASSWORD) if error.status == UNAUTHORIZED else (URL,):
                found[key].errors.append(str(error))
        except ConfigError as error:  # of a trust or key store
            found[URL].errors.append(str(error))
        return found

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        definition = cls.config_def()
        found = definition.validate(config)
        if any(found[key.name].errors for key in definition):
            return found
        values = {key.name: found[key.name].value for key in definition}
        for name, message in cls.conflicts(values, config).items():
            found[name].errors.append(str(ConfigError(name, values[name], message)))
        return found

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
