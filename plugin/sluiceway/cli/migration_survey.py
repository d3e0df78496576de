"""Collects what the report on connectors needs from both clusters, through their REST APIs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sluiceway.cli.findings import Findings, checked
from sluiceway.cli.migration_cluster import NOT_FOUND, MigrationCluster
from sluiceway.cli.migration_report import (
    JAVA,
    PYTHON,
    ConnectorReport,
    Implementation,
    connector_report,
    is_named,
    version_there,
)
from sluiceway.cli.migration_steps import ConnectorView
from sluiceway.config.plugin_keys import CLASS, IN_PYTHON, plugin_keys, wanted_version
from sluiceway.rest.client import RestError

_NO_SUCH_VERSION = 400


class Survey:
    """The clusters' plugins and states, requested once. A source that has ended (None) had those of its topics."""

    def __init__(self, source: MigrationCluster | None, target: MigrationCluster) -> None:
        self._target = target
        self._plugins = source.api.plugins(connectors_only=False) if source is not None else []
        self._statuses = (source or target).api.statuses()
        self._found: dict[tuple[str, str | None], Implementation | None] = {}

    @cached_property
    def _target_plugins(self) -> list[dict[str, Any]]:
        return self._target.api.plugins(connectors_only=False)

    def report(self, info: Mapping[str, Any]) -> ConnectorReport:
        """Return the report on one connector, given its entry of ``GET /connectors?expand=info``."""
        name, config = info["name"], ConnectorView.of(info["config"], {}).config
        found = {key: self._implementation(each, wanted_version(config, key)) for key, each in plugin_keys(config).items()}
        findings = Findings(name, [], [])
        if (used := found[CLASS]) is not None:
            findings = checked(self._target.api, name, config, reads_others=used.language == JAVA)
        state = ConnectorView.of({}, self._statuses.get(name, {})).state
        return connector_report({**info, "config": config}, state, self._plugins, found, findings)

    def _implementation(self, class_name: str, version: str | None) -> Implementation | None:
        key = (class_name, version)
        if key not in self._found:
            self._found[key] = self._in_sluiceway(*key) if self._target.is_sluiceway else self._in_connect(class_name)
        return self._found[key]

    def _in_sluiceway(self, class_name: str, version: str | None) -> Implementation | None:
        try:
            found = self._target.api.plugin_implementation(class_name, version)
        except RestError as error:
            if error.status != _NO_SUCH_VERSION or version is None:
                if error.status == NOT_FOUND:
                    return None
                raise
            found = self._target.api.plugin_implementation(class_name)  # validation reports the version
        return Implementation(PYTHON if found["language"] == IN_PYTHON else JAVA, found["version"], found["location"])

    def _in_connect(self, class_name: str) -> Implementation | None:
        if not any(is_named(each["class"], class_name) for each in self._target_plugins):
            return None
        return Implementation(JAVA, version_there(self._target_plugins, class_name))
