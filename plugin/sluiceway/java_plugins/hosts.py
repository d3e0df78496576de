"""Chooses the Java process that a plugin runs in: the one of its task, of its connector, or the process's own.

``task_host`` gives each task, and each connector on the driver, a Java process of its own, started for its first plugin. Plugins
that are created elsewhere, to validate a config, run in one process that all threads share.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sluiceway.errors import ConnectError, java_text_of
from sluiceway.java_plugins.errors import JavaError, JavaProcessError
from sluiceway.java_plugins.host import HostOptions, JavaHost, JavaObject
from sluiceway.java_plugins.log_levels import follow_java_levels
from sluiceway.java_plugins.runtime_jars import runtime_jars

_SHARED_OPTS = "-Xmx128m -XX:TieredStopAtLevel=1"  # it validates configs, so it needs a quick start most
_IDLE_SECONDS = 300.0
_CHECK_SECONDS = 30.0
_CALL_SECONDS = 60.0  # less than the time that clients of the REST API wait


class PluginLocation(Protocol):
    """The location of a Java plugin's class; ``JavaPlugin`` has these attributes."""

    @property
    def class_name(self) -> str: ...

    @property
    def location(self) -> Path | None:
        """The plugin's location in ``plugin.path``; None for a class of Connect's runtime."""

    @property
    def jars(self) -> tuple[Path, ...]: ...


def reference(plugin: PluginLocation, class_name: str | None = None) -> dict[str, object]:
    """Return a plugin, or another class from its jars, in the form in which requests name it."""
    name = class_name or plugin.class_name
    if plugin.location is None:
        return {"class": name}
    return {"class": name, "location": str(plugin.location), "jars": [str(jar) for jar in plugin.jars]}


class HostSlot:
    """A Java process that is started when it is first needed. Thread-safe."""

    def __init__(self, name: str, java_opts: str = "", context: str = "") -> None:
        self.context = context
        self._name = name
        self._java_opts = java_opts
        self._lock = threading.Lock()
        self._host: JavaHost | None = None
        self._used = 0.0

    def host(self) -> JavaHost:
        """Return the process, starting it if it does not run. Raises MissingToolError, JavaProcessError."""
        with self._lock:
            self._used = time.monotonic()
            if self._host is None or not self._host.alive:
                self._host = JavaHost(HostOptions(self._name, tuple(runtime_jars()), self._java_opts))
                follow_java_levels(self._host)
            return self._host

    @property
    def started(self) -> JavaHost | None:
        """The process if it has been started, also after its end."""
        return self._host

    def close(self) -> None:
        """End the process. Never raises."""
        with self._lock:
            host, self._host = self._host, None
        if host is not None:
            host.close()

    def close_if_idle(self, seconds: float) -> None:
        """End the process if ``host`` has not been called for so long."""
        if self._host is not None and time.monotonic() - self._used > seconds:
            self.close()


_current: contextvars.ContextVar[HostSlot | None] = contextvars.ContextVar("java_host", default=None)
_shared = HostSlot("config validation", _SHARED_OPTS)
_idle_watch: threading.Thread | None = None
_idle_lock = threading.Lock()


@contextmanager
def task_host(name: str, java_opts: str = "", context: str = "") -> Iterator[HostSlot]:
    """Run the block's Java plugins, if it has any, in a Java process of its own, which ends with the block.

    Applies to the calling thread only. ``name`` appears in messages, ``context`` is the prefix of the plugins' log lines.
    """
    slot = HostSlot(name, java_opts, context)
    token = _current.set(slot)
    try:
        yield slot
    finally:
        _current.reset(token)
        slot.close()


def current_slot() -> HostSlot:
    """Return the slot of the calling thread's task or connector, or else the one that the process's other threads share."""
    slot = _current.get()
    if slot is not None:
        return slot
    _watch_idle()
    return _shared


def call_new(kind: str, args: object, plugin: PluginLocation, method: str, method_args: object) -> Any:
    """Call a method of a new object, which is deleted then, in the process of the calling thread. Return the method's result.

    Raises JavaError, and JavaProcessError for a plugin that ends its process or does not return within a minute.
    """
    slot = current_slot()
    started = time.monotonic()

    def limit(called: JavaObject) -> None:
        if time.monotonic() - started > _CALL_SECONDS:
            called.host.kill()
            raise JavaProcessError(
                f"{plugin.class_name} did not return from {method}() within {_CALL_SECONDS:.0f} s. Its Java process was killed. "
                "Check what the plugin waits for, such as a server that its config names."
            )

    created = slot.host().new(kind, args, context=slot.context, watch=limit)
    try:
        return created.call(method, method_args, watch=lambda _: limit(created))
    except JavaError as error:
        if error.java_class.endswith("Error"):  # whose message may be nothing but the name of a missing class
            raise ConnectError(f"{plugin.class_name}.{method}() failed: {java_text_of(error)}") from error
        raise
    finally:
        created.delete()


class PluginMetric(NamedTuple):
    """A metric that a plugin has registered (KIP-877), with the name and tags that it has in Kafka Connect (``type=plugins``)."""

    name: str
    description: str
    tags: Mapping[str, str]
    value: float | str | bool | None


def plugin_metrics(host: JavaHost) -> list[PluginMetric]:
    """Return the metrics of the plugins in a Java process. Raises JavaProcessError if it has ended."""
    helper = host.new("metrics", None)
    try:
        return [PluginMetric(**each) for each in helper.call("values")]
    finally:
        helper.delete()


def _watch_idle() -> None:
    """Start the thread that ends the shared process after minutes without use."""
    global _idle_watch
    with _idle_lock:
        if _idle_watch is None or not _idle_watch.is_alive():
            _idle_watch = threading.Thread(target=_end_idle, name="java-idle", daemon=True)
            _idle_watch.start()


def _end_idle() -> None:
    while True:
        time.sleep(_CHECK_SECONDS)
        _shared.close_if_idle(_IDLE_SECONDS)


def close_shared_host() -> None:
    """End the process that threads share, if it runs. The next plugin that needs it starts it again."""
    _shared.close()


atexit.register(close_shared_host)
