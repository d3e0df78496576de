"""Headers of class files are read without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.java_plugins.class_files import ClassHeader, ClassPath, name_constant, read_class
from support.java_classes import ABSTRACT, CONVERTER, HEADER_CONVERTER, INTERFACE, PUBLIC, class_file, write_jar

_FILE_HEADER = 30  # bytes before the name of a zip archive's entry


def test_a_header_has_names_flags_version_and_constructor() -> None:
    data = class_file("org.example.Both", "org.example.Base", [CONVERTER, HEADER_CONVERTER], java=11)

    assert read_class(data) == ClassHeader(
        "org.example.Both", ("org.example.Base", CONVERTER, HEADER_CONVERTER), 11, True, False, True
    )


@pytest.mark.parametrize(
    ("access", "public", "abstract"),
    [(PUBLIC, True, False), (0, False, False), (PUBLIC | ABSTRACT, True, True), (PUBLIC | INTERFACE | ABSTRACT, True, True)],
)
def test_flags(access: int, public: bool, abstract: bool) -> None:
    header = read_class(class_file("a.B", access=access))

    assert header is not None
    assert (header.is_public, header.is_abstract) == (public, abstract)


@pytest.mark.parametrize("constructor", [None, "(I)V"])
def test_a_constructor_with_parameters_is_no_default_constructor(constructor: str | None) -> None:
    header = read_class(class_file("a.B", constructor=constructor))

    assert header is not None
    assert not header.has_default_constructor


@pytest.mark.parametrize("data", [b"", b"PK\3\4", class_file("a.B")[:40], class_file("a.B").replace(b"\x07", b"\x63")])
def test_what_is_no_class_file_has_no_header(data: bytes) -> None:
    assert read_class(data) is None


def test_the_first_jar_with_a_class_wins(tmp_path: Path) -> None:
    jars = [write_jar(tmp_path / f"{number}.jar", {"a.B": class_file("a.B", f"a.Base{number}")}) for number in (1, 2)]

    with ClassPath(jars) as classes:
        header = classes.header("a.B")
        assert header is not None
        assert header.supertypes == ("a.Base1",)
        assert classes.jar_of("a.B") == str(jars[0])
        assert "a.C" not in classes
        assert classes.header("a.C") is None
        assert {each.name for each in classes.mentioning([name_constant("a.Base2")])} == {"a.B"}


def test_unreadable_jars_are_problems(tmp_path: Path) -> None:
    broken, cut = tmp_path / "broken.jar", tmp_path / "cut.jar"
    broken.write_text("no jar")
    write_jar(cut, {"a.B": class_file("a.B")})
    data = bytearray(cut.read_bytes())
    data[_FILE_HEADER + 10] ^= 0xFF  # in the name of the first entry
    cut.write_bytes(data)

    with ClassPath([broken, cut, tmp_path / "none.jar"]) as classes:
        assert classes.header("a.B") is None
        assert [problem.partition(" ")[0] for problem in classes.problems] == [
            str(broken),
            str(tmp_path / "none.jar"),
            "a/B.class",
        ]
