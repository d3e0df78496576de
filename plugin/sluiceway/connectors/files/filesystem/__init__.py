"""File systems and object stores behind one small interface: write, create if absent, publish, list, delete; read remote ones."""

from sluiceway.connectors.files.filesystem.base import (
    Entry,
    FileSystem,
    Output,
    RemoteFileSystem,
    StorageError,
    storage_errors,
)

__all__ = ["Entry", "FileSystem", "Output", "RemoteFileSystem", "StorageError", "storage_errors"]
