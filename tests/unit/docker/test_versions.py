"""The package's version in the Helm chart and in the commands of the guides."""

from __future__ import annotations

import re

import pytest
import yaml
from packaging.version import Version

import sluiceway
from support.docker_files import DOCKER, ROOT

VERSION = Version(sluiceway.__version__)
_IMAGE = re.compile(r"\bsluiceway-(?:spark|airflow):([\w.-]+)")


def semantic(version: Version) -> str:
    """Return a version as Helm writes it: ``1.0.0a1`` is ``1.0.0-a1`` there."""
    before = "".join(str(part) for part in version.pre or ())
    return f"{version.base_version}-{before}" if before else version.base_version


@pytest.mark.parametrize(("version", "expected"), [("1.0.0a1", "1.0.0-a1"), ("1.0.0rc2", "1.0.0-rc2"), ("1.2.3", "1.2.3")])
def test_pre_releases_are_semantic_versions(version: str, expected: str) -> None:
    assert semantic(Version(version)) == expected


def test_the_chart_has_the_packages_version() -> None:
    chart = yaml.safe_load((DOCKER / "helm" / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (semantic(VERSION), str(VERSION))


def test_the_chart_runs_images_of_the_packages_version() -> None:
    values = yaml.safe_load((DOCKER / "helm" / "values.yaml").read_text())
    tags = [values[name].rpartition(":")[2] for name in ("sparkImage", "airflowImage")]
    assert {*tags, values["airflow"]["defaultAirflowTag"]} == {str(VERSION)}


def test_the_chart_installs_the_airflow_that_is_tested() -> None:
    values = yaml.safe_load((DOCKER / "helm" / "values.yaml").read_text())
    tested = re.search(r"^apache-airflow==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert tested is not None
    assert values["airflow"]["airflowVersion"] == tested[1]


def test_guides_name_images_of_the_packages_version() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *DOCKER.rglob("*.md"), ROOT / "README.md"]
    named = {(str(page.relative_to(ROOT)), tag) for page in pages for tag in _IMAGE.findall(page.read_text(encoding="utf-8"))}
    assert named, "no guide names an image; this test looks for nothing"
    assert {tag for _, tag in named} == {str(VERSION)}, named
