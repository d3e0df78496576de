"""Boards, alert rules, and the files that provision them, in docker/monitoring."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluiceway.metrics.catalog import METRICS
from sluiceway.metrics.naming import metric_names
from support.prometheus import BOARDS, MONITORING, hurried, names_in, program, targets

PROMETHEUS_OWN = {"up", "ALERTS"}
EXPORTED = {name for (domain, kind), each in METRICS.items() for metric in each for name in metric_names(domain, kind, metric)}


def read(path: Path) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(path.read_text())
    return board


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_boards_query_metrics_that_exist(path: Path) -> None:
    for title, query in targets(read(path)):
        assert names_in(query), title
        assert names_in(query) <= EXPORTED | PROMETHEUS_OWN, title


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_panels_have_ids_of_their_own_and_do_not_overlap(path: Path) -> None:
    panels = read(path)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


def test_boards_have_uids_of_their_own_and_the_fleet_links_to_connectors() -> None:
    boards = {path.stem: read(path) for path in BOARDS}
    assert set(boards) == {"fleet", "connector"}
    assert len({board["uid"] for board in boards.values()}) == len(boards)
    assert f"/d/{boards['connector']['uid']}?var-connector=" in json.dumps(boards["fleet"])
    assert [each["name"] for each in boards["connector"]["templating"]["list"]] == ["datasource", "connector"]


def test_rules_query_metrics_that_exist_and_say_what_to_do() -> None:
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        assert names_in(rule["expr"]) <= EXPORTED | PROMETHEUS_OWN, rule["alert"]
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("critical", "warning")
    tested = yaml.safe_load((MONITORING / "alerts.test.yml").read_text())["tests"]
    assert {case["alertname"] for test in tested for case in test["alert_rule_test"]} == {
        rule["alert"] for rule in group["rules"]
    }


def test_files_are_mounted_where_grafana_and_prometheus_read_them(services: dict[str, Any]) -> None:
    volumes = dict(volume.split(":")[:2] for volume in services["grafana"]["volumes"])
    provider = yaml.safe_load((MONITORING / "grafana/provisioning/dashboards/sluiceway.yml").read_text())["providers"][0]
    assert volumes["./monitoring/grafana/dashboards"] == provider["options"]["path"]
    assert volumes["./monitoring/grafana/provisioning"] == "/etc/grafana/provisioning"
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/fleet.json"
    assert "./monitoring:/etc/prometheus:ro" in services["prometheus"]["volumes"]
    (source,) = yaml.safe_load((MONITORING / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]
    (target,) = config["scrape_configs"][0]["static_configs"][0]["targets"]
    assert target.split(":") == ["connect-rest", services["connect-rest"]["ports"][0].rpartition(":")[2]]


def test_both_run_only_with_the_profile(services: dict[str, Any]) -> None:
    assert {name for name, service in services.items() if service.get("profiles") == ["monitoring"]} == {"prometheus", "grafana"}


@pytest.mark.skipif(program("promtool") is None, reason="no promtool: make test-metrics fetches it")
@pytest.mark.parametrize("arguments", [("check", "config", "prometheus.yml"), ("test", "rules", "alerts.test.yml")])
def test_promtool_finds_nothing_wrong(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([program("promtool") or "", *arguments], cwd=MONITORING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hurried_rules_differ_in_their_times_only() -> None:
    assert (
        hurried("for: 10m\nexpr: x_ms > 60000 and deriv(y[5m]) > 1000") == "for: 30s\nexpr: x_ms > 3000 and deriv(y[15s]) > 1000"
    )
