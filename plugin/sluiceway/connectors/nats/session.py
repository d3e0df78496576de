"""A connection to a NATS server, whose events a thread of its own handles, and what nats-py's errors mean.

nats-py connects again by itself, but does not say what was lost meanwhile: here, a lost connection is an error, and the tasks
open another one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from sluiceway.connectors.errors import LoginError, RefusedError, UnreachableError
from sluiceway.connectors.https import lasting_failure, tls_context
from sluiceway.connectors.nats.client import NoCertificateError, NoTlsError, client_class
from sluiceway.connectors.nats.connection import CREDENTIALS, DOMAIN, NKEY, SERVERS, STORE, TRUST, Server
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from nats.aio.client import Client

log = logging.getLogger(__name__)

Result = TypeVar("Result")

_CLOSE_SECONDS = 5.0
_FAILED_SECONDS = 0.2
_PING_SECONDS = 20  # between two pings; the connection is lost when the third one has no answer
_REFUSALS = ("authorization violation", "user authentication", "account authentication")
_CLIENT_CERTIFICATE = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_UNKNOWN", "HANDSHAKE_FAILURE")
_DENIED = "permissions violation"
_NO_JETSTREAM = (10039, 10076)  # for the account, or the server
NO_STREAM, NO_CONSUMER = 10059, 10014
"""Numbers of JetStream's errors (err_code)."""


class NoJetStreamError(UnreachableError):
    """The server has no JetStream, or it has not started yet."""


