from __future__ import annotations

import datetime as dt

import pytest

from sluiceway.connectors.files.partitioners.path_format import is_english, needs_locale, path_formatter

TIME = 1_700_000_000_123


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "year=2023/month=11/day=14/hour=22"),
        ("YYYY-MM-dd HH:mm:ss.SSS", "2023-11-14 22:13:20.123"),
        ("Y", "2023"),
        ("yy_D_kk_hh_a", "23_318_22_10_PM"),
        ("MMM EEEE", "Nov Tuesday"),
        ("'o''clock' HH", "o'clock 22"),
    ],
)
def test_patterns_of_joda_time(pattern: str, text: str) -> None:
    assert path_formatter(pattern, dt.timezone.utc).format(TIME) == text


@pytest.mark.parametrize("pattern", ["xxxx-ww", "e", "C", "SS", "ZZ", "u", "'open"])
def test_patterns_that_mean_something_else_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"not supported|quote"):
        path_formatter(pattern, dt.timezone.utc)


def test_locales() -> None:
    assert needs_locale("MMM")
    assert not needs_locale("'EEE' MM")
    assert [is_english(locale) for locale in ("en", "en-US", "en_GB", "de")] == [True, True, True, False]
