"""Runs Java sink tasks. Their records come as values, or as messages that Java converts and transforms itself.

Java may even read these messages itself, so that they never cross to Python, which would take longer than all else. Python is the
member of the consumer group in any case, and commits.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol, cast

from sluiceway.api import ErrantRecordReporter, NotColumnar, SinkRecord, SinkTask, SinkTaskContext, TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.errors import JavaError, java_error
from sluiceway.java_plugins.fetched import FetchedMessages, FetchedPut
from sluiceway.java_plugins.host import JavaObject
from sluiceway.java_plugins.hosts import PluginLocation, current_slot, reference
from sluiceway.java_plugins.messages import packed_messages
from sluiceway.java_plugins.records import rows_of, sink_record_of
from sluiceway.java_plugins.source_task import StopWatch
from sluiceway.java_plugins.values import Values
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.kafka.group_metadata import ConsumerGroup

# For one request to put what the task reads, before Python looks again at commands, commits and the group.
_PUTS_MILLISECONDS = 150
# Of the time a task may take to stop. Late, because Kafka Connect waits that long for put(), which may be about to succeed.
_INTERRUPT_SHARE = 0.6


FetchMetrics = Sequence[tuple[Mapping[str, str], Mapping[str, float]]]
"""Tags and values of the metrics ``consumer-fetch-manager-metrics`` of Kafka's Java consumer."""


class ReportedMessage(NamedTuple):
    """A consumed message that a task reports as bad, from Java. It has the fields of the runtime's ``ConsumerRecord``."""

    topic: str
    partition: int
    offset: int
    timestamp_type: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class _Context(SinkTaskContext, Protocol):
    """The runtime's context: ``SinkTaskContext`` and more."""

    def consumer_group(self) -> ConsumerGroup: ...

    def group_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]: ...


class _Reporter(ErrantRecordReporter, Protocol):
    """The runtime's reporter: ``ErrantRecordReporter`` and more."""

    def report_message(self, original: ReportedMessage, error: BaseException) -> object: ...


