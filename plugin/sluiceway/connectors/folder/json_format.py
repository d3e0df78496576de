"""The JSON lines format: a JSON value a line. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from sluiceway.connectors.folder.formats import Columns, Records, Row


class JsonLineRecords(Records):
    """Lines that are JSON values each, as values without a schema. Blank lines are none."""

    def complete(self, data: bytes, *, final: bool) -> int:
        return len(data) if final else data.rfind(b"\n") + 1

    def rows(self, data: bytes) -> Iterator[Row]:
        end = 0
        for line in data.split(b"\n"):
            end = min(end + len(line) + 1, len(data))
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
