"""The settings of our sessions with MariaDB and MySQL."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.mysql.connection import session_modes


@pytest.mark.parametrize(
    ("server", "own"),
    [
        ("", "ALLOW_INVALID_DATES"),
        ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ALLOW_INVALID_DATES"),
        ("NO_ZERO_DATE,ALLOW_INVALID_DATES,NO_ZERO_IN_DATE", "ALLOW_INVALID_DATES"),
        ("EMPTY_STRING_IS_NULL,PAD_CHAR_TO_FULL_LENGTH,STRICT_ALL_TABLES", "STRICT_ALL_TABLES,ALLOW_INVALID_DATES"),
    ],
)
def test_sessions_find_all_values_that_tables_have(server: str, own: str) -> None:
    assert session_modes(server) == own
