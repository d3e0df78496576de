"""The records of the schema history that apply to a stored offset."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.history import _apply, is_at_or_before

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("position", "offset", "expected"),
    [
        ({"gtids": "0-1-5"}, {"gtids": "0-1-9"}, True),
        ({"gtids": "0-1-10"}, {"gtids": "0-1-9"}, False),
        ({"gtids": "0-1-5", "event": 1}, {"gtids": "0-1-5"}, False),
        ({"gtids": "0-1-5", "event": 1}, {"gtids": "0-1-5", "event": 2, "row": 1}, True),
        ({"gtids": f"{SOURCE}:1-5"}, {"gtids": f"{SOURCE}:1-9"}, True),
        ({"gtids": f"{SOURCE}:1-10"}, {"gtids": f"{SOURCE}:1-9"}, False),
        ({"file": "bin.000001", "pos": 100}, {"file": "bin.000001", "pos": 100}, True),
        ({"file": "bin.000001", "pos": 100, "event": 1}, {"file": "bin.000001", "pos": 100}, False),
        ({"file": "bin.000001", "pos": 900}, {"file": "bin.000002", "pos": 4}, True),
        ({"file": "bin.000003", "pos": 4}, {"file": "bin.000002", "pos": 900}, False),
        ({"file": "bin.000001", "pos": 4, "gtids": "0-1-5"}, {"file": "bin.000001", "pos": 5}, True),
    ],
)
def test_a_record_applies_if_its_position_is_not_after_the_offset(
    position: dict[str, object], offset: dict[str, object], expected: bool
) -> None:
    assert is_at_or_before(position, offset) is expected


def test_a_change_without_a_definition_makes_the_table_uncertain_until_the_next_one() -> None:
    table, tables = TableId("db", "t"), Tables()
    tables.put(TableDefinition(table))

    _apply({"tableChanges": [{"type": "ALTER", "id": '"db"."t"'}]}, tables)
    assert (tables.get(table), tables.uncertain) == (None, {table})

    _apply({"tableChanges": [{"type": "CREATE", "id": '"db"."t"', "table": {"columns": []}}]}, tables)
    assert (tables.get(table), tables.uncertain) == (TableDefinition(table), set())
