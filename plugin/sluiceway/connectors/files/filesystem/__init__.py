"""File systems and object stores behind one small interface: write, create if absent, publish, list, delete."""

from sluiceway.connectors.files.filesystem.base import FileSystem, Output, StorageError, storage_errors

__all__ = ["FileSystem", "Output", "StorageError", "storage_errors"]
