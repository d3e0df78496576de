"""Writes the Spark settings of users for spark-submit to a file that only this user can read.

Any user of a machine can read command lines, and a task's log shows spark-submit's. Connectors' ``spark.*`` keys, an operator's
``conf`` and ``env_vars`` may hold secrets, so all of them are in the file.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import javaproperties

from sluiceway.config.environment import HANDED_OVER
from sluiceway.config.variables import referring_keys
from sluiceway.provider.driver.submit_plan import YARN_VARIABLE, SubmitPlan
from sluiceway.spark.redaction import REDACTION, redaction

Resolve = Callable[[Mapping[str, str]], dict[str, str]]
"""Returns settings with their references to config providers resolved."""


def with_settings_file(plan: SubmitPlan, file: Path, resolve: Resolve) -> SubmitPlan:
    """Write the settings of users over those that Spark would read from its own file; return the plan with the new file.

    References are resolved here if the settings stay on this machine or go to YARN, whose staging folder is the user's alone. A
    standalone master and Kubernetes show a driver's settings to others; there, the driver resolves them.
    """
    own = {key: str(plan.conf[key]) for key in plan.conf if key in plan.private}
    settings = {**plan.defaults, **own}
    if plan.connection.is_client_mode or plan.connection.is_yarn:
        settings |= resolve(own)
    settings.setdefault(REDACTION, redaction(referring_keys(own)))
    if plan.handed_over is not None and plan.connection.is_yarn:
        settings[YARN_VARIABLE.format(HANDED_OVER)] = _for_a_shell(plan.handed_over)
    text = javaproperties.dumps(settings, timestamp=False)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as opened:
        opened.write(text)
    return replace(plan, options=replace(plan.options, properties_file=str(file)))


def needs_settings_file(plan: SubmitPlan) -> bool:
    """Return whether a plan has settings of users, or values from Airflow that no environment brings to the driver."""
    return bool(plan.private & plan.conf.keys()) or (plan.handed_over is not None and plan.connection.is_yarn)


def _for_a_shell(text: str) -> str:
    """Return a value in Base64: YARN writes variables into a shell script in double quotes without escaping them.

    Quotes end there, and ``$`` is expanded.
    """
    return base64.b64encode(text.encode()).decode()
