"""The reader's process: makes the sources of one connector, reads them once, and sends frames to the task that started it.

``python -m sluiceway.connectors.dlt.reader``, started by ``process.py``. The config comes by standard input, never by
arguments or the environment, which others can see. What the user's code prints goes to the log.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from sluiceway.connectors.dlt import frames
from sluiceway.connectors.dlt.child import child_output, is_transient
from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.connectors.dlt.frames import write_frame
from sluiceway.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    import pyarrow as pa
    from dlt.extract import DltSource

    from sluiceway.connectors.dlt.pages import Offset
    from sluiceway.connectors.dlt.tables import Table

CONFIG, DESCRIBE = "config", "describe"
log = logging.getLogger(__name__)


def main() -> None:
    """Serve one request, and end."""
    output = child_output()
    request = json.loads(sys.stdin.buffer.readline())
    try:
        config = DltConfig.of(request[CONFIG])
    except ConfigError as error:
        write_frame(output, frames.ERROR, {"text": str(error), "key": error.name or ""})
        return
    try:
        _serve(config, output, describe=bool(request.get(DESCRIBE)))
    except BrokenPipeError:  # the task has ended
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 (the outermost boundary of the user's code, which may also call sys.exit)
        write_frame(output, frames.ERROR, _told(error, config))
        output.flush()
    os._exit(0)  # threads that the source has left must not keep the process


def _serve(config: DltConfig, output: BinaryIO, *, describe: bool) -> None:
    from sluiceway.connectors.dlt.loading import sources_of
    from sluiceway.connectors.dlt.pages import SourceReader

    sources = sources_of(config)
    if describe:
        write_frame(output, frames.DESCRIBED, {"resources": [name for source in sources for name in source.resources]})
        return
    partitions = [(source.name, name) for source in sources for name in _state_names(source)]
    write_frame(output, frames.STREAMS, {"partitions": partitions})
    stored = json.loads(sys.stdin.buffer.readline())
    known = {(source, name): offset for (source, name), offset in zip(partitions, stored, strict=True)}
    for source in sources:
        offsets = {name: known[source.name, name] for name in _state_names(source)}
        moved = SourceReader(source, config, offsets, FrameOutput(source.name, output)).read()
        head = {"offsets": [[source.name, name, offset] for name, offset in moved.items()], "covered": True}
        write_frame(output, frames.OFFSETS, head)
    write_frame(output, frames.END, {})


class FrameOutput:
    """Sends the pages of a source as frames."""

    def __init__(self, source: str, output: BinaryIO) -> None:
        self._source = source
        self._output = output

    def table(self, table: Table) -> None:
        from sluiceway.data.schema_json import schema_to_json

        schema = schema_to_json(table.schema, lambda _schema, _value: None)
        write_frame(self._output, frames.TABLE, {"table": table.name, "schema": schema, "keys": table.keys})

    def rows(self, table: Table, rows: pa.RecordBatch, resource: str, offset: Offset | None, *, covered: bool) -> None:
        head = {"table": table.name, "source": self._source, "resource": resource, "offset": offset, "covered": covered}
        write_frame(self._output, frames.ROWS, head, rows)

    def offsets(self, offsets: Mapping[str, Offset | None]) -> None:
        moved = [[self._source, name, offset] for name, offset in offsets.items()]
        write_frame(self._output, frames.OFFSETS, {"offsets": moved, "covered": False})


def _state_names(source: DltSource) -> list[str]:
    """Return the resources that may have a state, those that are read for others, too, and the source itself as ""."""
    return [*dict.fromkeys(each.name for each in source.resources.extracted), ""]


def _told(error: BaseException, config: DltConfig) -> dict[str, Any]:
    """Return the fields of the frame about an error, without secrets, and write its trace into the log."""
    from dlt.extract.exceptions import ResourceExtractionError

    from sluiceway.connectors.dlt.loading import hidden, secrets_of

    secrets = [*config.secrets, *secrets_of(config.args)]
    sys.stderr.write(hidden("".join(traceback.format_exception(error)), secrets))
    if isinstance(error, ConfigError):
        return {"text": hidden(str(error), secrets), "key": error.name or ""}
    cause, place = error, ""
    if isinstance(error, ResourceExtractionError) and error.__cause__ is not None:
        cause, place = error.__cause__, f"Resource {error.pipe_name}: "
    text = str(cause) if isinstance(cause, ConnectError) else f"{place}{type(cause).__name__}: {cause}"
    return {"text": hidden(text, secrets), "unreachable": is_transient(error)}


if __name__ == "__main__":
    main()
