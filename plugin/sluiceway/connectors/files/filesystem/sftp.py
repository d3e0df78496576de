"""Files on servers with SFTP, by paramiko."""

from __future__ import annotations

import errno
import io
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sluiceway.connectors.files.filesystem.base import Entry, Output, RemoteFileSystem, storage_errors
from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from typing_extensions import Buffer

_READ_AHEAD = 4 << 20
_REQUEST = 32 << 10  # bytes of a read that every server answers at once
_SECONDS = 20


@dataclass(frozen=True, slots=True)
class SftpLogin:
    """Settings of the connection. The repr shows no secret.

    Attributes:
        host: the server's name.
        port: its port.
        user: the user's name.
        password: the user's, or that of the private key; None for neither.
        key_file: path of a private key on this machine; "" for those of the agent and of ``~/.ssh``, unless there is a password.
        host_key: the server's public key, such as ``ssh-ed25519 AAAA...``; "" if ``~/.ssh/known_hosts`` has it.
    """

    host: str
    port: int
    user: str
    password: str | None = field(default=None, repr=False)
    key_file: str = ""
    host_key: str = ""


class SftpFileSystem(RemoteFileSystem):
    """One connection, which is made again when it was lost. SFTP's rename fails if the new name exists."""

    def __init__(self, login: SftpLogin) -> None:
        self._login = login
        self._ssh: Any = None
        self._sftp: Any = None
        _paramiko()

    @contextmanager
    def _client(self, action: str, path: str) -> Iterator[Any]:
        """Yield the client. Raises StorageError, FileNotFoundError, and FileExistsError."""
        with storage_errors(action, path):
            try:
                if self._sftp is None or not self._ssh.get_transport().is_active():
                    self._connect()
                yield self._sftp
            except (EOFError, ConnectionError, TimeoutError):
                self._disconnect()
                raise

    def _connect(self) -> None:
        self._disconnect()
        paramiko, login = _paramiko(), self._login
        self._ssh = ssh = paramiko.SSHClient()
        ssh.set_missing_host_key_policy(paramiko.RejectPolicy())
        if login.host_key:
            name = login.host if login.port == 22 else f"[{login.host}]:{login.port}"
            entry = paramiko.hostkeys.HostKeyEntry.from_line(f"{name} {login.host_key}")
            ssh.get_host_keys().add(name, entry.key.get_name(), entry.key)
        else:
            ssh.load_system_host_keys()
        if login.key_file and not Path(login.key_file).is_file():
            raise OSError(f"there is no private key {login.key_file} on this machine")
        ssh.connect(
            login.host,
            login.port,
            login.user,
            login.password,
            key_filename=login.key_file or None,
            passphrase=login.password if login.key_file else None,
            look_for_keys=not login.key_file and login.password is None,
            allow_agent=not login.key_file and login.password is None,
            timeout=_SECONDS,
            banner_timeout=_SECONDS,
            auth_timeout=_SECONDS,
            channel_timeout=_SECONDS,
        )
        self._sftp = ssh.open_sftp()
        self._sftp.get_channel().settimeout(_SECONDS)

    def _disconnect(self) -> None:
        if self._ssh is not None:
            self._ssh.close()
        self._ssh = self._sftp = None

    def open(self, path: str) -> Output:
        self._make_folders(path.rpartition("/")[0])
        with self._client("create", path) as sftp:
            file = sftp.open(path, "wb")
            file.set_pipelined(pipelined=True)
        return Output(path, file.write, file.close, file.close)

    def _make_folders(self, folder: str) -> None:
        if not folder or self.entry(folder) is not None:
            return
        self._make_folders(folder.rpartition("/")[0])
        with self._client("create", folder) as sftp:
            try:
                sftp.mkdir(folder)
            except OSError:
                if self.entry(folder) is None:  # another task has made it meanwhile
                    raise

    def create(self, path: str, data: bytes) -> bool:
        temporary = f"{path}.{uuid.uuid4().hex}.tmp"
        output = self.open(temporary)
        output.write(data)
        output.finish()
        if self._rename(temporary, path):
            return True
        self.delete(temporary)
        return False

    def publish(self, temporary: str, path: str) -> bool:
        self._make_folders(path.rpartition("/")[0])
        if self._rename(temporary, path):
            return True
        if self.entry(temporary) is not None:
            raise FileExistsError(errno.EEXIST, "another file has the name", path)
        return self.entry(path) is not None

    def _rename(self, source: str, target: str) -> bool:
        """Return False if there is no source, or a target."""
        with self._client("rename", source) as sftp:
            try:
                sftp.rename(source, target)
            except OSError:
                if self.entry(source) is None or self.entry(target) is not None:
                    return False
                raise
        return True

    def read(self, path: str) -> bytes:
        with self.reader(path) as file, storage_errors("read", path):
            return file.read()

    def reader(self, path: str) -> BinaryIO:
        with self._client("read", path) as sftp:
            return io.BufferedReader(_Reader(sftp.open(path, "rb")), _READ_AHEAD)

    def entry(self, path: str) -> Entry | None:
        with self._client("read", path) as sftp:
            try:
                return _entry(path.rpartition("/")[2], sftp.stat(path))
            except FileNotFoundError:
                return None

    def entries(self, folder: str) -> list[Entry]:
        with self._client("list", folder) as sftp:
            try:
                found = sftp.listdir_attr(folder)
            except FileNotFoundError:
                return []
            entries = []
            for each in found:
                status, is_link = each, stat.S_ISLNK(each.st_mode or 0)
                if is_link:
                    with suppress(FileNotFoundError, PermissionError):  # a link to nothing, or to what may not be seen
                        status = sftp.stat(f"{folder.rstrip('/')}/{each.filename}")
                # A link to a folder may lead above; what is neither file nor folder may block.
                if stat.S_ISREG(status.st_mode or 0) or (stat.S_ISDIR(status.st_mode or 0) and not is_link):
                    entries.append(_entry(each.filename, status))
            return entries

    def delete(self, path: str) -> None:
        with self._client("delete", path) as sftp, suppress(FileNotFoundError):
            sftp.remove(path)

    def _delete_empty(self, folder: str) -> None:
        with self._client("delete", folder) as sftp, suppress(FileNotFoundError):
            sftp.rmdir(folder)

    def check(self, folder: str) -> None:
        with self._client("reach", folder) as sftp:
            sftp.stat(".")

    def close(self) -> None:
        self._disconnect()


class _Reader(io.RawIOBase):
    """Reads by many requests at once: a server answers each one with some kilobytes only."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self._size = file.stat().st_size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._position + len(view), self._size)
        parts = [(start, min(_REQUEST, end - start)) for start in range(self._position, end, _REQUEST)]
        length = 0
        for part, (_, size) in zip(self._file.readv(parts), parts, strict=True):
            view[length : length + len(part)] = part
            length += len(part)
            if len(part) < size:  # it was truncated
                break
        self._position += length
        return length

    def close(self) -> None:
        if not self.closed:
            with suppress(EOFError, OSError):  # the connection may be lost
                self._file.close()
        super().close()


def _entry(name: str, found: Any) -> Entry:
    return Entry(name, stat.S_ISDIR(found.st_mode or 0), found.st_size or 0, int(found.st_mtime or 0) * 1_000_000_000)


def _paramiko() -> Any:
    try:
        import paramiko  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingToolError(f"sftp:// needs the package paramiko. Run: {install_command('sftp')}.") from error
    return paramiko
