"""The loader's process: loads rows of one connector into a destination of dlt, as the task that started it says.

``python -m sluiceway.connectors.dlt.loader``, started by ``loader_process.py``. Each line of standard input is a request as
JSON, of which the first is the config; each is answered by a line of JSON, ``{"result": ...}`` or ``{"error": ...}``.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.connectors.dlt.child import child_output, is_transient
from sluiceway.connectors.dlt.sink_config import ARGS, DltSinkConfig
from sluiceway.errors import ConfigError

if TYPE_CHECKING:
    from sluiceway.connectors.dlt.destination import Destination

# Kinds of errors.
CONFIG, UNREACHABLE, FENCED, PENDING, FAILED = "config", "unreachable", "fenced", "pending", "failed"


def main() -> None:
    """Serve requests until standard input ends."""
    output = child_output()
    config: DltSinkConfig | None = None
    destination: Destination | None = None
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            if config is None:
                config = DltSinkConfig.of(request)
                from sluiceway.connectors.dlt.destination import Destination

                destination = Destination(config)
                destination.forget()
                answer: dict[str, Any] = {"result": str(destination.files)}
            else:
                assert destination is not None  # noqa: S101 (made with the config)
                answer = {"result": _served(destination, **request)}
        except BaseException as error:  # noqa: BLE001 (the outermost boundary; a destination's library may raise anything)
            answer = {"error": _told(error, config)}
        output.write(json.dumps(answer).encode() + b"\n")
        output.flush()
    os._exit(0)


def _served(destination: Destination, call: str, **more: Any) -> Any:
    if call == "open":
        return destination.open()
    if call == "names":
        return destination.names(more["names"], table=more["table"])
    if call == "load":
        destination.load(more["tables"], more["expected"], more["offsets"])
        return destination.described()
    if call == "offsets":
        return destination.set_offsets(more["offsets"])
    raise ValueError(f"There is no call {call}.")


def _told(error: BaseException, config: DltSinkConfig | None) -> dict[str, str]:
    """Return an error without secrets, and write its trace into the log."""
    from dlt.common.configuration.exceptions import ConfigFieldMissingException
    from dlt.common.exceptions import TransientException
    from dlt.pipeline.exceptions import PipelineStepFailed

    from sluiceway.connectors.dlt.destination import FencedLoadError, PendingError
    from sluiceway.connectors.dlt.loading import hidden, secrets_of

    secrets = [] if config is None else [*config.secrets, *secrets_of(config.args)]
    sys.stderr.write(hidden("".join(traceback.format_exception(error)), secrets))
    sys.stderr.flush()
    if isinstance(error, ConfigError):
        return {"kind": CONFIG, "text": hidden(error.message or str(error), secrets), "key": error.name or ""}
    cause: BaseException = error
    if isinstance(error, PipelineStepFailed) and error.exception is not None:
        cause = error.exception
    kind = FAILED
    if isinstance(cause, ConfigFieldMissingException):
        return {"kind": CONFIG, "text": f"has no value for {', '.join(cause.fields)}", "key": ARGS}
    if isinstance(cause, FencedLoadError):
        kind = FENCED
    elif isinstance(cause, PendingError):
        kind = PENDING
    elif isinstance(cause, TransientException) or is_transient(cause):
        kind = UNREACHABLE
    text = str(cause) if isinstance(cause, (FencedLoadError, PendingError)) else f"{type(cause).__name__}: {cause}"
    return {"kind": kind, "text": hidden(text, secrets), "key": ""}


def of_error(told: Mapping[str, str]) -> tuple[str, str, str]:
    """Return the kind, the text, and the key of an error in an answer."""
    return told["kind"], told["text"], told.get("key", "")


if __name__ == "__main__":
    main()
