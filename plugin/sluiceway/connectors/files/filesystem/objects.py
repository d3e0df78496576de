"""Objects in S3, Google Cloud Storage and Azure, by fsspec.

Object stores have no rename: a file gets its final name by a copy inside the store, which readers see whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sluiceway.connectors.files.filesystem.base import FileSystem, Output, storage_errors
from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs", "memory": "fsspec"}
_EXTRAS = {"s3": "s3", "gs": "gcs", "abfs": "azure"}


class ObjectStore(FileSystem):
    """Paths are ``bucket/key``. ``part_size`` is the number of bytes of an upload's parts, which are kept in memory."""

    def __init__(self, scheme: str, options: Mapping[str, Any], part_size: int) -> None:
        self._part_size = part_size
        self._fs = _filesystem(scheme, options)

    def open(self, path: str) -> Output:
        with storage_errors("create", path):
            file = self._fs.open(path, "wb", block_size=self._part_size)

        def abort() -> None:
            file.closed = True  # so that nothing is uploaded when Python releases the file
            file.discard()

        return Output(path, file.write, file.close, abort, lambda: file.buffer.tell() if file.buffer is not None else 0)

    def create(self, path: str, data: bytes) -> bool:
        with storage_errors("create", path):
            try:
                self._fs.pipe_file(path, data, mode="create")
            except FileExistsError:
                return False
            return True

    def publish(self, temporary: str, path: str) -> bool:
        with storage_errors("create", path):
            try:
                self._fs.cp_file(temporary, path)
            except FileNotFoundError:
                self._fs.invalidate_cache()
                return bool(self._fs.exists(path))
            self._remove(temporary)
        return True

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(path)

    def read(self, path: str) -> bytes:
        with storage_errors("read", path):
            return bytes(self._fs.cat_file(path))

    def names(self, folder: str) -> list[str]:
        return self._entries(folder, "file")

    def folders(self, folder: str) -> list[str]:
        return self._entries(folder, "directory")

    def _entries(self, folder: str, kind: str) -> list[str]:
        with storage_errors("list", folder):
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(folder, detail=True)
            except FileNotFoundError:
                return []
            names = [str(entry["name"]).rstrip("/").rpartition("/")[2] for entry in found if entry["type"] == kind]
            return [name for name in names if name]

    def delete(self, path: str) -> None:
        with storage_errors("delete", path):
            self._remove(path)

    def check(self, folder: str) -> None:
        bucket = folder.partition("/")[0]
        with storage_errors("read", bucket):
            try:
                self._fs.ls(bucket, detail=False)
            except FileNotFoundError as error:
                raise OSError(f"there is no bucket {bucket}") from error


def _filesystem(scheme: str, options: Mapping[str, Any]) -> Any:
    try:
        import fsspec  # type: ignore[import-untyped]

        return fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False, **options)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        install = install_command(extra) if extra else "pip install fsspec"
        raise MissingToolError(f"{scheme}:// needs the package {_PACKAGES.get(scheme, 'fsspec')}. Run: {install}.") from error
