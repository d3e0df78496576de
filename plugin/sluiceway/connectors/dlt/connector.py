"""The dlt source: reads what dlt's sources and resources give."""

from __future__ import annotations

import importlib.util
import json
import logging
import threading
from collections.abc import Mapping, Sequence

from sluiceway.api import ConnectorTransactionBoundaries, ExactlyOnceSupport, Offset, Partition, SourceConnector
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.dlt import config as keys
from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.connectors.dlt.frames import DESCRIBED
from sluiceway.connectors.dlt.process import ReaderProcess, SourceError, SourceUnreachableError
from sluiceway.connectors.dlt.task import RESOURCE, SOURCE, DltSourceTask
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.installation import install_command

log = logging.getLogger(__name__)

_BOUNDARY, _BY_CONNECTOR = "transaction.boundary", "connector"
_STATE, _SCHEMA = "state", "schema"
_MOST_SECONDS = 45.0  # of a validation


class DltSourceConnector(SourceConnector):
    """Reads sources and resources of dlt, the data load tool: its own for REST APIs, databases, and files, those of others, and
    yours. Each resource's incremental state is its offset. One task reads them, in a process of its own.
    """

    task_class = DltSourceTask
    interval_by_timestamp = False

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.CONFIG

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        """Check the form of the keys. Imports neither dlt nor the user's module."""
        found = cls.config_def().validate(config)
        if not any(each.errors for each in found.values()):
            try:
                DltConfig.of(config)
            except ConfigError as error:
                _add(found, error.name or keys.SOURCE, str(error))
        return found

    @classmethod
    def try_config(cls, config: Mapping[str, str], found: dict[str, ValidatedValue]) -> None:
        """Make the source in a process of its own, which reads nothing. Its resources are recommended values."""
        try:
            _require_dlt()
            resources = described(config)
        except SourceUnreachableError as error:
            log.warning("%s", error)
        except SourceError as error:
            _add(found, error.key or keys.SOURCE, str(error))
        except MissingToolError as error:
            _add(found, keys.SOURCE, str(error))
        else:
            found[keys.RESOURCES].recommended_values = list(resources)

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the config. Raises ConfigError."""
        DltConfig.of(config)
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [dict(self._config)]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Return SUPPORTED with ``transaction.boundary=connector``: only the task knows where a state covers what it has sent."""
        by_connector = (config.get(_BOUNDARY) or "").lower() == _BY_CONNECTOR
        return ExactlyOnceSupport.SUPPORTED if by_connector else ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.SUPPORTED

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        for partition, offset in offsets:
            if offset is None:
                continue
            if set(partition or ()) != {SOURCE, RESOURCE}:
                raise ConnectError(f'A partition is {{"{SOURCE}": "github", "{RESOURCE}": "issues"}}.')
            _check_offset(offset)
        return True


def described(config: Mapping[str, str]) -> list[str]:
    """Return the names of the resources of a config's source. Blocks until they are made, for 45 s at most.

    Raises SourceError, and SourceUnreachableError.
    """
    reader = ReaderProcess({"config": dict(config), "describe": True})
    limit = threading.Timer(_MOST_SECONDS, reader.end)
    limit.start()
    try:
        for frame in reader.frames():
            if frame.kind == DESCRIBED:
                resources: list[str] = frame.head["resources"]
                return resources
    finally:
        limit.cancel()
        reader.end()
    raise SourceUnreachableError(f"The source was not made within {_MOST_SECONDS:.0f} s, so that its resources are not known.")


def _require_dlt() -> None:
    if importlib.util.find_spec("dlt") is None:
        raise MissingToolError(
            f"DltSource needs a Python package that is not installed (dlt). Run: {install_command('dlt')} in the Python "
            "environment of the tasks."
        )


def _add(found: dict[str, ValidatedValue], key: str, message: str) -> None:
    found.setdefault(key, ValidatedValue(key)).errors.append(message)


def _check_offset(offset: Offset) -> None:
    """Raise ConnectError for what is no offset of a resource."""
    if not offset or set(offset) - {_STATE, _SCHEMA}:
        raise ConnectError(f'An offset is {{"{_STATE}": "{{...}}", "{_SCHEMA}": "{{...}}"}}, both JSON objects as text.')
    for name, text in offset.items():
        try:
            is_object = isinstance(json.loads(str(text)), dict)
        except ValueError as error:
            raise ConnectError(f"The offset's {name} is no JSON: {error}") from error
        if not is_object:
            raise ConnectError(f"The offset's {name} must be a JSON object.")
