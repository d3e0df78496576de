"""The worker's properties file of the local stack, made from the user's, if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sluiceway.folders import write_atomically

BOOTSTRAP = "bootstrap.servers"
LISTENERS = "listeners"
DEFAULT_REST_PORT = 8083

_HEAD = "# Written anew by 'sluiceway up'. To change something, give a file of your own: sluiceway up my-worker.properties\n"

# As in the sample file that comes with Kafka, but for the config providers.
_SAMPLE = {
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.flush.interval.ms": "10000",
    # So that a config can refer to a secret from the first minute on.
    "config.providers": "file,env,directory,airflow",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    "config.providers.airflow.class": "AirflowConfigProvider",
}

# The embedded broker is one broker.
_ONE_BROKER = {f"{topic}.storage.replication.factor": "1" for topic in ("config", "offset", "status")}


def worker_properties(user: Mapping[str, str] | None, *, bootstrap: str | None, listeners: str) -> dict[str, str]:
    """Return the stack's worker properties; pure.

    ``user`` None: as in Kafka's sample. ``bootstrap`` is the embedded broker's address, None when the user has a broker.
    ``listeners`` is where REST listens unless the user says it, on that port in either case.
    """
    properties = dict(_SAMPLE if user is None else user)
    if bootstrap is not None:
        properties = {**_ONE_BROKER, **properties, BOOTSTRAP: bootstrap}
    own = properties.get(LISTENERS, "").strip()
    return {**properties, LISTENERS: _on_port(own, listeners.rpartition(":")[2]) if own else listeners}


def _on_port(listeners: str, port: str) -> str:
    """Return the user's listeners with the first on the port that was found free for it."""
    first, *others = listeners.split(",")
    return ",".join((f"{first.rpartition(':')[0]}:{port}", *others))


def rest_url(properties: Mapping[str, str]) -> str:
    """Return where the REST API of a stack with these properties is reached on this machine: its first listener."""
    first = properties[LISTENERS].split(",")[0].strip()
    return f"{first.partition(':')[0].lower()}://localhost:{first.rpartition(':')[2]}"


def needs_broker(user: Mapping[str, str] | None) -> bool:
    """Whether a broker has to be started, because the user's file names none."""
    return user is None or not user.get(BOOTSTRAP)


def write_worker_file(path: Path, properties: Mapping[str, str]) -> None:
    """Write the file readable for its owner only: passwords of clients may stand in it."""
    import javaproperties

    write_atomically(path, _HEAD + javaproperties.dumps(properties, timestamp=False), mode=0o600)
