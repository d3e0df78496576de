"""A session with a RabbitMQ server: a connection and its channel, driven by the caller's thread. Runs on executors.

pika's SelectConnection needs a tenth of the processor time of aio-pika for a message, and, unlike its BlockingConnection, sends
many messages with one system call.
"""

from __future__ import annotations

import functools
import logging
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.errors import LoginError, RefusedError, UnreachableError
from sluiceway.connectors.https import lasting_failure, tls_context
from sluiceway.connectors.rabbitmq.connection import HOSTS, PASSWORD, PORT, PROTOCOL, TRUST, USER, VIRTUAL_HOST, Server
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.spec import BasicProperties

log = logging.getLogger(__name__)

_LATER = (320, 405, 541)
"""Codes of errors that pass: a server that stops or starts, and a queue that is another connection's own."""
_CLOSE_SECONDS = 5.0

OnMessage = Callable[[Any, "BasicProperties", bytes], None]
"""Takes the delivery, the properties, and the body of a message."""


@functools.cache
def _pika() -> Any:
    """Return the module, which then logs only what a person must see, and reads floats. Raises MissingToolError."""
    try:
        import pika
    except ImportError as error:
        raise MissingToolError(
            f"RabbitMQ needs a Python package that is not installed ({error}). Run: {install_command('rabbitmq')} in the Python "
            "environment of the tasks."
        ) from error
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # the tasks say what matters
    original = pika.data.decode_value

    def decode_value(encoded: bytes, offset: int) -> tuple[Any, int]:
        # pika 1.4 and older cut off the decimal places of numbers in headers.
        kind = encoded[offset : offset + 1]
        if kind == b"d":
            return struct.unpack_from(">d", encoded, offset + 1)[0], offset + 9
        if kind == b"f":
            return struct.unpack_from(">f", encoded, offset + 1)[0], offset + 5
        found: tuple[Any, int] = original(encoded, offset)
        return found

    pika.data.decode_value = decode_value
    return pika


