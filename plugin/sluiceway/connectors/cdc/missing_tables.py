"""Shows in a task's status which tables that ``table.include.list`` names the database does not have."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping

from sluiceway.connectors.cdc.filters import TableId, compile_anchored, split_list
from sluiceway.connectors.cdc.interval import Interval
from sluiceway.connectors.cdc.keys import OVERRIDES

log = logging.getLogger(__name__)

_LIST = "table.include.list"
_SECONDS = 30.0
# A dot stands for itself in a name with its schema or database.
_LITERAL = re.compile(r"(?:[^\\^$*+?()\[\]{}|]|\\[^A-Za-z0-9])+")


class MissingTables:
    """Compares the list with the tables of the database, at the start and every 30 s while a table is missing.

    A name that is written out must exist: while it does not, the task waits, and a micro-batch that ends meanwhile fails. A
    regular expression may fit no table yet, which is logged, as is a table that is missing and has a statement of its own.

    Args:
        config: the connector's config.
        waiting: shows a wait in the task's status (``SourceTaskContext.waiting``).
    """

    def __init__(self, config: Mapping[str, str], waiting: Callable[..., None]) -> None:
        self._connector = config.get("name", "")
        self._expressions = split_list(config.get(_LIST))
        self._with_statements = split_list(config.get(OVERRIDES))
        self._waiting = waiting
        self._interval = Interval(_SECONDS, at_once=True)
        self._is_first = True
        self._missing: list[str] = []

    def due(self) -> bool:
        """Return whether ``check`` must be called now."""
        return (self._is_first or bool(self._missing)) and self._interval.due()

    def concerns(self, schema: str) -> bool:
        """Return whether the next check needs the tables of a schema, or database."""
        if self._is_first and not all(map(_is_literal, self._expressions)):
            return True
        literal = [_unescaped(each) for each in self._expressions if _is_literal(each)]
        names = (each.partition(".")[0] for each in [*literal, *(self._with_statements if self._is_first else ())])
        return schema.lower() in {each.lower() for each in names}

    def check(self, tables: Iterable[TableId]) -> None:
        """Show which names are missing in the database's tables, or that none is. The first call logs them."""
        names = [str(table) for table in tables]
        unmatched = [each for each in self._expressions if not any(map(compile_anchored(each).matches, names))]
        if self._is_first:
            unused = [each for each in self._with_statements if each not in names]
            for key, found in ((_LIST, unmatched), (OVERRIDES, unused)):
                if found:
                    log.warning("[%s] %s", self._connector, _text(key, found))
        self._is_first = False
        before, self._missing = self._missing, list(filter(_is_literal, unmatched))
        if self._missing:
            self._waiting(_text(_LIST, self._missing), _SECONDS)
        elif before:
            log.info("[%s] %s: the missing tables exist now: %s", self._connector, _LIST, ", ".join(before))
            self._waiting()


def _is_literal(expression: str) -> bool:
    return _LITERAL.fullmatch(expression) is not None


def _unescaped(expression: str) -> str:
    return re.sub(r"\\(.)", r"\1", expression)


def _text(key: str, expressions: Iterable[str]) -> str:
    return (
        f"{key}: no table fits {', '.join(expressions)}. Check the name, which has the schema or database, and the user's "
        "privileges."
    )
