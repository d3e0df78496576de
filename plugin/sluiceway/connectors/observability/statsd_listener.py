"""Receives lines of StatsD by UDP and TCP, on one thread. Runs on executors."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

from sluiceway.connectors.listening.buffer import Batch, Buffer, Losses
from sluiceway.connectors.listening.keys import bound_socket
from sluiceway.connectors.observability.statsd_config import PORT, TCP, UDP, StatsdOptions
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

Lines = Batch[bytes]

MOST_LINE_BYTES = 65_535
_PACKETS_AT_ONCE = 100
_READ_BYTES = 65_536
_STOP_SECONDS = 5.0
_ATTEMPTS = 20  # to find a port that is free for all protocols
_SO_RXQ_OVFL = 40  # Linux's: a packet tells how many before it the system has dropped. The socket module has no name for it.
_DROPS = struct.Struct("@I")


class StatsdListener:
    """Listens from its creation on; receives from ``start`` to ``stop``. Raises ConnectError for a port that is in use.

    Lines of packets that the buffer has no room for are dropped and counted in ``drops``, packets that the operating system drops
    in ``system_drops``.
    Connections of TCP wait for room, so that their clients do.

    Attributes:
        failure: the error that has ended its thread; None if none has.
        packets: those received by UDP.
        refused: connections that were above the limit, or whose line was too long.
    """

    def __init__(
        self, options: StatsdOptions, buffer: Buffer[Lines], drops: Losses, system_drops: Losses, wake: Callable[[], None]
    ) -> None:
        self._options = options
        self._buffer = buffer
        self._drops = drops
        self._system_drops = system_drops
        self._wake = wake
        self.failure: BaseException | None = None
        self.packets = self.refused = 0
        self._dropped_before = 0
        self._clients: set[asyncio.Task[None]] = set()
        self._room: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statsd-listener", daemon=True)
        self._sockets: dict[str, socket.socket] = {}
        self._bind_all()

    @property
    def port(self) -> int:
        return int(next(iter(self._sockets.values())).getsockname()[1])

    def _bind_all(self) -> None:
        """Bind all protocols to one port. A port that the system chose for the first one may be in use for the second one."""
        for left in reversed(range(1 if self._options.listening.port else _ATTEMPTS)):
            try:
                for protocol in self._options.protocols:
                    self._bind(protocol)
            except BaseException as error:
                self._close()
                self._sockets.clear()
                if not left or not isinstance(error, ConnectError):
                    raise
            else:
                return

    def _bind(self, protocol: str) -> None:
        own = self._options.listening
        port = self.port if self._sockets else own.port  # with port 0, the second protocol has the first one's
        kind = socket.SOCK_DGRAM if protocol == UDP else socket.SOCK_STREAM
        made = self._sockets[protocol] = bound_socket(own.host, port, kind, PORT)
        made.setblocking(False)
        if protocol == UDP:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._options.receive_bytes)
            made.setsockopt(socket.SOL_SOCKET, _SO_RXQ_OVFL, 1)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def room(self) -> None:
        """Let connections go on that wait for room in the buffer. Thread-safe."""
        self._call(lambda: self._room.set() if self._room else None)

    def stop(self) -> None:
        """Receive no more, and end the thread. Takes some seconds at most."""
        self._call(lambda: self._stop.set() if self._stop else None)
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)
        self._close()

    def _call(self, function: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            try:
                loop.call_soon_threadsafe(function)
            except RuntimeError:  # the loop has ended by itself
                log.debug("The listener has ended already")

    def _close(self) -> None:
        for each in self._sockets.values():
            each.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as error:  # the thread's outermost call: poll raises it
            log.exception("The listener has ended")
            self.failure = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._stop, self._room = asyncio.Event(), asyncio.Event()
        self._loop = loop = asyncio.get_running_loop()
        self._ready.set()
        if UDP in self._sockets:
            loop.add_reader(self._sockets[UDP], self._packets)
        server = None
        if TCP in self._sockets:
            server = await asyncio.start_server(self._serve, sock=self._sockets[TCP])
        await self._stop.wait()
        if UDP in self._sockets:
            loop.remove_reader(self._sockets[UDP])
        if server is not None:
            server.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    # --- UDP

    def _packets(self) -> None:
        own = self._sockets[UDP]
        for _ in range(_PACKETS_AT_ONCE):
            try:
                packet, extra, _flags, _address = own.recvmsg(_READ_BYTES, socket.CMSG_SPACE(_DROPS.size))
            except BlockingIOError:
                break
            except OSError as error:  # of ICMP, about a packet
                log.debug("A packet cannot be received: %s", error)
                continue
            self.packets += 1
            for level, kind, content in extra:
                if (level, kind) == (socket.SOL_SOCKET, _SO_RXQ_OVFL):
                    self._system_dropped(*_DROPS.unpack(content[: _DROPS.size]))
            for lines in self._batches(packet.split(b"\n")):
                if not self._buffer.put(lines):
                    self._drops.add(len(lines.items))
        self._wake()

    def _system_dropped(self, total: int) -> None:
        """Count the packets that the system has dropped. ``total`` is of 32 bits, since the socket was opened."""
        self._system_drops.add((total - self._dropped_before) % 2**32)
        self._dropped_before = total

    # --- TCP

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._clients) >= self._options.listening.connections:
            self.refused += 1
            writer.close()
            return
        self._clients.add(task)
        try:
            await self._read(reader)
        except (OSError, asyncio.CancelledError):
            log.debug("A connection has ended")
        finally:
            self._clients.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        rest = b""
        while True:
            read = await reader.read(_READ_BYTES)
            *lines, rest = (rest + read).split(b"\n")
            if not read:
                lines.append(rest)
            await self._put(lines)
            if not read:
                return
            if len(rest) > MOST_LINE_BYTES:  # reported as a bad line, since it ends here
                self.refused += 1
                await self._put([rest[: MOST_LINE_BYTES + 1]])
                return

    async def _put(self, lines: list[bytes]) -> None:
        for batch in self._batches(lines):
            while not self._buffer.put(batch):
                assert self._room is not None  # noqa: S101 (set before any client)
                self._room.clear()
                if self._buffer.put(batch):  # the task may have made room before the event was cleared
                    break
                await self._room.wait()
            self._wake()

    def _batches(self, lines: list[bytes]) -> Iterator[Lines]:
        """Return lines that are not empty, in batches that an empty buffer can hold."""
        at = time.time_ns() // 1_000_000
        found = [line for line in lines if line.strip()]
        most = self._options.listening.buffer_items
        for start in range(0, len(found), most):
            items = found[start : start + most]
            yield Batch(items, sum(map(len, items)), at)
