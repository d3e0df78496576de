"""Files in HDFS, by hdfs-native: no Java, with high availability and Kerberos."""

from __future__ import annotations

import errno
import io
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from sluiceway.connectors.files.filesystem.base import Entry, Output, RemoteFileSystem, storage_errors
from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from typing_extensions import Buffer


_READ_AHEAD = 4 << 20
# The task tries again by itself; the client's own retries would last for minutes, in which the task cannot be stopped.
_FEW_RETRIES = {
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.failover.sleep.base.millis": "200",
    "dfs.client.failover.sleep.max.millis": "2000",
}
_REMOTE = re.compile(r'(?:Fatal)?RPCError\("[\w.]*?(?P<kind>[\w$]+)", "(?P<text>.*?)(?:\\n|"\))')
_NUMBERS = {
    "AccessControlException": errno.EACCES,
    "DSQuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
}


@dataclass(frozen=True, slots=True)
class HdfsLogin:
    """Settings of the HDFS client; empty texts stand for the client's defaults (``HADOOP_CONF_DIR``, the ticket cache)."""

    url: str
    conf_dir: str = ""
    principal: str = ""
    keytab: str = ""
    settings: Mapping[str, str] | None = None


class HdfsFileSystem(RemoteFileSystem):
    """HDFS renames a file in one step and refuses to do so if the new name exists."""

    def __init__(self, login: HdfsLogin) -> None:
        self._client: Any = _client(login)

    def open(self, path: str) -> Output:
        with hdfs_errors("create", path):
            file = self._client.create(path)

        def write(data: Buffer) -> None:
            with hdfs_errors("write", path):
                file.write(data)

        def finish() -> None:
            with hdfs_errors("write", path):
                file.close()

        return Output(path, write, finish, _nothing)  # closing would wait for a NameNode that is away

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
        with hdfs_errors("create", path):
            self._client.mkdirs(path.rpartition("/")[0], 0o755, True)
        try:
            renamed = self._rename(temporary, path)
        except FileNotFoundError:
            return self._exists(path)
        if not renamed and self._exists(temporary):
            raise FileExistsError(path)
        return True

    def _rename(self, source: str, target: str) -> bool:
        """Return False if the target exists."""
        with hdfs_errors("rename", source):
            try:
                self._client.rename(source, target, False)
            except FileExistsError:
                return False
            except FileNotFoundError:
                raise
            except Exception:
                # The client's retry after a lost answer finds its own rename done.
                if self._exists(target):
                    return not self._exists(source)
                if not self._exists(source):
                    raise FileNotFoundError(source) from None
                raise
        return True

    def _exists(self, path: str) -> bool:
        with hdfs_errors("read", path):
            try:
                self._client.get_file_info(path)
            except FileNotFoundError:
                return False
            return True

    def read(self, path: str) -> bytes:
        with hdfs_errors("read", path):
            return bytes(self._client.read(path).read())

    def reader(self, path: str) -> BinaryIO:
        with hdfs_errors("read", path):
            return io.BufferedReader(_Reader(self._client.read(path)), _READ_AHEAD)

    def entry(self, path: str) -> Entry | None:
        with hdfs_errors("read", path):
            try:
                return _entry(self._client.get_file_info(path))
            except FileNotFoundError:
                return None

    def entries(self, folder: str) -> list[Entry]:
        with hdfs_errors("list", folder):
            try:
                return [_entry(each) for each in self._client.list_status(folder, False)]
            except FileNotFoundError:
                return []

    def delete(self, path: str) -> None:
        with hdfs_errors("delete", path):
            try:
                self._client.delete(path, False)
            except FileNotFoundError:
                return

    def _delete_empty(self, folder: str) -> None:
        self.delete(folder)

    def check(self, folder: str) -> None:
        with hdfs_errors("reach", folder):
            self._client.get_file_info("/")


class _Reader(io.RawIOBase):
    """The client's reader, which a buffer cannot read into."""

    def __init__(self, reader: Any) -> None:
        super().__init__()
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._reader.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        return int(self._reader.tell())

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._reader.read(len(view))
        view[: len(data)] = data
        return len(data)


def _entry(found: Any) -> Entry:
    modified = found.modification_time * 1_000_000  # from milliseconds
    return Entry(found.path.rpartition("/")[2], found.isdir, found.length, modified)


def _nothing() -> None:
    return


def client_settings(conf_dir: str = "") -> Mapping[str, str]:
    """Return settings for few retries, unless Hadoop's own configuration says how often to retry."""
    own_conf = conf_dir or "HADOOP_CONF_DIR" in os.environ or "HADOOP_HOME" in os.environ
    return {} if own_conf else _FEW_RETRIES


def _client(login: HdfsLogin) -> Any:
    try:
        from hdfs_native import Client
    except ImportError as error:
        raise MissingToolError(f"HDFS needs the package hdfs-native. Run: {install_command('hdfs')}.") from error
    settings = {**client_settings(login.conf_dir), **(login.settings or {})}
    kerberos = {"kerberos_principal": login.principal or None, "kerberos_keytab": login.keytab or None}
    with hdfs_errors("connect to", login.url):
        return Client(login.url, settings, login.conf_dir or None, **kerberos)


@contextmanager
def hdfs_errors(action: str, path: str) -> Iterator[None]:
    """Do as ``storage_errors``, with the NameNode's reason instead of its stack trace."""
    with storage_errors(action, path):
        try:
            yield
        except (FileNotFoundError, FileExistsError):
            raise
        except Exception as error:
            known = remote_error(error)
            if known is None:
                raise
            raise known from error


def remote_error(error: Exception) -> OSError | None:
    """Return a NameNode's error as an OSError, None if it is another one."""
    found = _REMOTE.search(str(error))
    if found is None:
        return None
    text = found["text"].replace('\\"', '"').rstrip(". ")
    return OSError(_NUMBERS.get(found["kind"], errno.EIO), text)
