"""Coordinates of Maven artifacts as Ivy's modules."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from sluiceway.errors import ConfigError
from sluiceway.stack import maven


def test_a_classifier_selects_a_file_of_the_module() -> None:
    module = ElementTree.fromstring(maven._module_file(("g:a:1", "g:b:2:tests"), ()))  # noqa: S314 (our own)
    plain, classified = module.iter("dependency")
    assert plain.attrib["name"] == "a"
    assert not list(plain)
    [file] = classified
    assert file.attrib == {"name": "b", "type": "jar", "{http://ant.apache.org/ivy/maven}classifier": "tests"}


@pytest.mark.parametrize("coordinate", ["a:1", "g:a:", "g:a:1:tests:more"])
def test_a_malformed_coordinate(coordinate: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must have the form"):
        maven.resolve([coordinate], tmp_path)


@pytest.mark.parametrize(
    ("jar", "coordinates"),
    [
        ("a-1.0.jar", "g.h:a:1.0"),
        ("a-1.0-linux-x86_64.jar", "g.h:a:1.0:linux-x86_64"),
        ("a-1.0-jre.jar", "g.h:a:1.0-jre"),
        ("a-1.0.1.jar", "g.h:a:1.0.1"),
        ("a-2.0.jar", "g.h:a:2.0"),
    ],
)
def test_the_coordinates_of_a_jar_in_the_cache(jar: str, coordinates: str, tmp_path: Path) -> None:
    module = tmp_path / "g.h" / "a"
    module.mkdir(parents=True)
    for version in ("1.0", "1.0-jre"):
        (module / f"ivy-{version}.xml").touch()
    assert maven.coordinates_of(module / "jars" / jar) == coordinates
