"""Renders ``GET /connectors?expand=...``. Each connector is rendered once for each of its changes."""

from __future__ import annotations

import functools
import gzip
import struct
import zlib
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

from sluiceway.herder.discretion import discreet_info, discreet_status
from sluiceway.herder.overview import Overview, PerConnector
from sluiceway.rest import bodies

_FAST = 1  # the level of compression
_GZIP_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # deflate, no flags, no time, unknown system (RFC 1952)
_LAST_BLOCK = b"\x03\x00"  # empty


class _Rendered(NamedTuple):
    """A connector's name with a colon, and the members of its object in the list, as JSON or compressed JSON."""

    name: bytes
    info: bytes
    status: bytes


class ConnectorDetails:
    """Keeps the JSON of all connectors of one app, as users see them who may edit them, and as others do. Thread-safe."""

    def __init__(self) -> None:
        self._rendered = PerConnector(_render)
        self._deflated = PerConnector(lambda overview, name: _Rendered(*map(_deflate, _render(overview, name))))
        self._discreet = PerConnector(_render_discreetly)

    def listed(
        self, overview: Overview, names: Sequence[str], expand: Container[str], editable: Collection[str] | None = None
    ) -> bytes:
        """Return the JSON of these connectors with the details in ``expand``: info, status, both or neither.

        ``editable`` are those of which the user may see all; None for each of them.
        """
        # Joined once: with 1,000 connectors this is a megabyte, and copying it takes longer than finding its parts.
        if editable is None or len(editable) == len(names):
            found = self._rendered.values(overview, names)
        else:
            shown = self._rendered.values(overview, editable)
            shown |= self._discreet.values(overview, [name for name in names if name not in editable])
            found = {name: shown[name] for name in names if name in shown}
        return b"".join(_parts(found.values(), expand, lambda mark: mark))

    def gzipped(
        self, overview: Overview, names: Sequence[str], expand: Container[str], editable: Collection[str] | None = None
    ) -> bytes:
        """Return what ``listed`` returns in gzip's format, joined from parts that were compressed when they changed."""
        plain = self.listed(overview, names, expand, editable)
        if editable is not None and len(editable) < len(names):
            return gzip.compress(plain, _FAST)
        deflated = _parts(self._deflated.values(overview, names).values(), expand, _deflated_mark)
        return b"".join((_GZIP_HEADER, *deflated, _LAST_BLOCK, struct.pack("<II", zlib.crc32(plain), len(plain) % 2**32)))


def _parts(rendered: Iterable[_Rendered], expand: Container[str], mark: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Return the parts of the list; ``mark`` encodes the characters between those of connectors."""
    with_info, with_status = "info" in expand, "status" in expand
    opening, comma, end = mark(b"{"), mark(b","), mark(b"}")
    yield opening
    for number, (name, info, status) in enumerate(rendered):
        if number:
            yield comma
        yield name
        yield opening
        if with_info:
            yield info
        if with_info and with_status:
            yield comma
        if with_status:
            yield status
        yield end
    yield end


def _render(overview: Overview, name: str) -> _Rendered:
    info = orjson.dumps(bodies.info_json(overview.info(name)))
    status = orjson.dumps(bodies.connector_status_json(overview.status(name)))
    return _Rendered(orjson.dumps(name) + b":", b'"info":' + info, b'"status":' + status)


def _render_discreetly(overview: Overview, name: str) -> _Rendered:
    info = orjson.dumps(bodies.info_json(discreet_info(overview.info(name))))
    status = orjson.dumps(bodies.connector_status_json(discreet_status(overview.status(name))))
    return _Rendered(orjson.dumps(name) + b":", b'"info":' + info, b'"status":' + status)


def _deflate(text: bytes) -> bytes:
    """Return compressed blocks that end at a byte and refer to nothing before them, so that they may be joined."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(text) + compressor.flush(zlib.Z_FULL_FLUSH)


_deflated_mark = functools.cache(_deflate)