class Session:
    """A connection. One thread uses it. All methods raise UnreachableError when it is lost, and LoginError without a right."""

    def __init__(self, server: Server, url: str, name: str) -> None:
        """Connect. ``name`` is shown by the server's tools."""
        self.server = server
        parts = urlsplit(url)
        self.where = f"NATS at {parts.hostname}:{parts.port or 4222}"
        self.on_denied: Callable[[str], None] | None = None
        """Takes the server's text that a publication is not allowed. Without it, that ends the session."""
        self.client: Client = _new_client(server)
        """For coroutines that are given to ``call``."""
        self._failure: Exception | None = None
        self._connecting = True
        self._lost = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats-session", daemon=True)
        self._thread.start()
        try:
            self.call(self._connect(url, name), 4 * server.timeout + 1)
            self._connecting = False
        except BaseException:
            self.close()
            raise

    def call(self, work: Coroutine[Any, Any, Result], seconds: float) -> Result:
        """Run a coroutine on the session's thread, for so many seconds at most, and return its result."""
        return asyncio.run_coroutine_threadsafe(self._guarded(work, seconds), self._loop).result()

    def request(self, subject: str, body: object = None) -> dict[str, Any]:
        """Send a request to JetStream, such as STREAM.INFO.orders, and return its answer. Raises RefusedError."""
        payload = b"" if body is None else json.dumps(body).encode()
        answer: dict[str, Any] = self.call(self._request(f"{self.server.api}.{subject}", payload), self.server.timeout + 1)
        error = answer.get("error")
        if error:
            raise refusal(error, self.where)
        return answer

    def check_jetstream(self) -> None:
        """Raise ConnectError if the server has no JetStream for the user's account."""
        try:
            self.request("INFO")
        except NoJetStreamError as error:
            raise ConnectError(str(error)) from error

    def flush(self) -> None:
        """Wait until the server has read what was sent."""
        self.call(self.client.flush(max(1, int(self.server.timeout))), self.server.timeout + 1)

    def publish(self, subjects: Sequence[str], payload: bytes) -> None:
        """Publish a payload to each subject, without an answer."""
        self.call(self._publish(subjects, payload), self.server.timeout + 1)

    def close(self) -> None:
        """Close the connection, after what was sent before. Raises nothing."""
        if self._loop.is_closed():
            return
        with suppress(Exception):  # the connection is not needed any more
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    # Run on the session's thread.

    async def _guarded(self, work: Coroutine[Any, Any, Result], seconds: float) -> Result:
        task = asyncio.ensure_future(work)
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait({task, lost}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if self._failure is not None:
                raise self._failure
            if not task.done():
                raise UnreachableError(f"{self.where} has not answered for {seconds:.0f} s")
            return task.result()
        except Exception as error:
            raise meaning_of(error, self.server, self.where) from error
        finally:
            lost.cancel()
            if not task.done():
                task.cancel()
            elif not task.cancelled():
                task.exception()  # so that asyncio does not call it forgotten

    async def _connect(self, url: str, name: str) -> None:
        server, client = self.server, self.client
        context = None if server.tls is None else tls_context(server.tls)
        await client.connect(
            servers=[url],
            name=f"sluiceway {name}",
            error_cb=self._on_error,
            closed_cb=self._on_closed,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            connect_timeout=server.timeout,  # type: ignore[arg-type] # which may be a fraction
            ping_interval=_PING_SECONDS,
            inbox_prefix=server.inbox,
            tls=context,
            user=server.user,
            password=server.password,
            token=server.token,
            nkeys_seed_str=server.nkey,
            user_credentials=server.credentials,
        )
        if not client.is_connected:
            raise UnreachableError(f"{self.where} has ended the connection")

    async def _request(self, subject: str, payload: bytes) -> dict[str, Any]:
        from nats.errors import NoRespondersError

        try:
            answer = await self.client.request(subject, payload, timeout=self.server.timeout)
        except NoRespondersError:
            advice = f"If that lasts, enable it, or check {DOMAIN}." if self.server.domain else "If that lasts, enable it."
            raise NoJetStreamError(f"{self.where} has no JetStream. {advice}") from None
        found: dict[str, Any] = json.loads(answer.data)
        return found

    async def _publish(self, subjects: Sequence[str], payload: bytes) -> None:
        for each in subjects:
            await self.client.publish(each, payload)

    async def _end(self) -> None:
        # A connection that TLS has failed for is never said to be closed.
        seconds = _FAILED_SECONDS if self._connecting else _CLOSE_SECONDS / 2
        try:
            await asyncio.wait_for(self.client.close(), seconds)
        finally:
            others = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _on_error(self, error: Exception) -> None:
        """Take an error of the client's. While it connects, raising ends that, with this error as the reason."""
        if self._connecting and not self.client.is_connected:
            raise error
        if _DENIED not in str(error):
            log.debug("%s: %r", self.where, error)
        elif self.on_denied is not None:
            self.on_denied(str(error))
        else:
            what = str(error).removeprefix("nats: ")
            self._fail(LoginError(f"{self.where} does not allow this user what the connector needs: {what}", self._login_key()))

    async def _on_closed(self) -> None:
        error = self.client.last_error
        self._fail(error or UnreachableError(f"{self.where} has ended the connection"))

    def _fail(self, error: Exception) -> None:
        self._failure = self._failure or error
        self._lost.set()

    def _login_key(self) -> str:
        return self.server.login_key


def opened(server: Server, name: str, first: int = 0) -> Session:
    """Return a session with the first server that answers, beginning with the one of number ``first``. Closed by the caller.

    Raises UnreachableError if none does, LoginError, and ConfigError for a trust or key store, or credentials.
    """
    _check_files(server)
    for attempt in range(len(server.urls)):
        url = server.urls[(first + attempt) % len(server.urls)]
        try:
            return Session(server, url, name)
        except UnreachableError as error:
            if attempt == len(server.urls) - 1:
                raise
            log.info("%s; trying the next server", error)
    raise AssertionError("a config has a server")


def _new_client(server: Server) -> Client:
    client: Any = client_class()()
    client.demands_tls = server.tls is not None
    client.has_certificate = server.tls is not None and bool(server.tls.keys.get("ssl.keystore.location"))
    return client  # type: ignore[no-any-return] # it has an attribute more


def _check_files(server: Server) -> None:
    """Raise ConfigError for credentials that cannot be used, whose errors have no name of their own."""
    if server.nkey is None and server.credentials is None:
        return
    try:
        import nkeys
    except ImportError as error:
        raise MissingToolError(
            f"Logins of NATS with nkeys need a Python package that is not installed ({error}). Run: {install_command('nats')} in "
            "the Python environment of the tasks."
        ) from error
    if server.nkey is not None:
        try:
            nkeys.from_seed(bytearray(server.nkey.strip().encode())).wipe()
        except Exception as error:
            raise ConfigError(NKEY, None, f"is no seed of an nkey: {type(error).__name__}") from error
        return
    try:
        content = Path(str(server.credentials)).read_bytes()
    except OSError as error:
        raise ConfigError(CREDENTIALS, server.credentials, f"cannot be read: {error.strerror}") from error
    if b"BEGIN NATS USER JWT" not in content or b"BEGIN USER NKEY SEED" not in content:
        raise ConfigError(CREDENTIALS, server.credentials, "is no .creds file: it has no JWT, or no seed of an nkey")


def refusal(error: dict[str, Any], where: str) -> Exception:
    """Return JetStream's error as one of this module's: UnreachableError for what passes."""
    message = f"{where}: {error.get('description', error)}"
    if error.get("err_code") in _NO_JETSTREAM:
        return NoJetStreamError(f"{message}. If that lasts, enable it.")
    if error.get("code") == 503:  # no leader, or no resources now
        return UnreachableError(message)
    return RefusedError(message, int(error.get("err_code", 0)))


def meaning_of(error: BaseException, server: Server, where: str) -> Exception:
    """Return an error of nats-py, asyncio, or the system as one of this module's."""
    from nats import errors

    if isinstance(error, (UnreachableError, ConnectError)):
        return error
    text = str(error).removeprefix("nats: ").strip("'")
    if isinstance(error, errors.AuthorizationError) or text.lower().startswith(_REFUSALS):
        who = f"user {server.user}" if server.user else "this client"
        return LoginError(f"{where} refused the login of {who}: {text}. Check {server.login_key}.", server.login_key)
    if (found := _tls_meaning(error, where)) is not None:
        return found
    if isinstance(error, (errors.TimeoutError, asyncio.TimeoutError)):
        return UnreachableError(f"{where} has not answered for {server.timeout:.0f} s")
    if not isinstance(error, (OSError, errors.Error)):
        return ConnectError(f"{where}: {type(error).__name__}: {text}")
    if isinstance(error, OSError) and (error.errno or 0) > 0 and not isinstance(error, ssl.SSLError):
        text = os.strerror(error.errno or 0)
    return UnreachableError(f"{where}: {text or type(error).__name__}")


def _tls_meaning(error: BaseException, where: str) -> LoginError | None:
    """Return the meaning of an error of TLS that does not pass."""
    if isinstance(error, NoTlsError):
        return LoginError(f"{where} does not speak TLS. Check {SERVERS}, which begins with tls://.", SERVERS)
    if isinstance(error, NoCertificateError):
        return LoginError(f"{where} demands a certificate of its clients. Set {STORE}, and tls:// in {SERVERS}.", STORE)
    if isinstance(error, ssl.SSLCertVerificationError):
        return LoginError(f"{where}: {error}. {lasting_failure(error, TRUST, SERVERS)}", TRUST)
    if isinstance(error, ssl.SSLError) and (error.reason or "").endswith(_CLIENT_CERTIFICATE):
        return LoginError(f"{where} refused the client's certificate ({error.reason}). Check {STORE}.", STORE)
    return None