class Session:
    """A connection with one channel. Nothing happens outside of its methods, which one thread calls; not even heartbeats.

    All methods raise UnreachableError when the connection or the channel is lost, and ConnectError for what does not pass.
    """

    def __init__(self, server: Server, host: str, name: str) -> None:
        """Connect. ``name`` is shown by the server's tools."""
        pika = _pika()
        self._server = server
        self._host = f"{host}:{server.port}"
        self._failure: Exception | None = None
        self._woken = False
        self.channel: Channel
        self.blocked = ""
        """Why the server takes no messages now; empty if it does."""
        context = None if server.tls is None else tls_context(server.tls)
        parameters = pika.ConnectionParameters(
            host=host,
            port=server.port,
            virtual_host=server.virtual_host,
            credentials=pika.PlainCredentials(server.user, server.password, erase_on_connect=True),
            heartbeat=server.heartbeat,
            ssl_options=None if context is None else pika.SSLOptions(context, host if context.check_hostname else None),
            connection_attempts=1,
            socket_timeout=server.timeout,
            stack_timeout=server.timeout + server.handshake,
            client_properties={"connection_name": f"sluiceway {name}"},
        )
        ready: list[Any] = []
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=lambda connection: self._answered(ready, connection),
            on_open_error_callback=lambda _connection, error: self._lose(error),
            on_close_callback=lambda _connection, error: self._lose(error),
        )
        self._loop = self._connection.ioloop
        self._connection.add_on_connection_blocked_callback(lambda _connection, frame: self._block(frame.method.reason))
        self._connection.add_on_connection_unblocked_callback(lambda _connection, _frame: self._block(""))
        try:
            self._until(lambda: bool(ready), server.timeout + server.handshake + 1)
            self.channel = self._opened_channel()
        except BaseException:
            self.close()
            raise

    def run(self, seconds: float) -> None:
        """Handle what comes until ``wake`` is called, or for so many seconds."""
        self._check()
        try:
            self._spin(max(0.0, seconds))
        except _pika().exceptions.AMQPError as error:
            self._lose(error)
        self._check()

    def wake(self) -> None:
        """Let ``run`` return. Called by callbacks of the session, at no cost for each of many messages."""
        if not self._woken:
            self._woken = True
            self._loop.stop()  # writes to a socket

    def wake_threadsafe(self) -> None:
        """Let ``run`` return. Called by any thread."""
        self._loop.add_callback_threadsafe(self._loop.stop)

    def call(self, start: Callable[[Callable[[Any], None]], object]) -> Any:
        """Send a request, and return its answer. ``start`` is given the function to call with the answer."""
        answers: list[Any] = []
        start(lambda answer: self._answered(answers, answer))
        self._until(lambda: bool(answers), self._server.timeout)
        return answers[0]

    def consume(self, queue: str, on_message: OnMessage, **arguments: object) -> str:
        """Begin to consume a queue, and return the consumer's tag. ``arguments`` are its own, with ``_`` for ``-``."""
        frame = self.call(
            lambda done: self.channel.basic_consume(
                queue,
                lambda _channel, delivery, properties, body: on_message(delivery, properties, body),
                arguments={name.replace("_", "-"): value for name, value in arguments.items()},
                callback=done,
            )
        )
        return str(frame.method.consumer_tag)

    @contextmanager
    def another_channel(self) -> Iterator[None]:
        """Use another channel in the context, and close it at the end with its consumers.

        What they are sent meanwhile is dropped. pika refuses what a consumer is sent that was cancelled, which a stream does not
        allow.
        """
        own, self.channel = self.channel, self._opened_channel()
        try:
            yield
        finally:
            ended, self.channel = self.channel, own
            if ended.is_open:
                ended.close()

    def cancel(self, consumer: str) -> None:
        """End a consumer. What it has received is still to be acknowledged."""
        self.call(lambda done: self.channel.basic_cancel(consumer, callback=done))

    def prefetch(self, count: int, *, of_all: bool = False) -> None:
        """Set the most messages without acknowledgement of each further consumer, or of all.

        When it returns, the server has sent all that it could send before.
        """
        self.call(lambda done: self.channel.basic_qos(prefetch_count=count, global_qos=of_all, callback=done))

    def count(self, queue: str) -> int:
        """Return the number of messages of a queue that no consumer has. Raises UnreachableError if there is no such queue."""
        frame = self.call(lambda done: self.channel.queue_declare(queue, passive=True, callback=done))
        return int(frame.method.message_count)

    def close(self) -> None:
        """Close the connection, after what was sent before. Raises nothing."""
        closed = self._connection.is_closed
        self._failure = self._failure or UnreachableError("The connection is closed")
        try:
            if not closed:
                self._connection.add_on_close_callback(lambda _connection, _error: self.wake())
                if not self._connection.is_closing:
                    self._connection.close()
                end = time.monotonic() + _CLOSE_SECONDS
                while not self._connection.is_closed and (left := end - time.monotonic()) > 0:
                    self._spin(left)
            self._loop.close()
        except Exception:  # the connection is not needed any more
            log.debug("Closing the connection to RabbitMQ failed", exc_info=True)

    def _spin(self, seconds: float) -> None:
        timer = self._loop.call_later(seconds, self._loop.stop)
        try:
            self._loop.start()
        finally:
            self._loop.remove_timeout(timer)
            self._woken = False

    def _opened_channel(self) -> Channel:
        channel: Channel = self.call(lambda done: self._connection.channel(on_open_callback=done))
        channel.add_on_close_callback(self._closed)
        channel.add_on_cancel_callback(self._cancelled)
        return channel

    def _closed(self, _channel: Channel, error: Exception) -> None:
        if not isinstance(error, _pika().exceptions.ChannelClosedByClient):
            self._lose(error)

    def _answered(self, answers: list[Any], answer: Any) -> None:
        answers.append(answer)
        self.wake()

    def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise UnreachableError(f"RabbitMQ at {self._host} has not answered for {seconds:.0f} s")
            self.run(left)

    def _block(self, reason: str) -> None:
        self.blocked = reason
        self.wake()

    def _cancelled(self, frame: Any) -> None:
        self._lose(
            UnreachableError(
                f"RabbitMQ at {self._host} has ended the consumer {frame.method.consumer_tag}: was its queue deleted?"
            )
        )

    def _lose(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._loop.stop()

    def _check(self) -> None:
        if self._failure is not None:
            raise meaning_of(self._failure, self._server, self._host)


def opened(server: Server, name: str, first: int = 0) -> Session:
    """Return a session with the first server that answers, beginning with the one of number ``first``. Closed by the caller.

    Raises UnreachableError if none does, LoginError, and ConfigError for a trust or key store.
    """
    for attempt in range(len(server.hosts)):
        host = server.hosts[(first + attempt) % len(server.hosts)]
        try:
            return Session(server, host, name)
        except UnreachableError as error:
            if attempt == len(server.hosts) - 1:
                raise
            log.info("%s; trying the next server", error)
    raise AssertionError("a config has a host")


def meaning_of(error: BaseException, server: Server, host: str) -> Exception:
    """Return the error of pika as one of this module's: UnreachableError for what passes, and ConnectError for what does not."""
    from pika import exceptions

    if isinstance(error, (UnreachableError, ConfigError)):
        return error
    where = f"RabbitMQ at {host}"
    cause = _innermost(error)
    text = str(cause)
    # pika takes a connection that is lost at these points for a refusal, too: only an answer is one.
    if isinstance(cause, exceptions.ProbableAuthenticationError) and "(403)" in text:
        return LoginError(f"{where} refused the login of user {server.user}. Check {USER} and {PASSWORD}.", PASSWORD)
    if isinstance(cause, exceptions.ProbableAccessDeniedError) and "(530)" in text and " is down" not in text:
        what = f"does not let user {server.user} into the virtual host {server.virtual_host}"
        return LoginError(f"{where} {what}, or has none of that name. Check {VIRTUAL_HOST}.", VIRTUAL_HOST)
    if isinstance(cause, ssl.SSLError):
        if advice := lasting_failure(cause, TRUST, HOSTS):
            if cause.reason == "WRONG_VERSION_NUMBER":
                return LoginError(f"{where} does not speak TLS at this port. Check {PORT} and {PROTOCOL}.", PORT)
            return LoginError(f"{where}: {cause}. {advice}", TRUST)
        return UnreachableError(f"{where}: {cause}")
    if isinstance(cause, exceptions.IncompatibleProtocolError):
        return UnreachableError(f"{where} does not answer in AMQP 0.9.1. If that lasts, check {PORT} and {PROTOCOL}.")
    if isinstance(cause, exceptions.ProtocolSyntaxError):
        return ConnectError(f"{where} has sent what pika cannot read, such as a header of an unknown type: {cause!r}")
    if isinstance(cause, (exceptions.ChannelClosedByBroker, exceptions.ConnectionClosedByBroker)):
        return _closed(cause.reply_code, cause.reply_text, where)
    return UnreachableError(f"{where}: {text or type(cause).__name__}")


def _closed(code: int, reason: str, where: str) -> Exception:
    """Return the meaning of an answer with which the server has closed the channel or the connection."""
    message = f"{where}: {reason}"
    passes = code in _LATER or (code == 403 and "exclusive" in reason)
    if passes or (code == 404 and "no queue" in reason) or "is down or inaccessible" in reason or "timed out" in reason:
        return UnreachableError(message)
    return RefusedError(message, code)


def _innermost(error: BaseException) -> BaseException:
    """Return the error that others contain: pika wraps those of connecting."""
    seen = 0
    while seen < 10:
        seen += 1
        inner = [*getattr(error, "exceptions", ()), *(each for each in error.args if isinstance(each, BaseException))]
        if isinstance(getattr(error, "exception", None), BaseException):
            inner.append(error.exception)  # type: ignore[attr-defined]
        if not inner:
            break
        error = inner[-1]
    return error
