"""Reads the partition fields in configs, such as ``day(at)`` or ``bucket(id, 16)``. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from pyiceberg.transforms import Transform

_FIELD = re.compile(r"(\w+)\s*\(([^,()]+)(?:,([^,()]+))?\)")


def partition_transforms(fields: Sequence[str]) -> list[tuple[str, Transform[Any, Any]]]:
    """Return the columns and transforms of partition fields such as ``day(at)`` or ``bucket(id, 16)``. Raises ConfigError."""
    return [_transform(field) for field in fields]


def _transform(field: str) -> tuple[str, Transform[Any, Any]]:
    from pyiceberg import transforms

    match = _FIELD.fullmatch(field)
    if match is None:
        if "(" in field:
            raise ConfigError(
                f"{field} is no partition field: use column, day(column), bucket(column, n) or truncate(column, n)."
            )
        return field, transforms.IdentityTransform()
    name, first, second = match[1].lower(), match[2].strip(), match[3] and match[3].strip()
    times: dict[str, Any] = {"year": transforms.YearTransform, "month": transforms.MonthTransform}
    times |= {"day": transforms.DayTransform, "hour": transforms.HourTransform}
    if (time := times.get(name.removesuffix("s"))) is not None and second is None:
        return first, time()
    sized: dict[str, Any] = {"bucket": transforms.BucketTransform, "truncate": transforms.TruncateTransform}
    if name in sized and second is not None and (first.isdecimal() or second.isdecimal()):
        column, size = (second, first) if first.isdecimal() else (first, second)
        return column, sized[name](int(size))
    raise ConfigError(f"{field} is no partition field: use column, day(column), bucket(column, n) or truncate(column, n).")
