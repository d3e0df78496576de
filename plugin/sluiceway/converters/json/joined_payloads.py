"""Parses many JSON payloads as one document."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_SEPARATOR = 10**17 + secrets.randbelow(9 * 10**17)  # unknown to those who write payloads; too short for a number that needs care
_JOIN = b",%d," % _SEPARATOR


def parse_payloads(payloads: AnyArray, loads: Callable[[bytes], Any]) -> list[Any]:
    """Return the nodes of payloads, at least one and none null. Raises ValueError unless each of them is one JSON value.

    Parts of payloads could form other values together, such as ``[1`` and ``2]``. So each pair is separated by a number that
    occurs nowhere else: if all separators are elements of the list, there is one value between two of them.
    """
    count = len(payloads)
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), payloads)
    joined: Any = pc.binary_join(lists, _JOIN)[0].as_py()
    nodes: list[Any] = loads(b"[%b]" % joined)
    if len(nodes) != 2 * count - 1 or nodes[1::2] != [_SEPARATOR] * (count - 1):
        raise ValueError("a payload is not one JSON value")
    return nodes[::2]
