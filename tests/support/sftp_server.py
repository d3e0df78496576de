"""A server with SFTP for tests, in a process of its own: paramiko's server, with the folder that it serves as its root."""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sluiceway.stack.ports import free_port
from support.eventually import LIMIT, eventually

USER, PASSWORD = "robot", "s3cret"


@dataclass
class SftpServer:
    """The server. ``root`` is the folder that clients see as /."""

    root: Path
    port: int
    host_key: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"sftp://{USER}@127.0.0.1:{self.port}"

    @property
    def config(self) -> dict[str, str]:
        return {"sftp.password": PASSWORD, "sftp.host.key": self.host_key}

    def start(self) -> None:
        command = [sys.executable, __file__, str(self.root), str(self.port), str(self.root.parent / "host_key")]
        self.process = subprocess.Popen(command, cwd=Path(__file__).parents[1], env={**os.environ, "PYTHONPATH": "."})
        eventually(self._answers, what="the SFTP server")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as found:
                return found.recv(3) == b"SSH"
        except OSError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(LIMIT)


@contextmanager
def sftp_server(folder: Path) -> Iterator[SftpServer]:
    """Start a server with an empty folder. Skips the test if paramiko is not installed."""
    paramiko: Any = pytest.importorskip("paramiko")
    root = folder / "root"
    root.mkdir()
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(folder / "host_key"))
    server = SftpServer(root, free_port(), f"{key.get_name()} {key.get_base64()}")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def serve(root: Path, port: int, key_file: str) -> None:
    """Answer clients until the process is killed."""
    paramiko: Any = importlib.import_module("paramiko")

    class Files(paramiko.SFTPServerInterface):  # type: ignore[no-any-unimported]
        def _real(self, path: str) -> str:
            return str(root) + self.canonicalize(path)

        def _answer(self, call: Any) -> Any:
            """Return what a call returns, OK for nothing, or the number of its error."""
            try:
                found = call()
                return paramiko.SFTP_OK if found is None else found
            except OSError as error:
                return paramiko.SFTPServer.convert_errno(error.errno)

        def list_folder(self, path: str) -> Any:
            def entries() -> list[Any]:
                folder = Path(self._real(path))
                return [paramiko.SFTPAttributes.from_stat(each.lstat(), each.name) for each in sorted(folder.iterdir())]

            return self._answer(entries)

        def stat(self, path: str) -> Any:
            return self._answer(lambda: paramiko.SFTPAttributes.from_stat(os.stat(self._real(path))))  # noqa: PTH116

        def open(self, path: str, flags: int, attr: Any) -> Any:
            def handle() -> Any:
                file = os.fdopen(os.open(self._real(path), flags, 0o644), "wb" if flags & os.O_WRONLY else "rb")
                made = paramiko.SFTPHandle(flags)
                made.readfile = made.writefile = file
                made.stat = lambda: paramiko.SFTPAttributes.from_stat(os.fstat(file.fileno()))
                return made

            return self._answer(handle)

        def remove(self, path: str) -> Any:
            return self._answer(lambda: os.unlink(self._real(path)))  # noqa: PTH108

        def rename(self, old: str, new: str) -> Any:
            if Path(self._real(new)).exists():
                return paramiko.SFTP_FAILURE  # as OpenSSH does
            return self._answer(lambda: os.rename(self._real(old), self._real(new)))  # noqa: PTH104

        def mkdir(self, path: str, attr: Any) -> Any:
            return self._answer(lambda: os.mkdir(self._real(path)))  # noqa: PTH102

    class Server(paramiko.ServerInterface):  # type: ignore[no-any-unimported]
        def check_auth_password(self, username: str, password: str) -> int:
            known = (username, password) == (USER, PASSWORD)
            return int(paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED)

        def check_channel_request(self, kind: str, chanid: int) -> int:
            return int(paramiko.OPEN_SUCCEEDED)

        def get_allowed_auths(self, username: str) -> str:
            return "password"

    def handle(client: socket.socket) -> None:
        transport = paramiko.Transport(client)
        transport.add_server_key(paramiko.ECDSAKey.from_private_key_file(key_file))
        transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files)
        transport.start_server(server=Server(), event=threading.Event())

    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            handle(listener.accept()[0])


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
