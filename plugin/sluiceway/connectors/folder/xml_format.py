"""The XML format: each element with a name is a record, wherever it is in a file. No I/O.

Records are found in bytes by their tags, and each is then parsed by expat. So positions are exact, and a record that is not
well-formed does not keep those after it from being read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

from sluiceway.connectors.folder.formats import Columns, Records, Row, byte_order_mark, shortened
from sluiceway.errors import ConnectError

_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"\0<", b"<\0")
_BLANKS = " \t\r\n"
_DEEPEST = 250  # JSON converters write no deeper values
_TAG = re.compile(rb"<[^!?]")
_NO_TAG = re.compile(rb"[^<]*(?:(?:<!--.*?-->|<\?.*?\?>)[^<]*)*", re.DOTALL)


class _RootFoundError(Exception):
    """Ends the parsing of the start of a file. Its arguments are the root's name and position."""


class XmlFormat:
    """A file with one root, in the encoding that it declares.

    Args:
        record: the name of the elements that are records; without a prefix, whatever their prefix is.
    """

    def __init__(self, record: str) -> None:
        self._record = record

    def begin(self, data: bytes, *, final: bool) -> tuple[int, Records] | None:
        if data[:2] in _UTF_16:
            raise ConnectError("the file is in UTF-16, but must be in UTF-8, or in an encoding with a byte for each character")
        declared = ["utf-8"]
        parser = expat.ParserCreate()

        def declaration(version: str, encoding: str | None, standalone: int) -> None:
            declared.append(encoding or "utf-8")

        def entity(name: str, *_: object) -> None:
            raise ConnectError(f"the file's DOCTYPE has the entity {name}, and entities are not expanded")

        def root(name: str, _: object) -> None:
            raise _RootFoundError(name, parser.CurrentByteIndex)

        parser.XmlDeclHandler, parser.EntityDeclHandler, parser.StartElementHandler = declaration, entity, root
        try:
            parser.Parse(data, final)
        except _RootFoundError as found:
            name, start = found.args
            return start, XmlRecords(self._record, name, declared[-1])
        except (expat.ExpatError, ValueError, LookupError) as error:
            raise ConnectError(f"the file is no XML: {error}: {shortened(data[byte_order_mark(data) :])}") from error
        return None


class _Span(NamedTuple):
    """The positions of an element's first byte, and after its last one."""

    start: int
    end: int


class _Scan(NamedTuple):
    """The records and the other markup in data.

    Attributes:
        records: the records that are closed.
        open: the position of markup that is not closed, such as a record; the data's length if there is none.
        root_end: the position of the last end tag, or empty element, with the root's name; None if a tag follows it.
    """

    records: list[_Span]
    open: int
    root_end: int | None


class XmlRecords(Records):
    """The elements with a name, as dicts without a schema (see ``_parsed``). What is around them is not checked.

    Args:
        record: the name of the elements.
        root: the name of the root.
        encoding: the file's encoding.
    """

    has_lines = False

    def __init__(self, record: str, root: str, encoding: str = "utf-8") -> None:
        self._encoding = encoding
        self._root = root
        self._is_root = record in (root, root.rpartition(":")[2])
        self._markup = _markup(record.encode(encoding, "replace"), root.encode(encoding))
        self._known: tuple[bytes, list[_Span]] = b"", []  # the complete bytes that were looked at last, and their records

    def complete(self, data: bytes, *, final: bool) -> int:
        if final:
            return len(data)
        records, open_, root_end = self._scan(data)
        end = records[-1].end if records else 0
        # The end of the root is among the last bytes, to see that all of the file is there.
        length = _unclosed(data, end, open_ if root_end is None else min(root_end, open_))
        self._known = data[:length], records
        return length

    def _found(self, data: bytes) -> tuple[list[_Span], int]:
        """Return the records of complete bytes, and the position of markup that is not closed."""
        known, records = self._known
        if known.startswith(data):
            records = [each for each in records if each.end <= len(data)]
            if len(data) in (len(known), *(each.end for each in records[-1:])):  # else it is the start of something by chance
                return records, len(data)
        found = self._scan(data)
        return found.records, found.open

    def rows(self, data: bytes) -> Iterator[Row]:
        records, open_ = self._found(data)
        for start, end in records:
            raw = data[start:end]
            try:
                yield Row(_parsed(raw.decode(self._encoding)), end)
            except (expat.ExpatError, ValueError) as error:
                yield Row(None, end, f"not XML: {error}: {shortened(raw)}")
        if open_ < len(data):
            yield Row(None, len(data), f"the file ends before the end of {shortened(data[open_:])}")

    def columns(self, data: bytes, most: int) -> Columns | None:
        rows = list(itertools.islice(self.rows(data), most))
        if not rows or any(row.reason for row in rows):
            return None
        return Columns(len(rows), rows[-1].end, objects=[row.value for row in rows])

    def unfinished(self, data: bytes) -> str:
        is_finished = self._is_root or self._scan(data).root_end is not None
        return "" if is_finished else f"the file ends before the end of its root <{self._root}>"

    def _scan(self, data: bytes) -> _Scan:
        records: list[_Span] = []
        name, start, depth, root_end = b"", 0, 0, -1
        for markup in self._markup.finditer(data):
            if markup["open"] is not None:
                return _Scan(records, start if depth else markup.start(), self._last(data, root_end))
            is_end, is_empty = bool(markup["slash"]), markup[0].endswith(b"/>")
            if markup["root"] is not None and (is_end or is_empty):
                root_end = markup.start()
            tag = markup["name"]
            if tag is None or (depth and tag != name) or (is_end and not depth):
                continue
            if not depth:
                name, start = tag, markup.start()
            depth += -1 if is_end else not is_empty
            if not depth:
                records.append(_Span(start, markup.end()))
        end = records[-1].end if records else 0
        return _Scan(records, start if depth else _unclosed(data, end, len(data)), self._last(data, root_end))

    @staticmethod
    def _last(data: bytes, root_end: int) -> int | None:
        """Return the position of the root's end if no tag follows it."""
        after = _NO_TAG.match(data, root_end + 1) if root_end >= 0 else None
        return None if after is None or _TAG.match(data, after.end()) else root_end


