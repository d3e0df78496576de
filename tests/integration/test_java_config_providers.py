"""Config providers in jars supply values of worker and connector configs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.config.variables import resolver
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from support.java_plugins import fetch_runtime, java_processes, plugin_from

_PROVIDER = """
package org.example;
import java.util.*;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.provider.ConfigProvider;
public class SecretsConfigProvider implements ConfigProvider {
    private String prefix;
    public void configure(Map<String, ?> config) { prefix = (String) config.get("prefix"); }
    public ConfigData get(String path) { throw new UnsupportedOperationException(); }
    public ConfigData get(String path, Set<String> keys) {
        if (path.equals("closed")) throw new IllegalStateException("the vault is sealed");
        Map<String, String> values = new HashMap<>();
        for (String key : keys) if (path.equals("env")) values.put(key, String.valueOf(System.getenv(key)));
        else if (!key.equals("unknown")) values.put(key, prefix + "-" + path + "-" + key);
        return new ConfigData(values, path.equals("short") ? 5000L : null);
    }
    public void close() {}
}
"""


@pytest.mark.parametrize("name", ["org.example.SecretsConfigProvider", pytest.param("Secrets", marks=pytest.mark.long)])
def test_values_of_a_provider_in_a_jar(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "hunter2")
    fetch_runtime()
    plugin_from(tmp_path, "secrets", {"SecretsConfigProvider": _PROVIDER})
    raw = {"plugin.path": str(tmp_path), "config.providers": "s", "config.providers.s.class": name}
    raw["config.providers.s.param.prefix"] = "p"
    worker = WorkerConfig.of({**raw, "bootstrap.servers": "${s:broker:host}:9092"})
    assert worker.raw["bootstrap.servers"] == "p-broker-host:9092"

    values = resolver(worker)
    found = values.resolve_for({"user": "${s:db:user}", "password": "${s:db:password}!", "other": "${s:unknown}"})
    assert found.config == {"user": "p-db-user", "password": "p-db-password!", "other": "${s:unknown}"}
    assert found.ttl is None
    assert values.resolve_for({"token": "${s:short:token}"}).ttl == 5000
    assert values.resolve({"jwt": "${s:env:AIRFLOW__API_AUTH__JWT_SECRET}"}) == {"jwt": "null"}
    with pytest.raises(ConfigError, match="SecretsConfigProvider: the vault is sealed"):
        values.resolve({"token": "${s:closed:token}"})
    assert java_processes() == []


def test_a_provider_that_is_in_no_jar_cannot_be_found(tmp_path: Path) -> None:
    raw = {"plugin.path": str(tmp_path), "config.providers": "s", "config.providers.s.class": "org.example.None"}
    with pytest.raises(ConfigError, match=r"Class org\.example\.None could not be found"):
        resolver(WorkerConfig.of(raw))
    (tmp_path / "a").mkdir()
    with pytest.raises(ConfigError, match=r"Class org\.example\.None could not be found"):
        resolver(WorkerConfig.of({**raw, "plugin.java": "off"}))
