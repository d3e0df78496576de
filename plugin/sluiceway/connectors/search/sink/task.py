"""The search sinks' task: writes documents with the bulk API. Runs on the executors."""

from __future__ import annotations

import abc
import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sluiceway.api import DONE, BatchSinkTask, Outcome, SinkRecord, WriteResult
from sluiceway.connectors.search.client import RefusedError, SearchClient, is_busy
from sluiceway.connectors.search.sink.documents import Action, Documents, mapping
from sluiceway.connectors.search.sink.options import MALFORMED, RESOURCES, Ids, Malformed, SearchOptions
from sluiceway.errors import ConfigError, ConnectError, DataError

log = logging.getLogger(__name__)

_BAD_REQUEST, _NOT_FOUND, _CONFLICT, _TOO_LARGE = 400, 404, 409, 413
_TOO_MUCH_MEMORY, _NO_MAPPING = "circuit_breaking_exception", "mapper_parsing_exception"
# The index is full, or its disk is, or the cluster is choosing a leader: the document is written when that is over.
_LATER = frozenset(("cluster_block_exception", "process_cluster_event_timeout_exception", "unavailable_shards_exception"))
# No document would be taken, so that it is no fault of this one.
_NOBODYS = frozenset(
    (
        "index_not_found_exception",
        "invalid_index_name_exception",
        "security_exception",
        "index_closed_exception",
        "routing_missing_exception",
    )
)


# Reasons that are about what is written to, not about the document.
_TARGETS = ("no write index is defined", "only write ops with an op_type of create are allowed")


