"""Serves the REST API by itself, on the worker's ``listeners``."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping

import uvicorn
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.herder import Herder
from sluiceway.rest.app import make_app
from sluiceway.rest.cluster import ClusterId

log = logging.getLogger(__name__)

_START_SECONDS = 30.0
_STOP_SECONDS = 5


class RestServer:
    """The REST API on a thread of its own; several may run in one process. ``start`` binds, ``stop`` lets requests finish."""

    def __init__(self, worker: WorkerConfig, herder_provider: Callable[[], Herder]) -> None:
        self._listeners = [parse_listener(each) for each in worker.text("listeners").split(",")]
        self._sockets: list[socket.socket] = []
        self._server = uvicorn.Server(
            uvicorn.Config(
                make_app(herder_provider, kafka_cluster_id=ClusterId(worker)),
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_STOP_SECONDS,
            )
        )
        self._thread = threading.Thread(target=self._serve, name="rest", daemon=True)

    @property
    def addresses(self) -> list[str]:
        """The URLs that it answers on, once started; a listener on port 0 shows the port it was given."""
        return [_url(each) for each in self._sockets]

    def start(self) -> None:
        """Bind the listeners and return once requests are answered.

        Raises MissingToolError if an address cannot be bound; nothing stays bound then.
        """
        try:
            for host, port in self._listeners:
                self._sockets.append(_bind(host, port))
        except MissingToolError:
            self._close_sockets()
            raise
        self._thread.start()
        waited = threading.Event()
        for _ in range(int(_START_SECONDS / 0.02)):
            if self._server.started or not self._thread.is_alive():
                break
            waited.wait(0.02)
        if not self._server.started:
            self.stop()
            raise ConnectError(f"The REST server did not start on {', '.join(self.addresses)}; see the log.")
        log.info("REST API on %s", ", ".join(self.addresses))

    def stop(self) -> None:
        """Let running requests finish, for 5 s at most, and close the listeners. May be called when not started."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS + 5)
        self._close_sockets()

    def _serve(self) -> None:
        self._server.run(sockets=list(self._sockets))

    def _close_sockets(self) -> None:
        for each in self._sockets:
            each.close()


def serve(worker: WorkerConfig) -> None:
    """Serve the REST API over the worker's three topics until SIGTERM or SIGINT. Call from the main thread."""
    from sluiceway.storage.factory import open_stores

    with _told_to_stop() as stopping, open_stores(worker) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        server = RestServer(worker, lambda: herder)
        server.start()
        try:
            stopping.wait()
        finally:
            server.stop()
    log.info("REST API stopped")


@contextlib.contextmanager
def _told_to_stop() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set, and put the signals' handlers back afterwards."""
    event = threading.Event()
    before: Mapping[signal.Signals, object] = {
        number: signal.signal(number, lambda *_: event.set()) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]


def parse_listener(listener: str) -> tuple[str, int]:
    """Return host ("" for every interface) and port of ``http://host:port``; raises ConfigError."""
    scheme, separator, address = listener.strip().partition("://")
    host, _, port = address.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ConfigError("listeners", listener, "Expected http://host:port; leave out the host to listen everywhere")
    if scheme.lower() != "http":
        raise ConfigError("listeners", listener, "Only http listeners are supported; put a proxy in front for https")
    return host.strip("[]"), int(port)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(socket.SOMAXCONN)
    except OSError as error:
        bound.close()
        raise MissingToolError(
            f"Cannot listen on {host or '*'}:{port}: {error.strerror or error}. "
            "Stop what uses the port, or set another in 'listeners'."
        ) from error
    return bound


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    host = "localhost" if host in ("0.0.0.0", "::") else host  # noqa: S104 (compared, not bound)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
