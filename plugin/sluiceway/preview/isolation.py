"""Says what an isolated process may reach: the files and variables of a driver, without those of the server that starts it.

That server has secrets of its own, such as Airflow's API server. The process runs a preview, or answers a request.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sluiceway.config.environment import isolated
from sluiceway.config.parsing import parse_list
from sluiceway.config.providers.allowed_paths import ALLOWED_PATHS
from sluiceway.config.providers.env import ALLOWLIST, CONNECTORS
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.folders import cache_home
from sluiceway.java.regex import compile_java
from sluiceway.preview import landlock

_SYSTEM = "/usr /lib /lib32 /lib64 /bin /sbin /sys /dev/null /dev/zero /dev/random /dev/urandom"
# Not all of /proc, which has the environments of the user's other processes.
_PROCESS = "self cpuinfo filesystems loadavg meminfo stat sys version"
# Not all of /etc, where programs keep their passwords.
_SETTINGS = (
    "alternatives ca-certificates crypto-policies gai.conf group hadoop host.conf hosts java java-17-openjdk java-21-openjdk "
    "krb5.conf krb5.conf.d ld.so.cache localtime mime.types nsswitch.conf passwd pki/ca-trust pki/java pki/tls/cert.pem "
    "pki/tls/certs protocols resolv.conf services ssl/cert.pem ssl/certs timezone"
)
_HOMES = ("JAVA_HOME", "KAFKA_HOME", "SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_HOME", "HADOOP_CONF_DIR")
_OF_SERVER = ("listeners.https.", "admin.listeners.https.", "rest.")
_OF_CLIENTS = (".location", "keytab")  # ends of keys of Kafka clients that name key stores and the like


def variables(worker: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an isolated process. Raises ConfigError for an allow list that is no regular expression."""
    lists = _of_providers(worker, ALLOWLIST) or [CONNECTORS]
    allowed = [compile_java(pattern) for pattern in lists]
    return isolated(os.environ, lambda name: any(each.matches(name) for each in allowed))


def require_landlock(what: str, instead: str) -> None:
    """Raise ConnectError if this system has no means to isolate a process. ``what`` needs it; ``instead`` is what to do."""
    if not landlock.available():
        raise ConnectError(
            f"{what} need Linux 5.13 or newer with Landlock in Airflow, which limits the files that they read. {instead}"
        )


def limit_files(worker: Mapping[str, str], folder: Path) -> None:
    """Let this process read programs, settings of the system, and ``allowed_files``, and write below ``folder`` only."""
    landlock.restrict([*_programs(worker), *allowed_files(worker)], [folder, Path(os.devnull)])


def allowed_files(worker: Mapping[str, str]) -> list[Path]:
    """Return the files and folders that the worker's config providers may read by ``allowed.paths``."""
    found = (path for text in _of_providers(worker, ALLOWED_PATHS) for path in parse_list(text))
    return [Path(path) for path in dict.fromkeys(found)]


def unreadable(config: Mapping[str, str], worker: Mapping[str, str]) -> list[str]:
    """Return which files of a config the isolated process does not read, although the driver may."""
    allowed = allowed_files(worker)
    return [
        f"{key} is not read: Airflow's REST API reads files in the worker's {ALLOWED_PATHS} only "
        f"({', '.join(map(str, allowed)) or 'which is not set'})."
        for key, value in config.items()
        if value.startswith("/") and not any(Path(os.path.normpath(value)).is_relative_to(each) for each in allowed)
    ]


def without_servers_keys(worker: WorkerConfig) -> WorkerConfig:
    """Return a worker config without the passwords of the REST server's own listeners."""
    return replace(worker, raw={key: value for key, value in worker.raw.items() if not key.startswith(_OF_SERVER)})


def _of_providers(worker: Mapping[str, str], parameter: str) -> list[str]:
    return [value for key, value in worker.items() if key.startswith("config.providers.") and key.endswith(f".param.{parameter}")]


def _programs(worker: Mapping[str, str]) -> Iterator[Path]:
    yield from map(Path, _SYSTEM.split())
    yield from (Path("/proc", name) for name in _PROCESS.split())
    yield from (Path("/etc", name) for name in _SETTINGS.split())
    yield from map(Path, (sys.prefix, sys.base_prefix, sys.exec_prefix))
    # Airflow's own folder may be a folder of modules too.
    yield from (Path(folder) for folder in sys.path if folder and not Path(folder, "airflow.cfg").exists())
    yield from (Path(os.environ[name]) for name in _HOMES if os.environ.get(name))
    yield from (Path(folder).expanduser() for folder in parse_list(worker.get("plugin.path")))
    yield from (Path(value) for key, value in worker.items() if key.endswith(_OF_CLIENTS))
    yield cache_home()
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent
