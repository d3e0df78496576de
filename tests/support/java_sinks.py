"""Configs of Java sinks for tests."""

from __future__ import annotations

from pathlib import Path

from support.peer import FILE_SINK

_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_SCRIPTED = "org.sluiceway.tests.ScriptedSink"


def file_sink(name: str, topic: str, file: Path, **more: str) -> dict[str, str]:
    """Return the config of a task of connect-file's sink; keyword arguments have underscores for dots."""
    task = "org.apache.kafka.connect.file.FileStreamSinkTask"
    config = {"name": name, "connector.class": FILE_SINK, "task.class": task, "topics": topic, "file": str(file)}
    strings = {"key.converter": _STRINGS, "value.converter": _STRINGS}
    return {**config, **strings, **{key.replace("_", "."): value for key, value in more.items()}}


def scripted(name: str, topic: str, calls: Path, **more: str) -> dict[str, str]:
    """Return the config of a task of ``ScriptedSink``, which notes its calls."""
    task = {"connector.class": _SCRIPTED, "task.class": f"{_SCRIPTED}$Scripted", "calls": str(calls)}
    return {**file_sink(name, topic, calls, **more), **task}
