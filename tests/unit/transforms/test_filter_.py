from __future__ import annotations

from sluiceway.transforms.filter_ import Filter
from unit.transforms.transforming import configured, source_record


def test_filter_drops_every_record() -> None:
    assert configured(Filter).apply(source_record(1)) is None
