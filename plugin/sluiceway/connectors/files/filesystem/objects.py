"""Objects in S3, Google Cloud Storage and Azure, by fsspec.

Object stores have no rename: a file gets its final name by a copy inside the store, which readers see whole or not at all.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from sluiceway.connectors.files.filesystem.base import Entry, Output, RemoteFileSystem, storage_errors
from sluiceway.errors import MissingToolError
from sluiceway.installation import install_command

_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs", "memory": "fsspec"}
_READ_AHEAD = 4 << 20
_PAGE = 1000
_MODIFIED = ("LastModified", "last_modified", "mtime", "updated", "created")
_VERSIONS = ("ETag", "etag", "generation")
_EXTRAS = {"s3": "s3", "gs": "gcs", "abfs": "azure"}


class ObjectStore(RemoteFileSystem):
    """Paths are ``bucket/key``. ``part_size`` is the number of bytes of an upload's parts, which are kept in memory."""

    def __init__(self, scheme: str, options: Mapping[str, Any], part_size: int) -> None:
        self.has_versions = scheme == "s3"  # whose client reads one ETag only
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

    def reader(self, path: str) -> BinaryIO:
        with storage_errors("read", path):
            file: BinaryIO = self._fs.open(path, "rb", block_size=_READ_AHEAD, cache_type="readahead")
        return file

    def entry(self, path: str) -> Entry | None:
        with storage_errors("read", path):
            try:
                return _entry(self._fs.info(path))
            except FileNotFoundError:
                return None

    def entries(self, folder: str) -> list[Entry]:
        with storage_errors("list", folder):
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(folder, detail=True)
            except FileNotFoundError:
                return []
            own = folder.rstrip("/")  # an empty object that stands for the folder is in it
            return [_entry(each) for each in found if str(each["name"]).rstrip("/") != own]

    def delete(self, path: str) -> None:
        with storage_errors("delete", path):
            self._remove(path)

    def objects(self, prefix: str, after: str, *, is_deep: bool) -> Iterator[tuple[str, Entry]]:
        bucket, start, _ = self._fs.split_path(prefix)
        request = {"Bucket": bucket, "Prefix": start, "StartAfter": after.removeprefix(f"{bucket}/"), "MaxKeys": _PAGE}
        if not is_deep:
            request["Delimiter"] = "/"
        while request:
            with storage_errors("list", prefix):
                try:
                    page = self._fs.call_s3("list_objects_v2", **request)
                except FileNotFoundError:
                    return
            for each in page.get("Contents", ()):
                path = f"{bucket}/{each['Key']}"
                yield path, _entry({**each, "name": path, "type": "file", "size": each["Size"]})
            more = page.get("NextContinuationToken")
            request = {**request, "ContinuationToken": more} if more else {}

    def tag(self, path: str, key: str, value: str) -> None:
        if not hasattr(self._fs, "put_tags"):
            super().tag(path, key, value)
        with storage_errors("tag", path), suppress(FileNotFoundError):
            tags = self._fs.get_tags(path)
            if tags.get(key) != value:
                self._fs.put_tags(path, {**tags, key: value})

    def check(self, folder: str) -> None:
        bucket = folder.partition("/")[0]
        with storage_errors("read", bucket):
            try:
                self._fs.ls(bucket, detail=False)
            except FileNotFoundError as error:
                raise OSError(f"there is no bucket {bucket}") from error


def _entry(found: Mapping[str, Any]) -> Entry:
    modified = next((found[name] for name in _MODIFIED if found.get(name)), 0)
    if isinstance(modified, str):
        modified = datetime.datetime.fromisoformat(modified)
    if isinstance(modified, datetime.datetime):
        modified = modified.timestamp()
    return Entry(
        str(found["name"]).rstrip("/").rpartition("/")[2],
        found["type"] == "directory",
        int(found.get("size") or 0),
        int(modified) * 1_000_000_000,  # lists and single answers differ in what is below a second
        next((str(found[name]) for name in _VERSIONS if found.get(name)), ""),
    )


def _filesystem(scheme: str, options: Mapping[str, Any]) -> Any:
    try:
        import fsspec  # type: ignore[import-untyped]

        return fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False, **options)
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        install = install_command(extra) if extra else "pip install fsspec"
        raise MissingToolError(f"{scheme}:// needs the package {_PACKAGES.get(scheme, 'fsspec')}. Run: {install}.") from error
