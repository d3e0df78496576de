from __future__ import annotations

import pytest

from sluiceway.data import Header
from sluiceway.errors import ConfigError
from sluiceway.transforms.drop_headers import DropHeaders
from unit.transforms.transforming import configured, transformed

HEADERS = (Header("h1", 1), Header("h2", 2), Header("h1", 3), Header("H1", 4))


def test_only_headers_with_the_given_names_are_dropped() -> None:
    assert transformed(configured(DropHeaders, headers="h1, zz"), 1, headers=HEADERS).headers == (HEADERS[1], HEADERS[3])


@pytest.mark.parametrize(("headers", "why"), [("h,h", "duplicated"), ("h,", "be empty"), ("", "must not be empty")])
def test_names_to_drop_are_given_once_each(headers: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        configured(DropHeaders, headers=headers)
