"""Writes the local stack's worker properties file, based on the user's own file if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sluiceway.config.worker import VALIDATES_REFERENCES
from sluiceway.folders import write_atomically
from sluiceway.herder.plugin_path import PLUGIN_PATH

BOOTSTRAP = "bootstrap.servers"
LISTENERS = "listeners"
DEFAULT_REST_PORT = 8083

_HEAD = "# Overwritten by 'sluiceway up'. To change a setting, pass a file of your own: sluiceway up my-worker.properties\n"

# As in Kafka's sample file connect-distributed.properties, plus config providers.
_SAMPLE = {
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.flush.interval.ms": "10000",
    # Let connector configs refer to secrets without further setup.
    "config.providers": "file,env,directory,airflow",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    "config.providers.airflow.class": "AirflowConfigProvider",
}

# The embedded Kafka has a single broker.
_ONE_BROKER = {f"{topic}.storage.replication.factor": "1" for topic in ("config", "offset", "status")}


class Readable(NamedTuple):
    """The folders of a stack that connectors' configs may refer to: of its user's secrets, and of the demo."""

    secrets: Path
    demo: Path

    @classmethod
    def of(cls, home: Path) -> Readable:
        return cls(home / "secrets", home / "demo")

    def make(self) -> None:
        """Create the folders, which a config provider needs at its start."""
        for folder in self:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def worker_properties(
    user: Mapping[str, str] | None, *, bootstrap: str | None, listeners: str, readable: Readable, plugins: Path
) -> dict[str, str]:
    """Return the stack's worker properties. No I/O.

    Args:
        user: properties of the user's file; None for those of Kafka's sample file.
        bootstrap: the embedded broker's address; None if the user's file names brokers.
        listeners: where the REST API listens. The user's own listeners win, except for the first one's port.
        plugins: the folder of installed plugins, which is ``plugin.path`` unless the user's file has one.
        readable: the only folders that configs may refer to, and that a preview in Airflow reads, without a file of the user.
    """
    allowed = {f"config.providers.{each}.param.allowed.paths": ",".join(map(str, readable)) for each in ("file", "directory")}
    properties = {VALIDATES_REFERENCES: "true", PLUGIN_PATH: str(plugins), **({**_SAMPLE, **allowed} if user is None else user)}
    if bootstrap is not None:
        properties = {**_ONE_BROKER, **properties, BOOTSTRAP: bootstrap}
    own = properties.get(LISTENERS, "").strip()
    return {**properties, LISTENERS: _on_port(own, listeners.rpartition(":")[2]) if own else listeners}


def _on_port(listeners: str, port: str) -> str:
    """Return the user's listeners with the first one's port replaced."""
    first, *others = listeners.split(",")
    return ",".join((f"{first.rpartition(':')[0]}:{port}", *others))


def rest_url(properties: Mapping[str, str]) -> str:
    """Return the REST API's URL on this machine: that of its first listener."""
    first = properties[LISTENERS].split(",")[0].strip()
    return f"{first.partition(':')[0].lower()}://localhost:{first.rpartition(':')[2]}"


def needs_broker(user: Mapping[str, str] | None) -> bool:
    """Return True if the stack must start a broker, because the user's file names none."""
    return user is None or not user.get(BOOTSTRAP)


def write_worker_file(path: Path, properties: Mapping[str, str]) -> None:
    """Write the file, readable by its owner only, because it may contain client passwords."""
    import javaproperties

    write_atomically(path, _HEAD + javaproperties.dumps(properties, timestamp=False), mode=0o600)