class SearchSinkTask(BatchSinkTask[Action]):
    """Writes documents to one cluster over one connection, a request at a time.

    With ids of keys, the offset is the document's version, so that a record that comes again changes nothing, and a late one
    never replaces a newer one.
    """

    _client: SearchClient | None = None

    @classmethod
    @abc.abstractmethod
    def options(cls, config: Mapping[str, str]) -> SearchOptions:
        """Return the options of a config. Raises ConfigError."""

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = self.options(config)
        self.limits = options.limits
        if options.malformed is Malformed.REPORT and self.context.errant_record_reporter is None:
            raise ConfigError(f"{MALFORMED}=report needs a dead letter queue: set errors.tolerance=all and its topic.")
        self._documents = Documents(options)
        self._client = SearchClient(options.server)
        self._targets: dict[str, str] = {}
        self._ready: set[tuple[str, str]] = set()  # topics and original topics
        self._topics: dict[str, set[str]] = {}

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def prepare(self, record: SinkRecord) -> Action | None:
        target = self._targets.get(record.topic)
        if target is None:
            target = self._targets[record.topic] = self._options.target_of(record.topic)
        try:
            return self._documents.action(record, target)
        except DataError as error:
            if not self._options.drop_invalid:
                raise
            _left_out(record, error)
            return None

    def size_of(self, item: Action) -> int:
        return len(item.lines)

    def order_key(self, item: Action) -> Hashable:
        return item.key

    def write(self, items: Sequence[Action]) -> Sequence[WriteResult]:
        self._make_ready(items)
        return self._bulk(items)

    def _bulk(self, items: Sequence[Action]) -> list[WriteResult]:
        try:
            answers = self._opened().bulk([item.lines for item in items])
        except RefusedError as error:
            if error.status not in (_BAD_REQUEST, _TOO_LARGE) and not is_busy(error.status):
                raise
            too_large = error.status == _TOO_LARGE or error.kind == _TOO_MUCH_MEMORY
            if len(items) > 1 and (too_large or error.status == _BAD_REQUEST):  # one document is so odd that none can be read
                return self._bulk_halves(items, too_large=too_large)
            outcome = Outcome.RETRY if is_busy(error.status) else Outcome.REFUSED
            return [WriteResult(outcome, str(error))] * len(items)
        if len(answers) != len(items):
            raise ConnectError(f"The server answered for {len(answers)} of {len(items)} documents.")
        return [self._result(item, *answer) for item, answer in zip(items, answers, strict=True)]

    def _bulk_halves(self, items: Sequence[Action], *, too_large: bool) -> list[WriteResult]:
        half = len(items) // 2
        first, second = items[:half], items[half:]
        if too_large:  # the next requests are smaller from the start
            most = max(sum(map(self.size_of, each)) for each in (first, second))
            self.limits = replace(self.limits, size=min(most, self.limits.size or most))
        return [*self._bulk(first), *self._bulk(second)]

    def _result(self, item: Action, status: int, kind: str, reason: str) -> WriteResult:
        """Return what an answer means."""
        if status < 300:
            return DONE
        if status == _NOT_FOUND and item.deletes:
            return DONE
        if status == _CONFLICT:  # the server has this version or a newer one; an update met another writer's
            return DONE if item.versioned else WriteResult(Outcome.RETRY, f"{kind}: {reason}")
        if kind in _NOBODYS or any(text in reason for text in _TARGETS):
            raise ConnectError(f"The server takes no documents: {kind}: {reason}")
        if is_busy(status) or kind in _LATER:
            return WriteResult(Outcome.RETRY, f"{kind}: {reason}")
        return WriteResult(Outcome.REFUSED, f"{kind}: {reason}")

    def refused(self, record: SinkRecord, error: ConnectError) -> None:
        """Report a bad record, or leave it out, as ``behavior.on.malformed.documents`` says."""
        malformed = self._options.malformed
        if malformed is Malformed.FAIL:
            super().refused(record, error)
            return
        if malformed is Malformed.WARN:
            _left_out(record, error)
        reporter = self.context.errant_record_reporter
        if reporter is not None and self.context.configs.get("errors.tolerance") == "all":
            reporter.report(record, error)

    def _make_ready(self, items: Sequence[Action]) -> None:
        """Create the indexes or data streams of the records' topics that do not exist, with the fields of the first schema."""
        firsts: dict[tuple[str, str], SinkRecord] = {}
        for item in items:
            topics = (item.record.topic, item.record.original_topic)
            if topics not in self._ready:
                first = firsts.setdefault(topics, item.record)
                if first.value_schema is None and item.record.value_schema is not None:
                    firsts[topics] = item.record  # a tombstone has no schema
        for topics, record in firsts.items():
            target = self._targets[record.topic]
            if target not in self._topics:
                if record.value is None and record.topic not in self._options.resources:
                    continue  # until there is a document
                self._make_target(target, record)
            self._topics.setdefault(target, set()).add(record.original_topic)
            self._warn_of_topics(target, record)
            self._ready.add(topics)

    def _make_target(self, target: str, record: SinkRecord) -> None:
        if record.topic in self._options.resources:
            if self._opened().mapping_of(target) is None:
                raise ConnectError(f"{target}, which {RESOURCES} names for the topic {record.topic}, does not exist. Create it.")
        elif self._options.writes_streams:
            self._make_stream(target, record)
        else:
            self._make_index(target, record)

    def _warn_of_topics(self, target: str, record: SinkRecord) -> None:
        topics = self._topics[target]
        if len(topics) > 1 and self._options.version_header is None and self._options.ids_of(record.topic) is Ids.KEY:
            log.warning(
                "%s gets documents from the topics %s. Their offsets are the documents' versions: of two records with one key in "
                "different topics, the one with the higher offset stays. Give each topic an index of its own.",
                target,
                ", ".join(sorted(topics)),
            )

    def _fields_of(self, record: SinkRecord) -> dict[str, Any] | None:
        schema = record.value_schema
        if schema is None or not self._options.uses_schema(record.topic):
            return None
        defined = mapping(schema, compact=self._options.compact_maps)
        return defined if "properties" in defined else None

    def _make_index(self, index: str, record: SinkRecord) -> None:
        client, defined = self._opened(), self._fields_of(record)
        fields = client.mapping_of(index)
        if fields is None:
            try:
                client.create_index(index, defined)
            except RefusedError as error:
                if error.kind != _NO_MAPPING or defined is None:
                    raise
                log.warning("%s is created without the fields of the first schema, which the server refuses: %s", index, error)
                client.create_index(index, None)
            log.info("Created the index %s", index)
        elif not fields and defined is not None:
            client.add_fields(index, defined)

    def _make_stream(self, name: str, record: SinkRecord) -> None:
        client, stream = self._opened(), self._options.stream
        if client.has("_data_stream", name):
            return
        if stream is not None and stream.template is not None and not client.has("_index_template", stream.template):
            client.create_template(stream.template, name)
        try:
            client.create_stream(name)
        except RefusedError as error:
            if "no matching index template" not in str(error) or stream is None or not stream.makes_template:
                raise
            client.create_template(f"{name}-connector-data-stream-template", name)
            client.create_stream(name)
        log.info("Created the data stream %s", name)
        if (defined := self._fields_of(record)) is not None:
            client.add_fields(name, defined)

    def _opened(self) -> SearchClient:
        if self._client is None:
            raise ConnectError("The search sink's task has not been started. Call start() first.")
        return self._client


def _left_out(record: SinkRecord, reason: object) -> None:
    topic, partition = record.original_topic_partition
    log.warning("%s-%d at offset %d is left out: %s", topic, partition, record.original_kafka_offset, reason)
