""".properties files, with results recorded from ``java.util.Properties`` of Java 17."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.config.properties import parse_properties, read_properties
from sluiceway.errors import ConfigError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a=1\nb:2\nc 3\nd\t4\ne = 5 \n f=6\n#x=1\n!y=2\n", {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5 ", "f": "6"}),
        (b"g\\=h=7\ni\\:j:8\nk\\ l m\n", {"g=h": "7", "i:j": "8", "k l": "m"}),
        (b"n=a\\\n   b\\\n\tc\no\np=\nq==r\n", {"n": "abc", "o": "", "p": "", "q": "=r"}),
        (b"s=\\u00e9\\t\\n\\q\\\\\na=1\na=2\n", {"s": "\u00e9\t\nq\\", "a": "2"}),
        (b"a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        (b"k=\xe9", {"k": "\u00e9"}),
        (b"a=b\\\n#c=d\ne=f\\", {"a": "b#c=d", "e": "f"}),
        (b"#c\\\na=1\n   \n\t\f b \f=\f c", {"a": "1", "b": "c"}),
        (b"=v\n", {"": "v"}),
    ],
)
def test_a_file_is_parsed_as_java_does(content: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(content) == expected


def test_a_file_that_java_rejects_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.properties").write_bytes(b"a=\\u00zz")
    with pytest.raises(ConfigError, match=f"^The properties file {tmp_path}/x.properties cannot be read: "):
        read_properties(tmp_path / "x.properties")
