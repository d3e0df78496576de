"""Starts a RabbitMQ server for tests: the machine's, else that of its Debian or Ubuntu, unpacked in the cache folder."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil

from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.database import HOST
from support.debian_packages import unpacked_package
from support.eventually import LIMIT, eventually
from support.guard import Guard, stop

PACKAGE = "rabbitmq-server"
_NODE, _COOKIE = "rabbit@localhost", "sluiceway"
_ADVANCED = "[{{rabbit, [{{channel_tick_interval, 500}}, {{consumer_timeout, {timeout}}}, {{heartbeat, 60}}]}}].\n"
"""Late acknowledgements are noticed within a second, not a minute."""
_QUIET = "+sbwt none +sbwtdcpu none +sbwtdio none"  # schedulers that wait do not spin


class RabbitServer:
    """A RabbitMQ with its data in a temporary folder. ``consumer_timeout`` is in seconds."""

    def __init__(self, *, consumer_timeout: float = 1800, tls: Sequence[Path] = ()) -> None:
        """Prepare a server. ``tls`` has the files of its authority, certificate, and key."""
        self.folder = Path(tempfile.mkdtemp(prefix="sluiceway-rabbitmq-"))
        self.port, self._epmd_port = free_port(HOST), free_port(HOST)
        self.tls_port = free_port(HOST) if tls else 0
        self._root = _installed()
        settings = [f"listeners.tcp.1 = {HOST}:{self.port}", "log.console.level = warning", "disk_free_limit.absolute = 1MB"]
        if tls:
            settings.append(f"listeners.ssl.1 = {HOST}:{self.tls_port}")
            names = ("cacertfile", "certfile", "keyfile")
            settings += [f"ssl_options.{name} = {path}" for name, path in zip(names, tls, strict=True)]
        (self.folder / "rabbitmq.conf").write_text("".join(f"{line}\n" for line in settings))
        (self.folder / "advanced.config").write_text(_ADVANCED.format(timeout=int(consumer_timeout * 1000)))
        (self.folder / "plugins").write_text("[].\n")
        cookie = self.folder / ".erlang.cookie"
        cookie.write_text(_COOKIE)
        cookie.chmod(0o400)
        environment = self._environment()
        programs = Path(environment["PATH"].split(":")[0])
        self._guard = Guard(end, self.folder)
        self._epmd = BackgroundProcess("epmd", [programs / "epmd", "-address", HOST], self.folder, env=environment)
        self.process = BackgroundProcess("rabbitmq", [_scripts(self._root) / "rabbitmq-server"], self.folder, env=environment)

    def start(self) -> None:
        """Start the server unless it runs, and wait until it answers."""
        self._epmd.start()
        self._epmd.wait_until(lambda: self._epmd.listens_on(self._epmd_port), LIMIT)
        self.process.start()
        self.process.wait_until(self._answers, LIMIT)

    def end(self, number: signal.Signals) -> None:
        """End the server with a signal. ``start`` starts it again on the same port, with what it has on its disk."""
        pid = self.process.status().pid
        assert pid is not None, "RabbitMQ does not run"
        for each in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # one of the server's short-lived helpers
                if each.name() == "beam.smp":
                    each.send_signal(number)
        eventually(lambda: not self.process.is_running(), what="the end of RabbitMQ")

    def close(self) -> None:
        if self.process.is_running():
            self.end(signal.SIGKILL)  # an orderly end takes seconds, and its data is not needed
        end(self.folder)
        self._guard.close()

    @property
    def config(self) -> dict[str, str]:
        """The connection keys of a connector's config."""
        return {"rabbitmq.host": HOST, "rabbitmq.port": str(self.port)}

    def connect(self) -> Any:
        """Return pika's blocking connection. Closed by the caller."""
        import pika

        return pika.BlockingConnection(pika.ConnectionParameters(HOST, self.port, heartbeat=0))

    def declare(self, queue: str, kind: str = "classic", **arguments: Any) -> None:
        """Create a queue. ``arguments`` are its own, with underscores for dashes."""
        given = {"x-queue-type": kind, **{name.replace("_", "-"): value for name, value in arguments.items()}}
        with closing(self.connect()) as connection:
            connection.channel().queue_declare(queue, durable=True, arguments=given)

    def delete(self, queue: str) -> None:
        with closing(self.connect()) as connection:
            connection.channel().queue_delete(queue)

    def publish(self, queue: str, *bodies: bytes | str, **properties: Any) -> None:
        """Publish messages to a queue, and wait until the server has them."""
        import pika

        with closing(self.connect()) as connection:
            channel = connection.channel()
            channel.tx_select()
            for body in bodies:
                channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2, **properties))
            channel.tx_commit()

    def count(self, queue: str) -> int:
        """Return the number of messages of a queue that no consumer has."""
        with closing(self.connect()) as connection:
            return int(connection.channel().queue_declare(queue, passive=True).method.message_count)

    def consumers(self, queue: str) -> int:
        with closing(self.connect()) as connection:
            return int(connection.channel().queue_declare(queue, passive=True).method.consumer_count)

    def take(self, queue: str) -> list[tuple[Any, bytes]]:
        """Return the properties and the bodies of a queue's messages, and remove them."""
        found = []
        with closing(self.connect()) as connection:
            channel = connection.channel()
            while (message := channel.basic_get(queue, auto_ack=True))[0] is not None:
                found.append(message[1:])
        return found

    def block_publishers(self, blocked: bool) -> None:
        """Let the server take more memory than it may, or let it have enough."""
        self.call(f"vm_memory_monitor:set_vm_memory_high_watermark({'0.0000001' if blocked else '0.6'})")

    def call(self, expression: str) -> None:
        """Evaluate an expression of Erlang in the server, such as ``rabbit_networking:close_all_connections("test")``."""
        module, function, arguments = re.fullmatch(r"(\w+):(\w+)\((.*)\)", expression).groups()  # type: ignore[union-attr]
        code = f"ok = case rpc:call('{_NODE}', {module}, {function}, [{arguments}]) of {{badrpc, R}} -> R; _ -> ok end, halt()."
        command = ["erl", "-noinput", "-sname", f"test{os.getpid()}@localhost", "-setcookie", _COOKIE, "-eval", code]
        subprocess.run(command, check=True, env={**os.environ, **self._environment()}, timeout=LIMIT)

    def _environment(self) -> dict[str, str]:
        folder, root = self.folder, self._root
        path = f"{root / 'usr/lib/erlang/bin'}:{os.environ['PATH']}"
        return {
            "PATH": path,
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": HOST,
            "RABBITMQ_NODENAME": _NODE,
            "RABBITMQ_DIST_PORT": str(free_port(HOST)),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "rabbit.pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _QUIET,
            "RABBITMQ_SERVER_START_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port), 5) as connection:
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(connection.recv(16))
        except OSError:
            return False


def end(folder: str | Path) -> None:
    """Stop the server of a folder, from any process, and delete the folder."""
    if Path(folder).exists():
        stop(folder, "rabbitmq", "epmd")
        shutil.rmtree(folder, ignore_errors=True)


def _scripts(root: Path) -> Path:
    """Return the folder of the server's own scripts: Debian's around them change the user."""
    return next((root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")) / "sbin"


def _installed() -> Path:
    """Return the folder below which the server is. The first call loads it, 35 MB; this needs no root."""
    if Path("/usr/lib/rabbitmq/lib").exists():
        return Path("/")
    root = unpacked_package(PACKAGE, "erlang")  # all of Erlang must be below one folder
    erl = root / "usr/lib/erlang/bin/erl"
    erl.write_text(erl.read_text().replace("ROOTDIR=/usr/lib/erlang", f"ROOTDIR={root / 'usr/lib/erlang'}"))
    return root
