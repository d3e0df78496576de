"""Any value of any key of a config is accepted, or is an error of that config: no crash, hang, or lack of memory.

``CASES`` sets the number of cases (`make test-security`).
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from sluiceway.config.masking import masked
from sluiceway.config.variables import Resolver, references
from sluiceway.config.worker import WorkerConfig
from sluiceway.connectors.jdbc.dialects import parse_url
from sluiceway.discovery import installed_plugins
from sluiceway.errors import ConfigError
from sluiceway.java.regex import compile_java
from support.fuzz import fuzz, refused_cleanly

CONNECTORS = sorted(installed_plugins("sluiceway.connectors"), key=lambda each: each.__name__)
CHOSEN = [
    "",
    "1",
    "-1",
    "true",
    "a,b,,c",
    "[1,2)",
    "${env:X}",
    "0 0 31 2 *",
    "x" * 5000,
    "(a+)+",
    "//u:p@h/d",
    "9" * 400,
    "\ud83d",
]
TEXTS = st.text(max_size=30) | st.sampled_from(CHOSEN)
DICE = st.integers(0, 2**32).map(random.Random)


@fuzz("text", connector=st.sampled_from(CONNECTORS), chosen=DICE, text=TEXTS)
def test_configs_of_connectors(connector: Any, chosen: random.Random, text: str) -> None:
    definition = connector.config_def()
    names = [key.name for key in definition]
    config = {name: chosen.choice(CHOSEN) for name in chosen.sample(names, min(3, len(names)))} | {chosen.choice(names): text}
    found = definition.validate(config)
    assert set(names) <= set(found)
    with refused_cleanly(ConfigError):
        definition.parse(config)


@fuzz("config", config=st.dictionaries(st.sampled_from(sorted(WorkerConfig.of({}).values)), TEXTS, min_size=1, max_size=4))
def test_configs_of_workers(config: Any) -> None:
    with refused_cleanly(ConfigError):
        WorkerConfig.of({str(key): value for key, value in config.items() if isinstance(value, str)})


@fuzz("text", text=TEXTS | st.text("${}:a/", max_size=60))
def test_references_and_masks(text: str) -> None:
    resolver = Resolver.of({"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"})
    list(references({"a": text}))
    masked({"a": text, "password": text})
    resolver.errors(text)
    with refused_cleanly(ConfigError):
        resolver.resolve({"a": text})


@fuzz(
    "text",
    text=st.sampled_from(["jdbc:postgresql:", "jdbc:mysql:", "jdbc:sqlserver:", "jdbc:sqlite:", ""]).flatmap(
        lambda scheme: TEXTS.map(lambda rest: scheme + rest)
    ),
)
def test_urls_of_databases(text: str) -> None:
    with refused_cleanly(ConfigError):
        parse_url(text)


PATTERNS = st.text("ab[](){}*+?|\\^$.-,&pPLQE0123", max_size=20) | st.text(max_size=30) | st.sampled_from(["(a+)+", "[1,2)"])


@fuzz("text", text=PATTERNS)
def test_regular_expressions(text: str) -> None:
    with refused_cleanly(ValueError, ConfigError):
        compile_java(text)
