"""Decides which tables each row goes to. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.connectors.path_elements import check_table

if TYPE_CHECKING:
    from sluiceway.connectors.tables.config import TableOptions
    from sluiceway.connectors.tables.rows import Rows


class Router:
    """Selects tables by the config: all listed ones, those whose expression matches the route field, or the one it names.

    Where the config names none, the topic names it.
    """

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self._regexes = {table: options.route_regex(table) for table in options.tables}
        self.single = options.tables[0] if len(options.tables) == 1 and not options.dynamic and not options.route_field else None

    def routed(self, rows: Rows, topic: str) -> Iterator[tuple[str, Rows]]:
        """Yield the names of tables and the rows for each, which are of this topic, after transforms.

        Raises DataError for a record whose text is no name for a table.
        """
        if self._options.route_field is None:
            for table in self._options.tables or (topic,):
                yield table, rows
            return
        routes = self._routes(rows)
        for route in pc.unique(routes).to_pylist():
            if route is not None:
                mask = pc.is_in(routes, value_set=pa.array([route]))
                for table in self._tables(route):
                    yield table, rows.filter(mask)

    def _tables(self, route: str) -> list[str]:
        if self._options.dynamic:
            return [check_table(route.lower(), namespaced=self._options.namespaced)]
        return [table for table, regex in self._regexes.items() if regex is not None and regex.fullmatch(route)]

    def _routes(self, rows: Rows) -> pa.Array[Any]:
        """Return the text of the route field for each row; null without one."""
        names = self._options.route_field or ()
        for table in (rows.values, rows.keys):
            if table is not None and names[0] in table.column_names:
                column = table.column(names[0]).combine_chunks()
                for name in names[1:]:
                    column = pc.struct_field(column, name)
                return column.cast(pa.string())
        return pa.nulls(len(rows), pa.string())