class JavaSinkTask(SinkTask):
    """A sink task whose class is Java. Each plugin has a subclass of this class, with its ``plugin``.

    With a chain (see ``prepare``), ``put`` takes ``MessagesForJava``, and converts and transforms them first.
    """

    plugin: ClassVar[PluginLocation]

    take_fetch_metrics: Callable[[FetchMetrics], None] = staticmethod(lambda _metrics: None)
    """Called every few seconds with the metrics of the consumer with which the task reads."""

    _chain: Mapping[str, object] | None = None
    _consumer: Mapping[str, str] | None = None
    _object: JavaObject | None = None
    _stopping: StopWatch | None = None
    _ahead: FetchedMessages | None = None
    _most = 0

    def prepare(
        self,
        chain: Mapping[str, object] | None,
        consumer: Mapping[str, str] | None,
        must_stop: Callable[[], bool],
        stop_seconds: float,
        interrupted: Callable[[], NoReturn],
    ) -> None:
        """Set the chain of converters and transforms (see ``Chain.java``), and how the task learns that it must stop.

        Without a chain, the task gets records. ``consumer`` is the config of the Java consumer that ``read`` uses, None to be
        given messages. ``must_stop`` is called while a call of the task lasts, and may raise to leave it. A call that lasts for
        ``stop_seconds`` more is ended by ending its Java process. Before that, its thread is interrupted. ``put`` and
        ``pre_commit`` then call ``interrupted``, which raises, because the task may have written only some of the records,
        whether it throws an exception or not.
        """
        self._chain = chain
        self._consumer = consumer
        self._stopping = StopWatch(must_stop, stop_seconds, _INTERRUPT_SHARE)
        self._interrupted = interrupted

    def start(self, config: Mapping[str, str]) -> None:
        slot = current_slot()
        self._values = Values()
        self._reports = self.context.errant_record_reporter is not None
        arguments = {
            "plugin": reference(self.plugin, config["task.class"]),
            "config": dict(config),
            "chain": self._chain,
            "consumer": self._consumer or {},
            "reports": self._reports,
        }
        stopping = self._stopping

        def watch(task: JavaObject) -> None:
            if stopping is not None:
                stopping(task, "The constructor")

        self._object = slot.host().new("sink", arguments, context=slot.context, handler=self._serve, watch=watch)
        self._call("start")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self._call("open", _rows(partitions))

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self._call("close", _rows(partitions))

    def put(self, records: Sequence[SinkRecord]) -> None:
        if isinstance(records, MessagesForJava):
            self._put_messages(records)
            return
        rows = self._values.dumps(lambda: rows_of(self._values, records, originals=self._reports))
        self._deliver("values", None, rows)

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        safe = self._deliver("preCommit", [[*partition, offset] for partition, offset in offsets.items()])
        return {TopicPartition(topic, partition): offset for topic, partition, offset in safe}

    def stop(self) -> None:
        if self._object is None or not self._object.host.alive:
            return
        if self._stopping is not None:
            self._stopping.begin()
        self._call("stop")

    @property
    def reads(self) -> bool:
        """True if the task reads its messages itself."""
        return self._consumer is not None

    def read(self, changes: Sequence[object], seconds: float, most: int) -> FetchedMessages:
        """Read messages, at most ``most``, and wait up to ``seconds`` for the first.

        ``changes`` of the partitions to read come first, each ``[kind, [[topic, partition, offset or None], ...]]``. Kinds are
        assign, unassign, pause, resume and seek. Without any, returns what the last ``put`` has read ahead, if it has.
        """
        self._most = most
        ahead, self._ahead = self._ahead, None
        if ahead and not changes:
            return ahead
        return self._fetched(self._call("read", {"changes": changes, "milliseconds": int(seconds * 1000), "most": most}))

    def _fetched(self, described: Mapping[str, Any]) -> FetchedMessages:
        if "metrics" in described:
            self.take_fetch_metrics(described["metrics"])
        return FetchedMessages.of(described)

    def _put_messages(self, records: MessagesForJava) -> None:
        messages, records.messages = records.messages, None
        result: int | Mapping[str, Any]
        if messages is None:
            result = self._deliver("put")
        elif isinstance(messages, FetchedMessages):
            arguments = {"without": _rows(messages.left_out), "most": self._most, "milliseconds": _PUTS_MILLISECONDS}
            result = self._deliver("fetched", arguments)
        else:
            result = self._deliver("messages", *packed_messages(messages))
        if isinstance(result, int):
            records.size = result
        elif messages is not None and "failures" in result:
            raise NotConvertedError(messages, result)
        else:
            self._ahead = self._fetched(result["ahead"]) if result["ahead"] else None
            records.size = result["count"]
            records.put_since = [FetchedPut.of(each) for each in result["more"]]

    @property
    def skips(self) -> bool:
        """True if Java leaves out messages that fail, and goes on; else it stops at the first."""
        return bool((self._chain or {}).get("skips"))

    def convert_again(self) -> int | Mapping[str, Any]:
        """Convert the message that failed, and those after it."""
        result: int | Mapping[str, Any] = self._call("convert")
        return result

    def skip(self) -> int | Mapping[str, Any]:
        """Leave out the message that failed and convert those after it."""
        result: int | Mapping[str, Any] = self._call("skip")
        return result

    def drop(self, partitions: Collection[TopicPartition]) -> int:
        """Drop the converted records of partitions; return how many are left."""
        left: int = self._call("drop", _rows(partitions))
        return left

    def _deliver(self, method: str, args: object = None, body: bytes = b"") -> Any:
        """Call a method whose success means that records are written."""
        try:
            result = self._call(method, args, body)
        except JavaError:
            self._check_not_interrupted()
            raise
        self._check_not_interrupted()
        return result

    def _check_not_interrupted(self) -> None:
        if self._stopping is not None and self._stopping.interrupted:
            self._interrupted()

    def _call(self, method: str, args: object = None, body: bytes = b"") -> Any:
        if self._object is None:
            raise ConnectError("The task is not started.")
        stopping = self._stopping
        if stopping is None:
            return self._object.call(method, args, body)
        return self._object.call(method, args, body, watch=lambda _: stopping(self._object, f"{method}()"))

    # On the host's thread, while the task's thread waits for a call or, for a thread of the plugin's own, at any time.

    def _serve(self, method: str, args: Any) -> object:
        context = self.context
        if method == "offset":
            context.offset({TopicPartition(topic, partition): offset for topic, partition, offset in args})
        elif method == "timeout":
            context.timeout(args)
        elif method == "pause":
            context.pause(*(TopicPartition(*each) for each in args))
        elif method == "resume":
            context.resume(*(TopicPartition(*each) for each in args))
        elif method == "requestCommit":
            context.request_commit()
        elif method == "report":
            self._report(args)
        elif method == "group":
            return cast(_Context, context).consumer_group()._asdict()
        elif method == "committed":
            found = cast(_Context, context).group_offsets([TopicPartition(*each) for each in args])
            return [[*partition, offset] for partition, offset in found.items()]
        else:
            raise ConnectError(f"Sluiceway does not serve {method} to sink tasks.")
        return None

    def _report(self, args: Mapping[str, Any]) -> None:
        error = java_error(args["error"])
        reporter = self.context.errant_record_reporter
        try:
            if (message := args.get("message")) is not None:
                cast(_Reporter, reporter).report_message(_message(message), error)
            elif reporter is not None:
                values = Values()
                reporter.report(sink_record_of(values, values.loads(base64.b64decode(args["record"]))), error)
        except Exception:
            raise
        except BaseException as stopped:  # a command, which the reporter also raises on the task's thread
            raise ConnectError("The task must stop, so the record is not reported.") from stopped


class NotConvertedError(NotColumnar):
    """Some of the messages could not be converted or transformed, so nothing was put.

    ``described`` has the ``failures``, ``count``, the number of records that are in Java, and ``more``, whether messages are left
    after the last failure. Call ``convert_again`` or ``skip`` for these, and then ``put`` with the records in Java.
    """

    def __init__(self, messages: Sequence[ConsumedMessage], described: Mapping[str, Any]) -> None:
        super().__init__()
        self.messages = messages
        self.described = described

    def message(self, failure: Mapping[str, Any]) -> ConsumedMessage | ReportedMessage:
        """Return the message of one of the ``failures``."""
        if isinstance(self.messages, FetchedMessages):
            return _message(failure["consumed"])
        index: int = failure["index"]
        return self.messages[index]


class MessagesForJava(Sequence[SinkRecord]):
    """Consumed messages as the records of a ``put``, or records that are in Java already.

    ``messages`` is None once they are in Java; ``size`` is the number of records, as far as it is known. ``put_since`` are
    further messages that the task has read and put.
    """

    def __init__(self, messages: Sequence[ConsumedMessage] | None, size: int = 0) -> None:
        self.messages = messages
        self.size = len(messages) if messages is not None else size
        self.put_since: Sequence[FetchedPut] = ()

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("The records of a Java task are in Java.")


def _rows(partitions: Collection[TopicPartition]) -> list[list[object]]:
    return [[*partition] for partition in partitions]


def _message(row: Sequence[Any]) -> ReportedMessage:
    topic, partition, offset, kind, timestamp, key, value, headers = row
    return ReportedMessage(
        topic, partition, offset, kind, timestamp, _bytes(key), _bytes(value), [(name, _bytes(data)) for name, data in headers]
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
