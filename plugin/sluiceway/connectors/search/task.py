"""The search sinks' task: writes documents with the bulk API. Runs on the executors."""

from __future__ import annotations

import abc
import logging
from collections.abc import Hashable, Mapping, Sequence

from sluiceway.api import DONE, BatchSinkTask, Outcome, SinkRecord, WriteResult
from sluiceway.connectors.search.client import RefusedError, SearchClient, is_busy
from sluiceway.connectors.search.documents import Action, Documents, mapping
from sluiceway.connectors.search.options import Ids, Malformed, SearchOptions
from sluiceway.errors import ConnectError, DataError

log = logging.getLogger(__name__)

_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND, _CONFLICT, _TOO_LARGE = 400, 403, 404, 409, 413
# The index is full, or its disk is, or the cluster is choosing a leader: the document is written when that is over.
_LATER = frozenset(("cluster_block_exception", "process_cluster_event_timeout_exception", "unavailable_shards_exception"))
# No document would be taken, so that it is no fault of this one.
_NOBODYS = frozenset(
    ("index_not_found_exception", "invalid_index_name_exception", "security_exception", "index_closed_exception")
)


class SearchSinkTask(BatchSinkTask[Action]):
    """Writes documents to one cluster over one connection, a request at a time.

    With ids of keys, the offset is the document's version, so that a record that comes again changes nothing, and a late one
    never replaces a newer one.
    """

    _client: SearchClient | None = None

    @abc.abstractmethod
    def options(self, config: Mapping[str, str]) -> SearchOptions:
        """Return the options of a config. Raises ConfigError."""

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = self.options(config)
        self.limits = options.limits
        self._documents = Documents(options)
        self._client = SearchClient(options.server)
        self._targets: dict[str, str] = {}
        self._ready: set[tuple[str, str]] = set()
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
        for item in items:
            topics = (item.record.topic, item.record.original_topic)
            if topics not in self._ready:
                self._make_ready(item.record)
                self._ready.add(topics)
        return self._bulk(items)

    def _bulk(self, items: Sequence[Action]) -> list[WriteResult]:
        try:
            answers = self._opened().bulk([item.lines for item in items])
        except RefusedError as error:
            if error.status not in (_BAD_REQUEST, _TOO_LARGE):
                raise
            if len(items) == 1:
                return [self._malformed(items[0], str(error))]
            half = len(items) // 2  # too much for the server, or one is so broken that it cannot read the request
            return [*self._bulk(items[:half]), *self._bulk(items[half:])]
        if len(answers) != len(items):
            raise ConnectError(f"The server answered for {len(answers)} of {len(items)} documents.")
        return [self._result(item, *answer) for item, answer in zip(items, answers, strict=True)]

    def _result(self, item: Action, status: int, kind: str, reason: str) -> WriteResult:
        """Return what an answer means."""
        if status < 300:
            return DONE
        if status == _CONFLICT:  # the server has this version or a newer one; an update met another writer's
            return DONE if item.versioned else WriteResult(Outcome.RETRY, f"{kind}: {reason}")
        if kind in _NOBODYS:
            raise ConnectError(f"The server takes no documents: {kind}: {reason}")
        if is_busy(status) or kind in _LATER:
            return WriteResult(Outcome.RETRY, f"{kind}: {reason}")
        if status == _NOT_FOUND and item.lines.startswith(b'{"delete"'):
            return DONE
        return self._malformed(item, f"{kind}: {reason}")

    def _malformed(self, item: Action, reason: str) -> WriteResult:
        if self._options.malformed is Malformed.FAIL:
            return WriteResult(Outcome.REFUSED, reason)
        record = item.record
        if self._options.malformed is Malformed.WARN:
            _left_out(record, reason)
        if (reporter := self.context.errant_record_reporter) is not None:
            reporter.report(record, ConnectError(reason))
        return DONE

    def _make_ready(self, record: SinkRecord) -> None:
        """Create the index or data stream of a record's topic, unless it exists, and define the fields of the first schema."""
        options, target = self._options, self._targets[record.topic]
        topics = self._topics.get(target)
        if topics is None:
            if record.topic not in options.resources:
                if options.writes_streams:
                    self._make_stream(target)
                else:
                    self._make_index(target, record)
            topics = self._topics[target] = set()
        topics.add(record.original_topic)
        if len(topics) > 1 and options.version_header is None and options.ids_of(record.topic) is Ids.KEY:
            log.warning(
                "%s gets documents from the topics %s. Their offsets are the documents' versions: of two records with one key in "
                "different topics, the one with the higher offset stays. Give each topic an index of its own.",
                target,
                ", ".join(sorted(topics)),
            )

    def _make_index(self, index: str, record: SinkRecord) -> None:
        client, schema = self._opened(), record.value_schema
        defined = None
        if schema is not None and self._options.uses_schema(record.topic):
            defined = mapping(schema, compact=self._options.compact_maps)
            defined = defined if "properties" in defined else None
        fields = client.mapping_of(index)
        if fields is None:
            client.create_index(index, defined)
            log.info("Created the index %s", index)
        elif not fields and defined is not None:
            client.add_fields(index, defined)

    def _make_stream(self, name: str) -> None:
        client, stream = self._opened(), self._options.stream
        if client.has(f"/_data_stream/{name}"):
            return
        if stream is not None and stream.template is not None and not client.has(f"/_index_template/{stream.template}"):
            client.create_template(stream.template, stream.name.replace("${topic}", "*"))
        client.create_stream(name)
        log.info("Created the data stream %s", name)

    def _opened(self) -> SearchClient:
        if self._client is None:
            raise ConnectError("The search sink's task has not been started. Call start() first.")
        return self._client


def _left_out(record: SinkRecord, reason: object) -> None:
    topic, partition = record.original_topic_partition
    log.warning("%s-%d at offset %d is left out: %s", topic, partition, record.original_kafka_offset, reason)
