"""Reads the headers of Java class files in jars: names, supertypes, access flags and constructors. Starts no JVM.

The format is that of the Java Virtual Machine Specification, chapter 4.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

_MAGIC = b"\xca\xfe\xba\xbe"
_U2 = struct.Struct(">H")
_U4 = struct.Struct(">I")
_HEAD = struct.Struct(">HHH")
_PUBLIC, _INTERFACE, _ABSTRACT = 0x0001, 0x0200, 0x0400

_UTF8, _LONG, _DOUBLE, _CLASS = 1, 5, 6, 7
# The number of bytes of each other constant after its tag.
_SIZES = {3: 4, 4: 4, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}

# META-INF/versions has variants of classes for newer Java versions.
_NOT_CLASSES = ("META-INF/", "module-info", "package-info")

UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
"""The errors of reading a damaged, encrypted or vanished jar."""


@dataclass(frozen=True, slots=True)
class ClassHeader:
    """The parts of a class file that are needed; the names are Java's, with dots."""

    name: str
    supertypes: tuple[str, ...]
    java_version: int
    """The oldest Java version that can load the class."""
    is_public: bool
    is_abstract: bool
    """True for interfaces too."""
    has_default_constructor: bool
    """Whether the class has a public constructor without parameters."""


def read_class(data: bytes) -> ClassHeader | None:
    """Return the header of a class file, or None if the bytes are none."""
    if data[:4] != _MAGIC:
        return None
    try:
        return _parse(data)
    except (struct.error, KeyError, IndexError):
        return None


def _parse(data: bytes) -> ClassHeader:
    texts, classes, at = _constants(data)
    access, this, parent = _HEAD.unpack_from(data, at)
    count = _U2.unpack_from(data, at + 6)[0]
    interfaces = struct.unpack_from(f">{count}H", data, at + 8)

    def name(index: int) -> str:
        return _text(data, texts[classes[index]]).replace("/", ".")

    return ClassHeader(
        name=name(this),
        supertypes=tuple(name(each) for each in (parent, *interfaces) if each),
        java_version=_U2.unpack_from(data, 6)[0] - 44,
        is_public=bool(access & _PUBLIC),
        is_abstract=bool(access & (_INTERFACE | _ABSTRACT)),
        has_default_constructor=_has_default_constructor(data, at + 8 + 2 * count, texts),
    )


def _constants(data: bytes) -> tuple[dict[int, tuple[int, int]], dict[int, int], int]:
    """Return start and length of the constant pool's texts, the texts' indexes of its classes, and the pool's end."""
    texts: dict[int, tuple[int, int]] = {}
    classes: dict[int, int] = {}
    count = _U2.unpack_from(data, 8)[0]
    index, at = 1, 10
    while index < count:
        tag = data[at]
        if tag == _UTF8:
            length = _U2.unpack_from(data, at + 1)[0]
            texts[index] = (at + 3, length)
            at += 3 + length
        elif tag in (_LONG, _DOUBLE):  # take two indexes
            at += 9
            index += 1
        else:
            if tag == _CLASS:
                classes[index] = _U2.unpack_from(data, at + 1)[0]
            at += 1 + _SIZES[tag]
        index += 1
    return texts, classes, at


def _has_default_constructor(data: bytes, at: int, texts: Mapping[int, tuple[int, int]]) -> bool:
    at = max((end for *_, end in _members(data, at)), default=at + 2)  # skips the fields
    return any(
        access & _PUBLIC and _text(data, texts[name]) == "<init>" and _text(data, texts[descriptor]) == "()V"
        for access, name, descriptor, _ in _members(data, at)
    )


def _members(data: bytes, at: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield access flags, name, descriptor and end of each field or method."""
    count = _U2.unpack_from(data, at)[0]
    at += 2
    for _ in range(count):
        access, name, descriptor = _HEAD.unpack_from(data, at)
        attributes = _U2.unpack_from(data, at + 6)[0]
        at += 8
        for _ in range(attributes):
            at += 6 + _U4.unpack_from(data, at + 2)[0]
        yield access, name, descriptor, at


def _text(data: bytes, place: tuple[int, int]) -> str:
    start, length = place
    return data[start : start + length].decode("utf-8", "replace")


def name_constant(name: str) -> bytes:
    """Return the bytes by which class files name a class: tag, length, and the name with slashes."""
    text = name.replace(".", "/").encode()
    return bytes((_UTF8,)) + _U2.pack(len(text)) + text


class ClassPath:
    """The classes of some jars, read on demand. As in Java, the first jar with a class wins. Use it as a context manager.

    Skips jars that cannot be read; ``problems`` has an error for each.
    """

    def __init__(self, jars: Sequence[Path]) -> None:
        self.problems: list[str] = []
        self._archives: list[zipfile.ZipFile] = []
        self._headers: dict[str, ClassHeader | None] = {}
        for jar in jars:
            try:
                self._archives.append(zipfile.ZipFile(jar))
            except UNREADABLE as error:
                self.problems.append(f"{jar} cannot be read ({error}). Copy it again.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for archive in self._archives:
            archive.close()

    def text(self, entry: str) -> list[tuple[str, str]]:
        """Return the jar's path and the content of each entry with this name."""
        found = [(archive, self._read(archive, entry)) for archive in self._archives if entry in archive.NameToInfo]
        return [(str(archive.filename), data.decode("utf-8", "replace")) for archive, data in found if data is not None]

    def jar_of(self, name: str) -> str | None:
        """Return the path of the jar that has a class."""
        entry = f"{name.replace('.', '/')}.class"
        return next((str(archive.filename) for archive in self._archives if entry in archive.NameToInfo), None)

    def __contains__(self, name: str) -> bool:
        return self.jar_of(name) is not None

    def header(self, name: str) -> ClassHeader | None:
        """Return the header of a class, or None if no jar has it."""
        if name not in self._headers:
            self._headers[name] = self._find(f"{name.replace('.', '/')}.class")
        return self._headers[name]

    def _find(self, entry: str) -> ClassHeader | None:
        for archive in self._archives:
            if entry in archive.NameToInfo:
                data = self._read(archive, entry)
                return read_class(data) if data is not None else None
        return None

    def mentioning(self, texts: Collection[bytes]) -> Iterator[ClassHeader]:
        """Yield the headers of the classes whose files contain one of these texts.

        Parsing every class file would take seconds for large plugins, so that only these are parsed.
        """
        pattern = re.compile(b"|".join(map(re.escape, texts)))
        for archive in self._archives:
            for entry in archive.NameToInfo:
                if not entry.endswith(".class") or entry.startswith(_NOT_CLASSES):
                    continue
                data = self._read(archive, entry)
                header = read_class(data) if data is not None and pattern.search(data) else None
                if header is not None:
                    yield self._headers.setdefault(header.name, header) or header

    def _read(self, archive: zipfile.ZipFile, entry: str) -> bytes | None:
        try:
            return archive.read(entry)
        except UNREADABLE as error:
            self.problems.append(f"{entry} of {archive.filename} cannot be read ({error}). Copy the jar again.")
            return None
