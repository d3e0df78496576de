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
def test_young_collections_become_seldom_and_a_wish_of_somebody_else_is_respected(before: int, after: int) -> None:
    gc.set_threshold(before, 10, 10)
    raise_gc_threshold()
    assert gc.get_threshold() == (after, 10, 10)
