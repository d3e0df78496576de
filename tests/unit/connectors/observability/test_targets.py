"""Targets: addresses, labels, files and URLs of targets, shares of tasks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.observability.prometheus_config import PrometheusOptions, prometheus_options
from sluiceway.connectors.observability.targets import Discovery, Target, merged, target_of
from sluiceway.errors import ConfigError, DataError


def options(**config: str) -> PrometheusOptions:
    given = {key.replace("_", "."): value for key, value in config.items()}
    return prometheus_options({"name": "shop", "topic": "t", "targets": "a:1", **given})


@pytest.mark.parametrize(
    ("address", "labels", "url", "found"),
    [
        ("a:1", {}, "http://a:1/metrics", {"job": "shop", "instance": "a:1"}),
        ("https://a/x?y=1", {}, "https://a/x?y=1", {"job": "shop", "instance": "a"}),
        ("https://a", {}, "https://a/metrics", {"job": "shop", "instance": "a"}),
        ("[::1]:9", {}, "http://[::1]:9/metrics", {"job": "shop", "instance": "[::1]:9"}),
        ("a:1", {"__scheme__": "https", "__metrics_path__": "/p", "__meta_x": "y"}, "https://a:1/p", None),
        ("a:1", {"__param_module": "a b", "__param_a": "1"}, "http://a:1/metrics?a=1&module=a+b", None),
        (
            "a:1",
            {"job": "j", "instance": "i", "zone": "", "x": "y"},
            "http://a:1/metrics",
            {"job": "j", "instance": "i", "x": "y"},
        ),
    ],
)
def test_an_address_and_its_labels(address: str, labels: dict[str, str], url: str, found: dict[str, str] | None) -> None:
    target = target_of(address, labels, options(), "targets")
    assert target.url == url
    assert target.labels == found or (found is None and set(target.labels) == {"job", "instance"})


@pytest.mark.parametrize("address", ["", "a b", "a:x", "ftp://a", "me:hush@a:1", "http://", "a\n"])
def test_what_is_no_address_is_refused_without_showing_a_password(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        target_of(address, {}, options(), "targets")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("exposed", "honor", "labels"),
    [
        ({"a": "1"}, False, {"job": "j", "a": "1"}),
        ({"job": "x"}, False, {"job": "j", "exported_job": "x"}),
        ({"job": "x", "exported_job": "y"}, False, {"job": "j", "exported_exported_job": "x", "exported_job": "y"}),
        ({"job": ""}, False, {"job": "j"}),
        ({"job": "x"}, True, {"job": "x"}),
        ({"job": "", "a": ""}, True, {}),
    ],
)
def test_labels_of_the_target_and_of_the_series(exposed: dict[str, str], honor: bool, labels: dict[str, str]) -> None:
    assert merged(exposed, {"job": "j"}, honor=honor) == labels


@given(st.sets(st.integers(0, 999), min_size=1), st.integers(1, 9))
def test_each_target_is_of_one_task(numbers: set[int], count: int) -> None:
    for number in numbers:
        target = Target(f"http://host-{number}:8000/metrics", {})
        assert [target.is_of(index, count) for index in range(count)].count(True) == 1
        assert 0 <= target.phase(1000) < 1000


def urls(discovery: Discovery) -> list[str]:
    return sorted(discovery.targets())


def test_files_of_targets_are_read_again_and_a_bad_one_keeps_its_last_targets(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, other = tmp_path / "a.json", tmp_path / "b.yml"
    file.write_text(json.dumps([{"targets": ["a:2"], "labels": {"env": "prod"}}]))
    other.write_text("- targets: [b:3, b:4]\n")
    discovery = Discovery(options(**{"file.sd.files": f"{tmp_path}/*.json,{tmp_path}/*.yml"}))
    discovery.read_files()
    assert urls(discovery) == [f"http://{each}/metrics" for each in ("a:1", "a:2", "b:3", "b:4")]
    assert discovery.targets()["http://a:2/metrics"].labels["env"] == "prod"
    file.write_text("[")
    discovery.read_files()
    discovery.read_files()
    assert len(urls(discovery)) == 4
    assert str(discovery.problem).startswith(f"{file} of file.sd.files cannot be read: it is no JSON")
    assert len([each for each in caplog.records if "Its last 1 targets are kept" in each.getMessage()]) == 1
    file.write_text("[]")
    other.unlink()
    discovery.read_files()
    assert (urls(discovery), discovery.problem) == (["http://a:1/metrics"], None)


def test_a_file_that_does_not_exist_is_told(tmp_path: Path) -> None:
    discovery = Discovery(options(**{"file.sd.files": f"{tmp_path}/a.json"}))
    discovery.read_files()
    assert discovery.problem == f"{tmp_path}/a.json of file.sd.files does not exist"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.json").touch(mode=0)
    discovery = Discovery(options(**{"file.sd.files": f"{tmp_path}/a.json"}))
    discovery.read_files()
    assert "Permission" in str(discovery.problem)


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        [1],
        [{}],
        [{"targets": "a:1"}],
        [{"targets": [1]}],
        [{"targets": [], "labels": {"a": 1}}],
        [{"targets": ["a b"]}],
    ],
)
def test_documents_of_another_form_are_refused_as_a_whole(content: Any) -> None:
    discovery = Discovery(options())
    discovery.take("x", [{"targets": ["x:1"]}])
    with pytest.raises(DataError):
        discovery.take("x", content)
    assert urls(discovery) == ["http://a:1/metrics", "http://x:1/metrics"]


def test_of_two_targets_with_one_url_the_first_counts() -> None:
    discovery = Discovery(options())
    discovery.take("x", [{"targets": ["a:1"], "labels": {"a": "b"}}])
    assert "a" not in discovery.targets()["http://a:1/metrics"].labels
