"""The base class of source tasks whose system keeps the position: it hands out messages, and is told when Kafka has them."""

from __future__ import annotations

import abc
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from sluiceway.api.outage import Outage
from sluiceway.api.records import SourceRecord
from sluiceway.api.task import SourceTask, SourceTaskContext
from sluiceway.backoff import Backoff
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

Handle = TypeVar("Handle")

_POLL_SECONDS = 1.0
_SHORT_SECONDS = 0.05
"""The most that ``receive`` waits while messages are held, because acknowledgements wait as long."""
_END_SECONDS = 30.0
_FIRST_PAUSE = 0.1
_MISSING = (FileNotFoundError, PermissionError)  # of a file or a right, which waiting does not bring


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The limits of a queue source.

    Attributes:
        held: the most messages that the task has received, and not acknowledged yet. As many are read again after a kill.
        messages: the most messages of one ``receive``.
        wait: the most seconds that ``receive`` waits for messages.
        extend: seconds between two calls of ``extend``; None for no calls.
        longest_pause: the most seconds between two attempts to connect.
        unreachable: seconds to wait for a system that cannot be reached before the task fails; None is unlimited.
    """

    held: int = 10_000
    messages: int = 1000
    wait: float = 1.0
    extend: float | None = None
    longest_pause: float = 10.0
    unreachable: float | None = None


@dataclass(slots=True)
class Message(Generic[Handle]):
    """A message that was received.

    Attributes:
        handle: what names it to its system.
        records: its records, which may be none.
        bad: records that cannot be read, with the reasons; see ``SourceTaskContext.report``.
    """

    handle: Handle
    records: Sequence[SourceRecord] = ()
    bad: Sequence[tuple[SourceRecord, ConnectError]] = ()


class QueueSourceTask(SourceTask, Generic[Handle]):
    """Reads messages that their system hands out, and acknowledges each once Kafka has its records.

    An author implements ``connect``, ``receive`` and ``acknowledge``, and what else the system has; in ``start``, sets ``limits``
    and calls the base class's. All of these but ``start`` are called by one thread of the task's own, so that a client that
    belongs to a thread can be used, and heartbeats and deadlines are kept while Kafka is slow or the task is paused.

    Raise OSError when the system cannot be reached or the connection is lost: the task connects again, with growing pauses, and
    shows the reason in its status. What else is raised fails the task, as for wrong credentials; so do FileNotFoundError and
    PermissionError. Texts of errors must not hold secrets.

    Its connector says with ``position_elsewhere`` where the position is, and in ``start_effects`` that messages are taken. Runs
    on executors.
    """

    limits: QueueLimits = QueueLimits()

    acknowledges_in_order: ClassVar[bool] = True
    """Whether a message is acknowledged only after those that were received before it."""

    handles_outlive_connections: ClassVar[bool] = False
    """Whether a message can be acknowledged by another connection than the one that received it. If not, what is held when the
    connection is lost is forgotten, because the system hands it out again."""

    _receiver: _Receiver[Handle] | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Begin to receive. Subclasses that override this call it at the end."""
        self._owners: dict[int, list[_Held[Handle]]] = {}
        self._reported: list[_Held[Handle]] = []
        self._receiver = _Receiver(self, self.context)
        self._receiver.start()

    @abc.abstractmethod
    def connect(self) -> None:
        """Connect to the system, and prepare for ``receive``. Called again after an OSError and ``disconnect``."""

    @abc.abstractmethod
    def receive(self, most: int, seconds: float) -> Sequence[Message[Handle]]:
        """Return up to ``most`` messages, at once if there are some; wait up to ``seconds`` for the first one."""

    @abc.abstractmethod
    def acknowledge(self, handles: Sequence[Handle]) -> None:
        """Tell the system that these messages are done: their records are in Kafka."""

    def give_back(self, handles: Sequence[Handle]) -> None:
        """Let others have messages that are not done, because the task pauses or stops.

        By default the system does that by itself once the task has disconnected, and a paused task keeps what it has received.
        """

    def extend(self, handles: Sequence[Handle]) -> None:
        """Keep the system from handing out to others what is held. Called every ``QueueLimits.extend`` seconds."""

    def idle(self, seconds: float) -> None:
        """Wait, at most so long, when no messages may be received now. Clients with heartbeats of their own override it."""
        self._started().wait(seconds)

    def wake(self) -> None:
        """Let ``receive`` and ``idle`` return, because there are messages to acknowledge, or the task pauses, resumes, or stops.

        Called by other threads. By default only the ``idle`` of this class returns, and a ``receive`` that waits for messages
        delays acknowledgements by up to 0.05 s: override it where the system sends no more before those.
        """

    def disconnect(self) -> None:
        """Release the connection. Called after each ``connect``, also one that failed; errors are logged."""

    def poll(self) -> Sequence[SourceRecord] | None:
        receiver = self._started()
        messages = receiver.take(self.limits.messages)
        if not messages and not receiver.sent:  # returning at once, the runtime waits for acknowledgements
            self.context.wait(_POLL_SECONDS)
            messages = receiver.take(self.limits.messages)
        records: list[SourceRecord] = []
        for held in messages:
            for bad, error in held.bad:
                self.context.report(bad, error)
            if held.bad:
                self._reported.append(held)
            for record in held.records:
                self._owners.setdefault(id(record), []).append(held)  # the record lives as long as it is held
                records.append(record)
        return records or None

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        owners = self._owners.get(id(record))
        if owners:
            self._started().done(owners.pop())
            if not owners:
                del self._owners[id(record)]

    def commit(self) -> None:
        """Acknowledge messages with bad records, which are in Kafka now, too."""
        reported, self._reported = self._reported, []
        for held in reported:
            self._started().done(held)

    @property
    def commit_is_awaited(self) -> bool:
        """True while messages with bad records are held, which the next commit has."""
        return bool(self._reported)

    def reached_end(self) -> bool:
        """Return whether all has been received that the system had at the first ``connect``, so that a bounded run may end.

        Without an override, it ends when a ``receive`` had no message.
        """
        return False

    def drained(self) -> bool:
        """Return whether a ``receive`` without messages means that the system has none now. Called after each such ``receive``.

        For systems that send messages by themselves, which may be slow, or wait until some are acknowledged.
        """
        return True

    @property
    def ended(self) -> bool | None:
        """True once the system has had no message for a whole ``receive``, or the end is reached, and all is acknowledged."""
        return self._started().ended

    def paused(self) -> None:
        self._started().pause()

    def resumed(self) -> None:
        self._started().resume()

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of messages that are held, and were acknowledged and given back. Subclasses may add others."""
        return {} if self._receiver is None else self._receiver.metrics()

    def stop(self) -> None:
        if self._receiver is not None:
            self._receiver.stop()

    def _started(self) -> _Receiver[Handle]:
        if self._receiver is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._receiver


class _Held(Generic[Handle]):
    """A message that was received and is not acknowledged. ``left`` counts its records that Kafka does not have yet.

    Its bad records count as one, which the next commit has.
    """

    __slots__ = ("bad", "connection", "handle", "left", "records")

    def __init__(self, message: Message[Handle], connection: int) -> None:
        self.handle = message.handle
        self.records = message.records
        self.bad = message.bad
        self.left = len(message.records) + bool(message.bad)
        self.connection = connection


class _Receiver(Generic[Handle]):
    """The thread that talks with the system, and the messages on their way through the task."""

    def __init__(self, task: QueueSourceTask[Handle], context: SourceTaskContext) -> None:
        self._task = task
        self._limits = task.limits
        self._context = context
        self._gives_back = type(task).give_back is not QueueSourceTask.give_back
        self._thread = threading.Thread(target=self._run, name=f"{type(task).__name__}-receiver", daemon=True)
        self._lock = threading.Lock()  # for the messages and the counts
        self._ready: deque[_Held[Handle]] = deque()  # received, not polled
        self._sent: dict[_Held[Handle], None] = {}  # polled, in order, with those that wait for an older one
        self._done: list[_Held[Handle]] = []  # to acknowledge
        self._dry = self._bounded = False
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._pausing = False
        self._connected = False
        self._connection = 0
        self._failure: Exception | None = None
        self._outage = Outage(task.limits.unreachable)
        self._next_extension = time.monotonic()
        self._counts = {"messages-received": 0, "messages-acknowledged": 0, "messages-given-back": 0, "connections-lost": 0}

    # Called by the task's thread.

    def start(self) -> None:
        self._thread.start()

    @property
    def sent(self) -> bool:
        """Whether messages wait for Kafka's acknowledgement."""
        return bool(self._sent)

    @property
    def ended(self) -> bool:
        self._bounded = True  # only a bounded run asks
        with self._lock:
            return self._dry and not self._ready and not self._sent and not self._done

    def take(self, most: int) -> list[_Held[Handle]]:
        """Return the next messages to send. Raises what ended the thread."""
        if self._failure is not None:
            raise self._failure
        with self._lock:
            taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
            self._sent.update(dict.fromkeys(taken))
        for held in taken:
            if not held.left:
                self._settle(held)
        return taken

    def done(self, held: _Held[Handle]) -> None:
        """Count a record that Kafka has."""
        held.left -= 1
        if not held.left:
            self._settle(held)

    def pause(self) -> None:
        self._pausing = True
        self._rouse()

    def resume(self) -> None:
        self._pausing = False
        self._rouse()

    def metrics(self) -> dict[str, float]:
        return {"messages-held": len(self._ready) + len(self._sent) + len(self._done), **self._counts}

    def stop(self) -> None:
        """Acknowledge what Kafka has, give the rest back, and disconnect."""
        self._stop.set()
        self._rouse()
        if self._thread.ident is not None:
            self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            log.warning("The system has not answered for %.0f s: what it was not told is handed out again", _END_SECONDS)

    def _settle(self, held: _Held[Handle]) -> None:
        """Move a message that is done, and those that waited for it, to those to acknowledge."""
        with self._lock:
            moved = [held]
            if self._task.acknowledges_in_order:
                moved = list(itertools.takewhile(lambda each: not each.left, self._sent))
            for each in moved:
                del self._sent[each]
            self._done += moved
        if moved:
            self._rouse()

    def _rouse(self) -> None:
        if not self._wake.is_set():
            self._wake.set()
            self._task.wake()

    # Called by the thread.

    def wait(self, seconds: float) -> None:
        """Wait, at most so long, until there is something else to do."""
        self._wake.wait(seconds)

    def _run(self) -> None:
        pauses = Backoff(_FIRST_PAUSE, self._limits.longest_pause)
        try:
            while not self._stop.is_set():
                try:
                    self._step()
                except _MISSING:
                    raise
                except OSError as error:
                    self._lose()
                    self._outage.lasts(error)
                    pause = pauses.next()
                    log.warning("The connection is lost; connecting again in %.1f s: %s", pause, error)
                    self._context.waiting(error, pause)
                    self._stop.wait(pause)
                else:
                    self._outage.ended()
                    if pauses.failures:
                        pauses.reset()
                        self._context.waiting()
            self._finish()
        except Exception as error:
            self._failure = error  # poll() raises it
            if self._stop.is_set():
                log.exception("The end of the work with the system failed: what it was not told is handed out again")
        finally:
            self._disconnect()
            self._context.wake()

    def _step(self) -> None:
        self._wake.clear()
        if not self._connected:
            self._connection += 1
            self._connected = True  # also after an error, so that disconnect() is called
            self._task.connect()
        self._acknowledge()
        self._extend()
        if self._pausing:
            self._return_ready()
            self._task.idle(min(_POLL_SECONDS, self._limits.extend or _POLL_SECONDS))
            return
        held = len(self._ready) + len(self._sent) + len(self._done)
        if self._bounded and self._task.reached_end():
            self._dry = True
        if held >= self._limits.held or (self._bounded and self._dry):
            self._task.idle(_SHORT_SECONDS)
            return
        seconds = min(_SHORT_SECONDS, self._limits.wait) if held else self._limits.wait
        messages = self._task.receive(min(self._limits.held - held, self._limits.messages), seconds)
        dry = not messages and not self._wake.is_set() and self._task.drained()
        with self._lock:
            # What is held may keep the system from sending more, and then the wait was a short one.
            self._dry = dry and not held
            self._ready.extend(_Held(message, self._connection) for message in messages)
            self._counts["messages-received"] += len(messages)
        self._context.wake()

    def _acknowledge(self) -> None:
        with self._lock:
            done = self._done[:]
        handles = [held.handle for held in done if self._is_known(held)]
        if handles:
            self._task.acknowledge(handles)
        with self._lock:
            del self._done[: len(done)]
            self._counts["messages-acknowledged"] += len(handles)

    def _extend(self) -> None:
        every, now = self._limits.extend, time.monotonic()
        if every is None or now < self._next_extension:
            return
        self._next_extension = now + every
        with self._lock:
            handles = [held.handle for held in (*self._done, *self._sent, *self._ready) if self._is_known(held)]
        if handles:
            self._task.extend(handles)

    def _return_ready(self) -> None:
        """Give back what has not been polled, if the system has a way for that."""
        if not self._gives_back:
            return
        with self._lock:
            given, self._ready = self._ready, deque()  # a task that resumes meanwhile must not send them
        handles = [held.handle for held in given if self._is_known(held)]
        try:
            if handles:
                self._task.give_back(handles)
        except BaseException:
            with self._lock:
                self._ready.extendleft(reversed(given))
            raise
        with self._lock:
            self._counts["messages-given-back"] += len(handles)

    def _finish(self) -> None:
        """Tell the system what Kafka has, and what it has not."""
        if not self._connected:
            return
        try:
            self._acknowledge()
            with self._lock:
                self._ready.extendleft(reversed(self._sent))
            self._return_ready()
        except OSError as error:
            log.warning("Messages that Kafka has may be handed out again, because the connection is lost: %s", error)

    def _lose(self) -> None:
        """Forget the connection, and what it has received if that is handed out again."""
        self._disconnect()
        with self._lock:
            self._counts["connections-lost"] += 1
            self._dry = False
            if not self._task.handles_outlive_connections:
                self._ready.clear()

    def _is_known(self, held: _Held[Handle]) -> bool:
        """Return whether the connection knows a message."""
        return held.connection == self._connection or self._task.handles_outlive_connections

    def _disconnect(self) -> None:
        if not self._connected:
            return
        self._connected = False
        try:
            self._task.disconnect()
        except Exception:  # the connection is not needed any more
            log.warning("disconnect() failed", exc_info=True)
