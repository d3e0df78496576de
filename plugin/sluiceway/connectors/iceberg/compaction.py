"""Selects the small data files of an Iceberg table to merge. No I/O except to read the manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyiceberg.manifest import FileFormat

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table

_SMALL = 0.75


def groups(table: Table, branch: str, target: int, least: int) -> Iterator[list[FileScanTask]]:
    """Yield lists of at least ``least`` small files of one partition, of about ``target`` bytes in all.

    Files of former partition specs and files with row-level deletes are left to the writers that made them.
    """
    by_partition: dict[str, list[FileScanTask]] = {}
    for task in _live(table, branch).values():
        file = task.file
        small = file.file_size_in_bytes < target * _SMALL and file.file_format is FileFormat.PARQUET
        if small and not task.delete_files and file.spec_id == table.spec().spec_id:
            by_partition.setdefault(repr(file.partition), []).append(task)
    for tasks in by_partition.values():
        for group in _packed(tasks, target):
            if len(group) >= least:
                yield group


def unchanged(table: Table, branch: str, group: Sequence[FileScanTask]) -> bool:
    """Return whether the files of a group are still in the table, with all their rows and in the current partition spec."""
    live = _live(table, branch)
    return all(
        (found := live.get(task.file.file_path)) is not None
        and not found.delete_files
        and found.file.spec_id == table.spec().spec_id
        for task in group
    )


def _live(table: Table, branch: str) -> Mapping[str, FileScanTask]:
    """Return a table's data files by path."""
    if table.metadata.snapshot_by_name(branch) is None:
        return {}
    return {task.file.file_path: task for task in table.scan().use_ref(branch).plan_files()}


def _packed(tasks: Sequence[FileScanTask], target: int) -> Iterator[list[FileScanTask]]:
    """Split files, which stay in their order, where they exceed ``target`` bytes."""
    group: list[FileScanTask] = []
    size = 0
    for task in tasks:
        if group and size + task.file.file_size_in_bytes > target:
            yield group
            group, size = [], 0
        group.append(task)
        size += task.file.file_size_in_bytes
    if group:
        yield group
