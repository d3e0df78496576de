"""The JSON lines format: a JSON value a line. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from sluiceway.connectors.folder.formats import Columns, LineBased, Row


class JsonLineRecords(LineBased):
    """Lines that are JSON values each, as values without a schema. Blank lines are none."""

    def rows(self, data: bytes) -> Iterator[Row]:
        for line, end in self.lines(data):
            if line.strip():
                try:
                    yield Row(orjson.loads(line), end)
                except orjson.JSONDecodeError as error:
                    yield Row(None, end, f"not JSON: {error}")

    def columns(self, data: bytes, most: int) -> Columns | None:
        if not data.endswith(b"\n"):
            return None
        lines = data.split(b"\n", most)
        length = len(data) - len(lines.pop())
        objects: list[Any] = []
        try:
            for line in lines:
                if not line.strip():
                    return None
                objects.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            return None
        return Columns(len(objects), length, objects=objects)
