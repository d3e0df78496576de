"""SqsSourceConnector and its task: take the messages of queues of SQS, and delete each once Kafka has its record."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sluiceway.api import ExactlyOnceSupport, Message, QueueLimits, QueueSourceTask, SourceConnector
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type, ValidatedValue
from sluiceway.config.validators import Check, EnumText, NonEmptyString, OrNull, Range
from sluiceway.connectors.aws.client import aws_errors, opened
from sluiceway.connectors.aws.connection import Account, AwsConnector, connection_keys
from sluiceway.connectors.aws.sqs_messages import HEADERS, OWN_HEADERS, QUEUE_PLACEHOLDER, TOPIC, VALUES, Records, receives_of
from sluiceway.connectors.aws.sqs_queue import (
    MOST_AT_ONCE,
    SERVICE,
    URL,
    Queue,
    check_queue,
    failure_text,
    failures_of,
    numbered,
    queue_of,
    sqs_account,
)
from sluiceway.connectors.aws.sqs_receivers import Received, Receivers, Room
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.keys import flag, text, whole
from sluiceway.errors import ConfigError

log = logging.getLogger(__name__)

MESSAGES, WAIT, PREFETCH, RECEIVERS = "sqs.messages.max", "sqs.waittime.seconds", "sqs.prefetch", "sqs.receivers"
VISIBILITY = "sqs.visibility.timeout.seconds"
_QUEUES = "Queues"
_RECORDS = "Records"
_EXTEND_SECONDS = 0.5  # between two checks whether messages must be hidden for longer
_LEAST_VISIBILITY = 10  # seconds; with less, messages would come again while they are on their way to Kafka
_LONGEST_VISIBILITY = 43_200  # SQS' own limit, from the receive on
_IN_PARALLEL = 8

CONFIG = ConfigDef(
    [
        *connection_keys(SERVICE),
        ConfigKey(
            name=URL,
            type=Type.LIST,
            validator=Check(check_queue, "URLs or names of queues"),
            importance=Importance.HIGH,
            group=_QUEUES,
            doc="The URLs of the queues, or their names, separated by commas. They must exist.",
        ),
        ConfigKey(
            name=MESSAGES,
            type=Type.INT,
            default=MOST_AT_ONCE,
            validator=Range(1, MOST_AT_ONCE),
            importance=Importance.LOW,
            group=_QUEUES,
            doc="The most messages of a request.",
        ),
        ConfigKey(
            name=WAIT,
            type=Type.INT,
            default=20,
            validator=Range(0, 20),
            importance=Importance.LOW,
            group=_QUEUES,
            doc="Seconds for which SQS holds a request of an empty queue. With 0, SQS asks some of its servers only, so that a "
            "run may end although there are messages, and many requests are paid for.",
        ),
        whole(
            PREFETCH,
            500,
            1,
            _QUEUES,
            "The most messages of each queue that a task has and Kafka has not. So many may be doubled when a task is killed, "
            "and nobody else receives them meanwhile.",
            importance=Importance.MEDIUM,
        ),
        whole(RECEIVERS, 4, 1, _QUEUES, "The requests for messages of each queue that a task has at once."),
        ConfigKey(
            name=VISIBILITY,
            type=Type.INT,
            default=None,
            validator=OrNull(Range(_LEAST_VISIBILITY, _LONGEST_VISIBILITY)),
            importance=Importance.LOW,
            group=_QUEUES,
            doc="Seconds after which others receive a message whose task was killed: by default the queue's own visibility "
            f"timeout, but at least {_LEAST_VISIBILITY}. Tasks that run keep theirs, however long Kafka takes.",
        ),
        text(
            name=TOPIC,
            default=QUEUE_PLACEHOLDER,
            validator=NonEmptyString(),
            importance=Importance.HIGH,
            group=_RECORDS,
            doc=f"The topic; {QUEUE_PLACEHOLDER} is the queue's name.",
        ),
        text(
            name=VALUES,
            default="string",
            validator=EnumText("bytes", "string"),
            group=_RECORDS,
            doc="The type of values: string, or bytes in UTF-8, for ByteArrayConverter.",
        ),
        flag(
            name=HEADERS,
            default=True,
            group=_RECORDS,
            doc=f"Whether records have the attributes of messages as headers, and {', '.join(OWN_HEADERS)}.",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class SqsSourceOptions:
    """The queues, and the form of their records. Times are in seconds."""

    account: Account
    queues: Sequence[str]
    messages: int
    wait: int
    prefetch: int
    receivers: int
    visibility: int | None
    records: Records


def options_of(config: Mapping[str, str]) -> SqsSourceOptions:
    """Return the options of a config. Raises ConfigError."""
    values = CONFIG.parse(config)
    queues, visibility, wait = values[URL], values[VISIBILITY], int(str(values[WAIT]))
    assert isinstance(queues, list)  # noqa: S101 (parsed as such)
    return SqsSourceOptions(
        account=sqs_account(values, wait),
        queues=tuple(map(str, queues)),
        messages=int(str(values[MESSAGES])),
        wait=wait,
        prefetch=int(str(values[PREFETCH])),
        receivers=int(str(values[RECEIVERS])),
        visibility=None if visibility is None else int(str(visibility)),
        records=Records(str(values[TOPIC]), as_bytes=str(values[VALUES]).lower() == "bytes", headers=bool(values[HEADERS])),
    )


class Receipt:
    """A message that was received: when others may receive it, by the monotonic clock, and whether it is deleted."""

    __slots__ = ("deadline", "deleted", "handle", "queue")

    def __init__(self, received: Received) -> None:
        self.queue = received.queue
        self.handle = str(received.message["ReceiptHandle"])
        self.deadline = received.deadline
        self.deleted = False


class SqsSourceTask(QueueSourceTask[Receipt]):
    """Takes messages of queues, hides them from others while they wait, and deletes them once Kafka has their records.

    Any connection can delete a message, so that those of a lost one are still known. Groups of FIFO queues are in their order,
    because SQS gives no message of a group while another one of it is hidden.
    """

    acknowledges_in_order = False
    handles_outlive_connections = True

    _client: Any = None
    _receivers: Receivers | None = None
    _requests: ThreadPoolExecutor | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = options_of(config)
        self._room = Room(options.prefetch)
        self._requests = ThreadPoolExecutor(_IN_PARALLEL, thread_name_prefix="sqs-requests")
        self._stays_paused = False
        self._redelivered = self._expired = 0
        self.limits = QueueLimits(
            held=options.prefetch * len(options.queues),
            extend=_EXTEND_SECONDS,
            longest_pause=options.account.longest_pause,
        )
        super().start(config)

    def connect(self) -> None:
        options = self._options
        self._client = client = opened(options.account)
        queues = [self._queue(client, each) for each in options.queues]
        self._receivers = Receivers(
            *(client, options.account, queues, self._room), each=options.receivers, wait=options.wait, most=options.messages
        )

    def _queue(self, client: Any, named: str) -> Queue:
        found = queue_of(client, self._options.account, named)
        visibility = self._options.visibility or max(_LEAST_VISIBILITY, found.visibility)
        return Queue(found.url, found.name, visibility, found.most_bytes)

    def disconnect(self) -> None:
        receivers, self._receivers = self._receivers, None
        if receivers is not None:
            with suppress(UnreachableError):  # they are visible again after their time
                self._free(receivers.stop())
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def stop(self) -> None:
        super().stop()
        if self._requests is not None:
            self._requests.shutdown(wait=False)

    def receive(self, most: int, seconds: float) -> Sequence[Message[Receipt]]:
        if self._receivers is None:
            raise UnreachableError("The connection is lost")
        self._receivers.resume()
        found = self._receivers.take(most, seconds)
        self._redelivered += sum(receives_of(each.message) > 1 for each in found)
        return [Message(Receipt(each), (self._options.records.record(each.queue, each.message),)) for each in found]

    def idle(self, seconds: float) -> None:
        if self._stays_paused and self._receivers is not None:
            self._receivers.pause()
            self._free(self._receivers.take(self.limits.held, 0))
        super().idle(seconds)

    def paused(self) -> None:
        self._stays_paused = True
        super().paused()

    def resumed(self) -> None:
        self._stays_paused = False
        super().resumed()

    def acknowledge(self, handles: Sequence[Receipt]) -> None:
        left = [each for each in handles if not each.deleted]  # a call that has failed is repeated
        failures = self._in_batches(left, lambda _each: {}, lambda **given: self._client.delete_message_batch(**given))
        for receipt in left:
            failure = failures.get(receipt)
            receipt.deleted = failure is None or bool(failure.get("SenderFault"))
            if receipt.deleted:
                self._room.free(receipt.queue.url, 1)
        for receipt, failure in failures.items():
            if not receipt.deleted:
                raise UnreachableError(f"{self._options.account.where}: messages are not deleted: {failure_text(failure)}")
            self._expired += 1
            log.warning("A message of %s is in Kafka and cannot be deleted: %s", receipt.queue.name, failure_text(failure))

    def give_back(self, handles: Sequence[Receipt]) -> None:
        if self._receivers is not None:
            self._receivers.pause()  # or they would receive the same again
        self._hide(handles, 0)
        for receipt in handles:
            self._room.free(receipt.queue.url, 1)

    def _free(self, received: Sequence[Received]) -> None:
        """Give back what the kit has not taken."""
        if received:
            self.give_back([Receipt(each) for each in received])

    def extend(self, handles: Sequence[Receipt]) -> None:
        """Hide messages for as long again, when a third of the time has passed."""
        now = time.monotonic()
        due = [each for each in handles if each.deadline - now < each.queue.visibility * 2 / 3]
        for visibility in {each.queue.visibility for each in due}:
            self._hide([each for each in due if each.queue.visibility == visibility], visibility)

    def _hide(self, handles: Sequence[Receipt], seconds: int) -> None:
        """Hide messages from now on for so many seconds. What cannot be is received again, which is told of."""
        deadline = time.monotonic() + seconds
        failures = self._in_batches(
            handles,
            lambda _each: {"VisibilityTimeout": seconds},
            lambda **given: self._client.change_message_visibility_batch(**given),
        )
        for receipt in handles:
            failure = failures.get(receipt)
            if failure is not None:
                log.warning("A message of %s may be received by others: %s", receipt.queue.name, failure_text(failure))
            if failure is None or failure.get("SenderFault"):
                receipt.deadline = deadline

    def _in_batches(
        self, handles: Sequence[Receipt], more: Callable[[Receipt], Mapping[str, Any]], request: Callable[..., Mapping[str, Any]]
    ) -> dict[Receipt, Mapping[str, Any]]:
        """Send a request for each ten messages of a queue, several at once, and return what has failed and why."""
        if self._client is None or self._requests is None:
            raise UnreachableError("The connection is lost")

        def send(batch: Sequence[Receipt]) -> dict[Receipt, Mapping[str, Any]]:
            entries = numbered([{"ReceiptHandle": each.handle, **more(each)} for each in batch])
            try:
                with aws_errors(self._options.account):
                    answer = request(QueueUrl=batch[0].queue.url, Entries=entries)
            except UnreachableError as error:
                return {each: {"Code": "Unreachable", "Message": str(error)} for each in batch}
            return {batch[number]: failure for number, failure in failures_of(answer).items()}

        return {receipt: why for found in self._requests.map(send, _batches(handles)) for receipt, why in found.items()}

    def drained(self) -> bool:
        """Return whether the last requests of all queues have waited for messages in vain."""
        return self._receivers is not None and self._receivers.dry

    def metrics(self) -> Mapping[str, float]:
        """Return also how many messages were received before, and were received again before they could be deleted."""
        found = super().metrics()
        return {**found, "messages-redelivered": self._redelivered, "messages-expired": self._expired} if found else found


def _batches(handles: Sequence[Receipt]) -> Iterator[Sequence[Receipt]]:
    """Yield the messages in groups of up to ten of one queue."""
    by_queue: dict[str, list[Receipt]] = {}
    for each in handles:
        by_queue.setdefault(each.queue.url, []).append(each)
    for found in by_queue.values():
        for start in range(0, len(found), MOST_AT_ONCE):
            yield found[start : start + MOST_AT_ONCE]


class SqsSourceConnector(AwsConnector, SourceConnector):
    """Takes the messages of queues of Amazon SQS, standard or FIFO: a record for each message. At least once."""

    task_class = SqsSourceTask
    address_key = URL

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def account(cls, values: Mapping[str, ConfigValue]) -> Account:
        return sqs_account(values)

    @classmethod
    def try_service(cls, client: Any, account: Account, found: Mapping[str, ValidatedValue]) -> None:
        queues = found[URL].value
        assert isinstance(queues, list)  # noqa: S101 (parsed as such)
        for each in queues:
            try:
                queue_of(client, account, str(each))
            except ConfigError as error:
                found[URL].errors.append(str(error))

    @classmethod
    def start_effects(cls, config: Mapping[str, str]) -> str:
        return "it takes messages off the queues"

    @classmethod
    def position_elsewhere(cls, config: Mapping[str, str]) -> str:
        return (
            f"The position is that of the queues {config.get(URL, '')} in Amazon SQS: a message is there until its record is in "
            "Kafka. What was deleted cannot be read again."
        )

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Deal the queues. If there are more tasks, several share a queue."""
        queues = options_of(self._config).queues
        groups = [queues[task::max_tasks] or (queues[task % len(queues)],) for task in range(max_tasks)]
        return [{**self._config, URL: ",".join(group)} for group in groups]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # A queue has no position that could be in Kafka's transaction.
        return ExactlyOnceSupport.UNSUPPORTED