def _unclosed(data: bytes, start: int, end: int) -> int:
    """Return the position of the first ``<`` between two that no ``>`` follows, ``end`` if there is none."""
    found = data.find(b"<", data.rfind(b">", start, end) + 1 or start, end)
    return end if found < 0 else found


def _markup(record: bytes, root: bytes) -> re.Pattern[bytes]:
    """Return what matches the tags of two names, and all in which text may look like a tag.

    The group ``open`` is the start of such that is not closed. A tag also ends before the next one, which is never in a tag.
    """
    prefix = b"" if b":" in record else rb"(?:[^\s<>/\"'=!?&:]+:)??"
    names = prefix + re.escape(record), re.escape(root)
    quoted = rb"(?:\"[^<\"]*(?:\"|(?=<))|'[^<']*(?:'|(?=<)))"
    rest = rb"[^<>\"']*(?:%b[^<>\"']*)*(?:>|(?=<))" % quoted
    tag = rb"(?P<slash>/?)(?:(?P<name>%b)|(?P<root>%b))(?=[\s/<>])%b" % (*names, rest)
    start = rb"/?(?:%b|%b)(?=[\s/<>])" % names
    return re.compile(rb"<(?:!--.*?-->|!\[CDATA\[.*?\]\]>|\?.*?\?>|%b|(?P<open>!--|!\[CDATA\[|\?|%b))" % (tag, start), re.DOTALL)


def _parsed(text: str) -> dict[str, Any]:
    """Return an element as a dict: attributes as ``@name``, children by their names, as a list if there are several of a name,
    and text beside them as ``#text``. A child with text only is that text, an empty one None. Names keep their prefixes. Blanks
    around text are left out.

    Raises ExpatError if it is not well-formed or has other entities than those of XML, and ValueError if it is too deep.
    """
    found: dict[str, Any] = {}
    open_: list[tuple[dict[str, Any], list[str]]] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(_: str, attributes: dict[str, str]) -> None:
        if len(open_) >= _DEEPEST:
            raise ValueError(f"more than {_DEEPEST} elements in each other")
        open_.append(({f"@{name}": value for name, value in attributes.items()}, []))

    def end(name: str) -> None:
        value, texts = open_.pop()
        text = "".join(texts).strip(_BLANKS)
        if text and (value or not open_):
            value["#text"] = text
        if open_:
            _add(open_[-1][0], name, value or text or None)
        else:
            found.update(value)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda text: open_[-1][1].append(text)
    parser.Parse(text, True)
    return found


def _add(parent: dict[str, Any], name: str, value: Any) -> None:
    if name not in parent:
        parent[name] = value
    elif isinstance(parent[name], list):
        parent[name].append(value)
    else:
        parent[name] = [parent[name], value]
