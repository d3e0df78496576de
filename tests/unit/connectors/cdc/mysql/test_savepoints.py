"""Which row events a transaction takes back, for random transactions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluiceway.connectors.cdc.mysql.savepoints import Savepoints, is_taken_back

_NAMES = st.sampled_from(["a", "A", "b", "x y"])
_STEPS = st.lists(st.one_of(st.just(("row", "")), st.tuples(st.sampled_from(["set", "back", "release"]), _NAMES)), max_size=30)
_TEXTS = {"set": "SAVEPOINT `{}`", "back": "ROLLBACK TO `{}`", "release": "RELEASE SAVEPOINT `{}`"}


class _Transaction:
    """A transaction as a database executes it: the rows that are there, and what is there again after a rollback."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.points: list[tuple[str, list[int]]] = []

    def has(self, name: str) -> bool:
        return any(each == name.lower() for each, _ in self.points)

    def execute(self, kind: str, name: str, number: int) -> None:
        name = name.lower()
        at = next((index for index, (each, _) in enumerate(self.points) if each == name), 0)
        if kind == "row":
            self.rows.append(number)
        elif kind == "set":
            self.points = [(each, rows) for each, rows in self.points if each != name] + [(name, list(self.rows))]
        elif kind == "back":
            self.rows = list(self.points[at][1])
            self.points = self.points[: at + 1]
        else:
            self.points = self.points[:at]


_AGAIN = ("set a", "row ", "set b", "row ", "set a", "row ", "back a", "row ", "back b", "row ")


@given(_STEPS, st.booleans())
@example([tuple(each.split(" ")) for each in _AGAIN], False)
def test_what_is_left_is_what_the_database_has(steps: list[Any], rolls_back: bool) -> None:
    found, expected = Savepoints(), _Transaction()
    for kind, name in steps:
        if kind in ("back", "release") and not expected.has(name):
            continue  # the server refuses it, and logs nothing
        expected.execute(kind, name, found.count)
        if kind == "row":
            found.add_row_event()
        else:
            assert found.execute(_TEXTS[kind].format(name))
    if rolls_back:
        found.roll_back()
        expected.rows = []

    assert [number for number in range(found.count) if not is_taken_back(number, found.taken_back)] == expected.rows
    assert found.unknown == []


@pytest.mark.parametrize(
    ("set_", "back"),
    [
        ("SAVEPOINT `a`", "ROLLBACK TO `a`"),
        ("SAVEPOINT `a`", "ROLLBACK TO `A`"),
        ("savepoint a", "rollback to savepoint a;"),
        ("SAVEPOINT `a`", "ROLLBACK WORK TO SAVEPOINT a"),
        ("SAVEPOINT `é`", "ROLLBACK TO `E`"),
        ('SAVEPOINT "a""b"', 'ROLLBACK TO "a""b"'),
        ("SAVEPOINT `a``b; x`", "ROLLBACK TO `a``b; x`"),
        ("SAVEPOINT `to`", "ROLLBACK TO `to`"),
        ("SAVEPOINT `savepoint`", "ROLLBACK TO SAVEPOINT savepoint"),
        ("SAVEPOINT savepoint", "ROLLBACK TO savepoint"),
        ("SAVEPOINT `a\nb`", "ROLLBACK  TO\n`a\nb`"),
    ],
)
def test_names_of_savepoints(set_: str, back: str) -> None:
    found = Savepoints()
    assert found.execute(set_)
    found.add_row_event()
    assert found.execute(back)

    assert (found.taken_back, found.unknown) == (((0, 1),), [])


@pytest.mark.parametrize(
    "sql",
    ["COMMIT", "ROLLBACK", "XA ROLLBACK X'61',X'',1", "savepoints", "update t set a = 'rollback to a'", "/* SAVEPOINT a */", ""],
)
def test_other_statements_are_left_to_others(sql: str) -> None:
    assert not Savepoints().execute(sql)


def test_a_savepoint_that_the_log_does_not_have_takes_nothing_back() -> None:
    found = Savepoints()
    found.add_row_event()

    assert found.execute("ROLLBACK TO `a`")
    assert (found.taken_back, found.unknown) == ((), ["ROLLBACK TO `a`"])
