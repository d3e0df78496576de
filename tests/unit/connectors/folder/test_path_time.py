"""The time in a file's path."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.folder.path_time import path_time
from sluiceway.errors import ConfigError, ConnectError

_DAYS = (["%Y", "%m", "%d"], ["%Y", "%j"])
_TIMES: list[list[str]] = [[], ["%H"], ["%H", "%M"], ["%H", "%M", "%S"]]
_BETWEEN = st.sampled_from(["-", "/", "/year=", ".", "+", " (", "d"])
_MOMENTS = st.datetimes(datetime(1980, 1, 1), datetime(2200, 1, 1), timezones=st.just(timezone.utc))  # noqa: DTZ001 (hypothesis)


@given(st.sampled_from(_DAYS), st.sampled_from(_TIMES), st.data(), _MOMENTS)
def test_what_strftime_has_written_is_read_to_the_unit_of_the_format(
    day: list[str], time: list[str], data: st.DataObject, moment: datetime
) -> None:
    fields = data.draw(st.permutations([*day, *time]))
    text = "".join(part for field in fields for part in (data.draw(_BETWEEN), field))
    cut = moment.replace(
        hour=moment.hour if "%H" in time else 0,
        minute=moment.minute if "%M" in time else 0,
        second=moment.second if "%S" in time else 0,
        microsecond=0,
    )
    assert path_time("k", text)(f"/data/7{moment.strftime(text)}/part-0001.csv") == int(cut.timestamp()) * 1_000_000_000


def test_seconds_and_the_last_place_count() -> None:
    assert path_time("k", "export-%s")("/a/export-1767225600.csv") == 1_767_225_600 * 1_000_000_000
    assert path_time("k", "%Y%m%d")("/20250101/b-20260101.csv") == 1_767_225_600 * 1_000_000_000


@pytest.mark.parametrize("path", ["/a/b.csv", "/2026-13-01/b", "/2026-02-30/b", "/12026-01-01/b", "/2026-01-011/b"])
def test_a_path_without_a_time_is_an_error(path: str) -> None:
    with pytest.raises(ConnectError, match="has no time in its path"):
        path_time("k", "%Y-%m-%d")(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("%H", "needs a day"),
        ("%Y-%m", "needs a day"),
        ("%y%m%d", "has the fields"),
        ("%Y%Y%m%d", "each once"),
        ("", "needs a day"),
        ("%", "needs a day"),
    ],
)
def test_a_format_without_a_day_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        path_time("k", text)
