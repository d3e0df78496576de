"""Writes the bundle's files: one Python file, the stub, for each generated DAG. Needs neither Airflow nor Kafka."""

from __future__ import annotations

import contextlib
import os
import pprint
import time
from collections.abc import Mapping
from pathlib import Path

from sluiceway.errors import ConfigError
from sluiceway.folders import write_atomically
from sluiceway.herder.moved import needs_driver
from sluiceway.provider.dag_bundle.dag_ids import (
    APPLICATION_PREFIX,
    application_dag_id,
    dag_id,
    is_application_file,
    is_stub_file,
    stub_file,
)
from sluiceway.provider.dag_bundle.dag_keys import dag_config, is_generated
from sluiceway.provider.dag_bundle.taken_ids import refusal, reserved
from sluiceway.storage.model import ClusterState

_CONNECTOR = '''\
"""Airflow DAG of one connector. Generated from the config topic; changes here are overwritten."""

from sluiceway.operators import SinkConnectorOperator, SourceConnectorOperator
from sluiceway.provider.dag_bundle.connector_dag import connector_dag

dag = connector_dag(
    {name!r},
    {config},
    source_operator=SourceConnectorOperator,
    sink_operator=SinkConnectorOperator,
{application}{paused})
'''

_SHARED = "    application={name!r},\n"

# Only for the first parse: after that, the pause sync sets the flag. A file that differs in nothing else is not written again.
_FIRST_SECONDS = 10.0  # by which an application's DAG seems newer than those of connectors, which wait for it
_PAUSED = "    is_paused_upon_creation=True,\n"

_APPLICATION = '''\
"""Airflow DAG of a Spark application that connectors share. Generated from the config topic; changes here are overwritten."""

from sluiceway.operators.application import ApplicationOperator
from sluiceway.provider.dag_bundle.connector_dag import application_dag

dag = application_dag({name!r}, operator=ApplicationOperator)
'''

# Airflow shows this file's import error with the message. It parses only files that contain the words "airflow" and "dag".
_INVALID = '''\
"""Airflow DAG of one connector, which cannot be generated."""

from sluiceway.errors import ConfigError

raise ConfigError({message!r})
'''


def stub(name: str, config: Mapping[str, str], *, application: str | None = None, paused: bool = False) -> str:
    """Return a connector's stub. Deterministic, so that an unchanged config changes no file.

    ``application`` is the shared application that runs it, None for one of its own.
    """
    shared = _SHARED.format(name=application) if application is not None else ""
    return _CONNECTOR.format(name=name, config=_literal(dag_config(config)), application=shared, paused=_PAUSED if paused else "")


def application_stub(name: str) -> str:
    """Return a shared application's stub."""
    return _APPLICATION.format(name=name)


def _literal(pairs: Mapping[str, str]) -> str:
    return pprint.pformat(dict(pairs), sort_dicts=True, width=100).replace("\n", "\n    ")


def stubs(state: ClusterState, taken: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the text of every stub by file name.

    ``taken`` are the bundles that define DAGs of the same ids, by DAG: those DAGs stay, and the stub is an import error.
    """
    taken = taken or {}
    files: dict[str, str] = {}
    for name in state.names():
        entry = state.entry(name)
        if entry is None or entry.config is None or not is_generated(entry.config):
            continue
        try:
            dag = dag_id(name)
        except ConfigError as error:
            files[stub_file(f"{dag_id(name[:40])}-name-too-long")] = _INVALID.format(message=f"Connector {name}: {error}")
            continue
        if name.startswith(APPLICATION_PREFIX):
            files[stub_file(f"{dag}-is-reserved")] = _INVALID.format(message=reserved(name))
        elif dag in taken:
            files[stub_file(dag)] = _INVALID.format(message=refusal(name, dag, taken[dag]))
        else:
            paused = not needs_driver(entry)
            files[stub_file(dag)] = stub(name, entry.config, application=entry.application, paused=paused)
    return files | _application_stubs(state, taken)


def _application_stubs(state: ClusterState, taken: Mapping[str, str]) -> dict[str, str]:
    """Return a stub for each shared application."""
    entries = [state.entry(name) for name in state.names()]
    files: dict[str, str] = {}
    for application in sorted({entry.application for entry in entries if entry is not None and entry.application}):
        with contextlib.suppress(ConfigError):  # the name is too long for a DAG id; the connectors' tasks log that they wait
            dag = application_dag_id(application)
            found = refusal(f"{APPLICATION_PREFIX}{application}", dag, taken[dag]) if dag in taken else None
            files[stub_file(dag)] = _INVALID.format(message=found) if found else application_stub(application)
    return files


def write_stubs(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write these stubs, delete all other stubs, and return the names of the files written or deleted.

    Safe while other processes read or write the folder: each file is replaced atomically, and only if more changed in it than
    whether its DAG is paused at its creation.
    """
    folder.mkdir(parents=True, exist_ok=True)
    changed: list[str] = []
    for file_name, text in files.items():
        path = folder / file_name
        if not path.is_file() or path.read_text(encoding="utf-8").replace(_PAUSED, "") != text.replace(_PAUSED, ""):
            write_atomically(path, text)
            if is_application_file(file_name):
                _parse_first(path)
            changed.append(file_name)
    for path in folder.iterdir():
        if is_stub_file(path.name) and path.name not in files:
            path.unlink(missing_ok=True)
            changed.append(path.name)
    return changed


def _parse_first(path: Path) -> None:
    """Make Airflow parse this file before others that are new: it begins with those modified last.

    Until the given time is over, Airflow parses the file again each time that it has parsed all others.
    """
    soon = time.time() + _FIRST_SECONDS
    os.utime(path, (soon, soon))
