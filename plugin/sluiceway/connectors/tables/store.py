"""Interface of a table format for the table sinks: tables that commit data and offsets in one transaction."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError, RetriableError

if TYPE_CHECKING:
    import pyarrow as pa

    from sluiceway.connectors.replacement import IntervalReplacement
    from sluiceway.connectors.tables.evolution import ColumnChange
    from sluiceway.connectors.tables.rows import Rows

Offsets = Mapping[TopicPartition, int]
Expected = Mapping[TopicPartition, int | None]


class UnreachableError(RetriableError):
    """The catalog or the storage cannot be reached; nothing was committed."""


class UnknownOutcomeError(RetriableError):
    """A commit failed such that it may have taken effect."""


class ConflictingCommitError(RetriableError):
    """Another writer committed first; nothing of this commit took effect. The same commit may succeed on the newer table."""


class FencedOffsetsError(ConnectError):
    """Another task committed offsets of the same partitions; nothing of this commit took effect."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Data files that are written but not part of the table yet; ``layout`` identifies the partitioning they were written for."""

    files: Sequence[Any]
    rows: int
    layout: int = 0


@dataclass(frozen=True, slots=True)
class Merge:
    """The last change of each key: the rows to write, and the keys whose rows are deleted without replacement."""

    rows: pa.Table
    deleted: pa.Table
    id_columns: tuple[str, ...]


class Table(Protocol):
    """One table. Not thread-safe. All methods raise UnreachableError if they cannot reach the catalog or the storage."""

    @property
    def schema(self) -> pa.Schema:
        """The table's columns as loaded last; nullability as in the table."""

    def offset(self, partition: TopicPartition) -> int | None:
        """Return the next offset of a partition that this connector has committed, as loaded last; None if there is none."""

    def reload(self) -> None:
        """Load the table as it is now. Raises ConnectError if it was dropped or replaced."""

    def evolve(self, changes: Sequence[ColumnChange]) -> None:
        """Apply changes in a commit of their own, unless another task has applied them. Raises ConnectError if impossible."""

    def check_values(self, rows: pa.Table) -> None:
        """Raise DataError for values that fit into the columns, but not into the table's files and folders."""

    def stage(self, rows: pa.Table) -> Staged:
        """Write rows, whose columns are those of ``schema``, to data files."""

    def discard(self, staged: Sequence[Staged]) -> None:
        """Delete data files that were never committed. Logs failures only: a sweep deletes the files later."""

    def append(self, staged: Sequence[Staged], expected: Expected, offsets: Offsets) -> None:
        """Commit data files and offsets if the stored offsets are the ``expected`` ones.

        Raises FencedOffsetsError if they are not, ConflictingCommitError and UnknownOutcomeError.
        """

    def merge(self, merge: Merge, expected: Expected, offsets: Offsets) -> None:
        """Commit changes by key and offsets as ``append`` does."""

    def replace(self, replacement: IntervalReplacement, rows: Iterable[pa.Table], expected: Expected, offsets: Offsets) -> None:
        """Commit rows, whose columns are those of ``schema``, instead of those that there are of an interval.

        With the offsets, as ``append`` does.
        """

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set or remove offsets such that commits that are under way fail."""

    def sweep(self, age: float) -> int:
        """Delete this connector's uncommitted data files that are older than ``age`` seconds; return how many."""

    def compact(self, target: int, least: int) -> int:
        """Merge the data files of each partition that are smaller than ``target`` bytes, if there are at least ``least``.

        Commits of others come first. Returns how many files were replaced. Raises as ``append`` does.
        """

    def expire(self, age: float) -> None:
        """Forget the table's versions that are older than ``age`` seconds."""


def check_offsets(table: Table, name: str, expected: Expected, offsets: Offsets) -> None:
    """Raise FencedOffsetsError unless a table has the ``expected`` offsets for the partitions of ``offsets``."""
    stored = {partition: table.offset(partition) for partition in offsets}
    other = [partition for partition in offsets if stored[partition] != expected.get(partition)]
    if other:
        texts = (f"{each.topic}-{each.partition}: {stored[each]} instead of {expected.get(each)}" for each in other)
        raise FencedOffsetsError(f"Another task has committed to table {name}: it has offsets {', '.join(texts)}.")


class TableStore(abc.ABC):
    """The tables of a catalog or folder. Raises as ``Table`` does."""

    shares_offsets: ClassVar[bool] = False
    """Whether the offsets are those of all tables, because ``commits`` makes one transaction of their commits."""

    def offset(self, partition: TopicPartition) -> int | None:
        """Return the offset that all tables share, with ``shares_offsets``."""
        raise NotImplementedError

    def set_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set or remove offsets that all tables share, such that commits that are under way fail."""
        raise NotImplementedError

    @contextlib.contextmanager
    def commits(self) -> Iterator[None]:
        """Commit to tables within. The commits of a store that ``shares_offsets`` take effect together at the end.

        What then fails such that it may take effect later raises UnknownOutcomeError.
        """
        yield

    def adapted(self, name: str, rows: Rows) -> Rows:
        """Return rows for a table with the names and the types that this store can have. Raises DataError."""
        return rows

    def schemaless(self, values: list[Any]) -> pa.Array[Any]:
        """Return an array of values without a schema. Raises Arrow's errors."""
        import pyarrow as pa

        array: pa.Array[Any] = pa.array(values)
        return array

    def column_name(self, name: str) -> str:
        """Return the name that a column for a field has."""
        return name

    @abc.abstractmethod
    def table(self, name: str) -> Table | None:
        """Load a table; None if it does not exist."""

    @abc.abstractmethod
    def create(self, name: str, schema: pa.Schema, partition_by: Sequence[str], id_columns: Sequence[str]) -> Table:
        """Create a table, unless another task has. Raises ConnectError if that is impossible."""

    @abc.abstractmethod
    def arrow_type(self, type_: pa.DataType, path: str = "") -> pa.DataType:
        """Return the type that columns of this store have for data of an Arrow type.

        Raises DataError, which names the field at ``path``, if there is none.
        """

    def check_names(self, columns: pa.Schema) -> None:
        """Raise DataError, which names the field, for columns that no table of this store can have beside each other."""
        return

    @abc.abstractmethod
    def widens(self, old: pa.DataType, new: pa.DataType) -> bool:
        """Return whether a column of type ``old`` can be changed to type ``new``."""

    @abc.abstractmethod
    def names(self) -> Collection[str]:
        """Return the names of all tables that hold offsets of this connector."""

    def close(self) -> None:
        """Release what it holds."""
        return
