"""Two commands from a plugin's Maven coordinates to its records, in a stack that runs already."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluiceway.stack import maven
from support.eventually import eventually
from support.kafka import Kafka
from support.stack import START, RunningStack

_CAMEL = "org.apache.camel.kafkaconnector:camel-timer-kafka-connector:0.7.2"
_CLASS = "org.apache.camel.kafkaconnector.timer.CamelTimerSourceConnector"
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@pytest.mark.long
def test_a_plugin_is_installed_and_its_records_flow(stack: RunningStack, tmp_path: Path) -> None:
    def sluiceway(*arguments: str) -> str:
        command = [sys.executable, "-m", "sluiceway.cli.main", *arguments]
        environment = {**os.environ, "SLUICEWAY_HOME": str(stack.home)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert _CLASS not in {each["class"] for each in stack.connect.plugins(connectors_only=True)}

    printed = sluiceway("plugins", "install", _CAMEL)

    assert f"Installed camel-timer-kafka-connector-0.7.2 in {stack.home}/plugins/camel-timer-kafka-connector-0.7.2" in printed
    config = json.JSONDecoder().raw_decode(printed.partition("A config to begin with:\n")[2])[0]
    assert config["config"]["connector.class"] == _CLASS
    assert config["config"]["camel.source.path.timerName"].startswith("<string")
    assert "plugin.path" not in printed.rpartition("}")[2], "the stack reads the folder already"
    known = {"topics": "timer", "camel.source.path.timerName": "t", "camel.source.endpoint.period": "50"}
    left = {key: value for key, value in config["config"].items() if not value.startswith("<")}
    config["config"] = {**left, **known, "key.converter": _STRINGS, "value.converter": _STRINGS}
    file = tmp_path / "connector.json"
    file.write_text(json.dumps(config))

    sluiceway("apply", "-f", str(file))

    kafka = Kafka(stack.addresses.bootstrap)
    eventually(lambda: kafka.count("timer") > 10, within=START, what="records of the timer")
    assert _CLASS in {each["class"] for each in stack.connect.plugins(connectors_only=True)}
    assert _CLASS in {each["class"] for each in stack.mounted.plugins(connectors_only=True)}
    stack.connect.delete(config["name"])
    assert sluiceway("plugins", "remove", "camel-timer-kafka-connector-0.7.2") == "Removed camel-timer-kafka-connector-0.7.2\n"
    assert maven.REPOSITORY_VARIABLE not in printed
