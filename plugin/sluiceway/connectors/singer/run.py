"""Turns the output of a tap's run into batches of lines with the state that is safe after them. Runs on executors."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sluiceway.connectors.cdc.naming import topic_name
from sluiceway.connectors.singer.config import Options
from sluiceway.connectors.singer.fields import Layout, parse_schema
from sluiceway.connectors.singer.messages import (
    ACTIVATE_VERSION,
    BATCH,
    RECORD,
    SCHEMA,
    STATE,
    Lines,
    Message,
    decode,
    is_empty,
    record_message,
)
from sluiceway.connectors.singer.tables import Table
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_FILE_LINES = 5000


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of one stream.

    ``before`` is the state that is safe once any of them is in Kafka, ``after`` that once all are; None if there is none.
    ``file`` is the tap's file whose last lines these are.
    """

    table: Table
    lines: Sequence[Message]
    before: str | None
    after: str | None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The state that is safe once all batches before it are in Kafka; ``ended`` if the run has ended well."""

    state: str | None
    ended: bool = False


class _Groups:
    """Groups the records of some lines by their table, in the order of the tables' first ones. All have one state."""

    def __init__(self, state: str | None) -> None:
        self._state = state
        self._groups: dict[Table, list[Message]] = {}

    def add(self, table: Table, message: Message) -> None:
        try:
            self._groups[table].append(message)
        except KeyError:
            self._groups[table] = [message]

    def take(self) -> list[Batch]:
        groups, self._groups = self._groups, {}
        return [Batch(table, lines, self._state, self._state) for table, lines in groups.items()]


class Reader:
    """Reads the messages of runs of one tap. ``state`` is the last one that it has sent, or that it was started with."""

    def __init__(self, options: Options, state: str | None) -> None:
        self._options = options
        self.state = state
        self._tables: dict[str, Table] = {}
        self._schemas: dict[str, tuple[bytes, list[str]]] = {}
        self._topics: dict[str, str] = {}
        self._told: set[tuple[str, str]] = set()
        self._lines = Lines()
        self.versions = 0
        self.records = 0

    def begin(self) -> None:
        """Forget the schemas of the last run: each run sends its own."""
        self._tables, self._schemas, self.records = {}, {}, 0
        self._lines = Lines()

    def read(self, chunks: Iterator[bytes]) -> Iterator[Batch | Progress]:
        """Yield the batches of the complete lines of a run's output. Raises ConnectError for what is no message."""
        for chunk in chunks:
            yield from self._counted(self._lines.complete(chunk))

    def last(self) -> Iterator[Batch | Progress]:
        """Yield what follows the last newline, after a run that has not been cut off. Raises ConnectError."""
        yield from self._counted(self._lines.last())

    def _counted(self, data: bytes) -> Iterator[Batch | Progress]:
        for each in self._of(data):
            self.records += len(each.lines) if isinstance(each, Batch) else 0
            yield each

    def _of(self, data: bytes) -> Iterator[Batch | Progress]:
        """Yield the batches of complete lines. Their last record has the last state of the lines."""
        before, groups = self.state, _Groups(self.state)
        for message in decode(data) if data else ():
            kind = message.type
            if kind == RECORD:
                groups.add(self._table(message), message)
            elif kind == STATE:
                self._note(message)
            elif kind == BATCH:
                yield from groups.take()
                yield from self._files(message, before)
            elif kind == SCHEMA:
                self._add(message)
            elif kind == ACTIVATE_VERSION:
                self.versions += 1
                log.info(
                    "Version %s of stream %s is active: rows that only older ones have are gone", message.version, message.stream
                )
            else:
                raise ConnectError(f"The tap has sent a message of the unknown type {kind[:50]!r}.")
        made = groups.take()
        if made:
            made[-1] = replace(made[-1], after=self.state)
            yield from made
        elif self.state != before:
            yield Progress(self.state)

    def _note(self, message: Message) -> None:
        """Keep a state, unless it is empty and the last one is not."""
        text = bytes(message.value).decode()
        try:
            empty = is_empty(json.loads(text))
        except ValueError:
            raise ConnectError("The tap has sent a STATE that is no JSON.") from None
        if not empty:
            self.state = text

    def _table(self, message: Message) -> Table:
        table = self._tables.get(message.stream)
        if table is None:
            raise ConnectError(f"The tap has sent a {message.type} of stream {message.stream} before its SCHEMA.")
        return table

    def _add(self, message: Message) -> None:
        """Use a schema from now on, unless it is the last one of its stream again: taps repeat them."""
        stream, keys = message.stream, message.key_properties or []
        if self._schemas.get(stream) == (bytes(message.schema), keys):
            return
        try:
            schema = parse_schema(bytes(message.schema))
        except ValueError:
            raise ConnectError(f"The tap has sent a SCHEMA of stream {stream} that is no JSON.") from None
        layout = Layout(stream, schema, keys, self._options.forms, metadata=self._options.record_metadata)
        self._schemas[stream] = (bytes(message.schema), keys)
        self._tables[stream] = Table(layout, self._topic(stream), self._told)

    def _topic(self, stream: str) -> str:
        """Return the topic of a stream. Raises ConnectError if another stream has it."""
        topic = topic_name(f"{self._options.topic_prefix}{stream}")
        other = self._topics.setdefault(topic, stream)
        if other != stream:
            raise ConnectError(
                f"The streams {other} and {stream} would both go to the topic {topic}. Read them with two connectors, by "
                "singer.select."
            )
        return topic

    def _files(self, message: Message, state: str | None) -> Iterator[Batch]:
        """Yield the lines of the files that a message names."""
        table, encoding = self._table(message), message.encoding if isinstance(message.encoding, dict) else {}
        layout, compression = encoding.get("format"), encoding.get("compression")
        if layout != "jsonl" or compression not in (None, "none", "gzip"):
            raise ConnectError(
                f"The tap has sent BATCH files in the format {layout} with the compression {compression}. Set the tap's "
                'batch_config.encoding to {"format": "jsonl", "compression": "gzip"}.'
            )
        for name in message.manifest or ():
            path = _local(name)
            try:
                yield from self._file(table, path, state, compressed=compression == "gzip")
            except (OSError, EOFError) as error:
                raise ConnectError(f"The tap's BATCH file {path} cannot be read: {error}.") from error

    def _file(self, table: Table, path: Path, state: str | None, *, compressed: bool) -> Iterator[Batch]:
        lines: list[Message] = []
        with gzip.open(path, "rb") if compressed else path.open("rb") as file:
            for each in file:
                if each.strip():
                    lines.append(record_message(table.layout.stream, each.strip()))
                if len(lines) >= _FILE_LINES:
                    yield Batch(table, lines, state, state)
                    lines = []
        yield Batch(table, lines, state, state, path)


def _local(name: str) -> Path:
    """Return the path of a BATCH file's URL. Raises ConnectError for one on another machine."""
    url: Any = urlsplit(name)
    if url.scheme not in ("", "file"):
        raise ConnectError(
            f"The tap's BATCH files are at {url.scheme}://{url.hostname}. Set its batch_config.storage.root to a local folder."
        )
    return Path(unquote(url.path) if url.scheme else name)
