"""The typed config of SparkSource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.connectors.spark import keys
from sluiceway.errors import ConfigError

PATH = "path"
PLACES = (keys.PATH, keys.TABLE, keys.QUERY)
_JDBC = "jdbc"
_FILES = frozenset({"parquet", "orc", "json", "csv", "text", "xml", "avro", "binaryfile"})


@dataclass(frozen=True, slots=True)
class SourceConfig:
    """The typed values of a source's config; times in seconds.

    ``column`` is the column that orders the rows, empty without one. ``partition`` is the source partition of the rows.
    """

    format: str
    options: Mapping[str, str]
    path: str
    table: str
    query: str
    topic: str
    column: str
    by_timestamp: bool
    delay: float
    splits: int
    split_rows: int
    max_files: int
    poll_interval: float

    @classmethod
    def of(cls, config: Mapping[str, str]) -> SourceConfig:
        """Parse a config. Raises ConfigError."""
        values = keys.SOURCE.parse(config)
        text = {key: str(value) for key, value in values.items()}
        if error := keys.place_error(config, PLACES):
            raise ConfigError(error)
        return cls(
            format=text[keys.FORMAT],
            options=keys.options_of(config),
            path=text[keys.PATH],
            table=text[keys.TABLE],
            query=text[keys.QUERY],
            topic=text[keys.TOPIC],
            column=text[keys.INCREMENTING] or text[keys.TIMESTAMP],
            by_timestamp=bool(text[keys.TIMESTAMP]),
            delay=int(text[keys.DELAY]) / 1000,
            splits=int(text[keys.SPLITS]),
            split_rows=int(text[keys.SPLIT_ROWS]),
            max_files=int(text[keys.MAX_FILES]),
            poll_interval=int(text[keys.POLL_INTERVAL]) / 1000,
        )

    @property
    def is_jdbc(self) -> bool:
        return self.format.lower() == _JDBC

    @property
    def by_file(self) -> bool:
        """True if the source reads the files of a folder as they arrive."""
        return bool(self.path) and not self.column and self.format.lower() in _FILES

    @property
    def partition(self) -> dict[str, str]:
        if self.path:
            return {PATH: self.path}
        if self.query:
            return {"query": "query"}
        return {"table": self.table} if self.table else {"format": self.format}

    @property
    def rows(self) -> str:
        """What follows FROM in a query of a database for the rows of the table or query."""
        return f"({self.query.strip().rstrip(';')}\n) sluiceway_rows" if self.query else self.table

    @property
    def schema_name(self) -> str | None:
        """The name of the records' schema: the table's, as the JDBC source has it."""
        return self.table.rpartition(".")[2].strip('`"') or None
