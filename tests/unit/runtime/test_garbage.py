from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from sluiceway.runtime.garbage import raise_gc_threshold


@pytest.fixture(autouse=True)
def _threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("before", "after"), [(700, 50_000), (80_000, 80_000), (0, 0)])
def test_the_threshold_is_raised_but_never_lowered_or_turned_on(before: int, after: int) -> None:
    gc.set_threshold(before, 10, 10)
    raise_gc_threshold()
    assert gc.get_threshold() == (after, 10, 10)
