"""Files of Iceberg tables: PyArrow's file systems, but HDFS by hdfs-native, which needs neither Java nor libhdfs."""

from __future__ import annotations

import functools
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs
from pyiceberg.io.pyarrow import PyArrowFileIO

from sluiceway.connectors.files.filesystem.hdfs import client_settings
from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command


class HdfsFileIO(PyArrowFileIO):
    """PyIceberg loads this class by the property ``py-io-impl``."""

    def _initialize_hdfs_fs(self, scheme: str, netloc: str | None) -> fs.FileSystem:
        handler = fs.FSSpecHandler(_hdfs(f"{scheme}://{netloc or ''}"))  # type: ignore[abstract] # the stubs lack its methods
        return fs.PyFileSystem(handler)


@functools.cache  # each client has threads of its own, which outlive it, and each load of a table makes another FileIO
def _hdfs(url: str) -> Any:
    """Return an fsspec file system whose descriptions of files have the time of change that PyArrow looks for."""
    try:
        from hdfs_native.fsspec import HdfsFileSystem
    except ImportError as error:
        raise MissingToolError(f"HDFS needs the package hdfs-native. Run: {install_command('hdfs')}.") from error

    class WithTimes(HdfsFileSystem):
        def _convert_file_status(self, file_status: Any) -> dict[str, Any]:
            return {**super()._convert_file_status(file_status), "mtime": file_status.modification_time / 1000}

    parts = urlsplit(url)
    return WithTimes(parts.hostname, parts.port, **client_settings())
