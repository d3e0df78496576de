"""Checks a connector's config before it is stored. Pure apart from what a connector's own ``validate`` does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from sluiceway.api import Connector
from sluiceway.config.connector import CONNECTOR, CONNECTOR_CLASS, NAME, SINK, TASKS_MAX, TOPICS, TOPICS_REGEX
from sluiceway.config.definition import ConfigDef, Type, ValidatedValue, parse_value
from sluiceway.config.password import HIDDEN
from sluiceway.discovery import connector_class, converter_class, is_sink, load, plugins
from sluiceway.errors import BadRequestError, ConfigError, InvalidConfigError, NotFoundError

DLQ_TOPIC = "errors.deadletterqueue.topic.name"

# Shown in messages about a config whose class, and with it the knowledge of which keys are secret, is missing.
_HARMLESS = {NAME, CONNECTOR_CLASS, TASKS_MAX, TOPICS, TOPICS_REGEX, "topic", "file"}
_JAVA_BLANKS = "".join(map(chr, range(0x21)))


def trimmed(name: str | None) -> str:
    """Return a name as Connect takes it from a request: without blanks and control characters around it."""
    return (name or "").strip(_JAVA_BLANKS)


def named(name: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return a config with its name in it, last if it was missing. Raises BadRequestError if it says another name."""
    found = config.get(NAME, name)
    if found != name:
        raise BadRequestError(f"Connector name configuration ({found}) doesn't match connector name in the URL ({name})")
    return {**config, NAME: name}


def check(config: Mapping[str, str]) -> None:
    """Return if a connector may be made from a config.

    Raises InvalidConfigError with all findings, or BadRequestError if there is no class to ask. Neither shows the value
    of a key that is or may be secret.
    """
    errors = list(problems(_named_class(config), config))
    if errors:
        raise InvalidConfigError(errors)


def problems(connector: type[Connector], config: Mapping[str, str]) -> Iterator[str]:
    """Yield everything that is wrong with a config, Connect's own keys first."""
    yield from _errors(CONNECTOR.validate(config).values())
    for key in ("key.converter", "value.converter"):
        yield from _converter_problems(key, config)
    yield from _transform_problems(config)
    if is_sink(connector):
        yield from _errors(SINK.validate(config).values())
        yield from _topics_problems(config)
    yield from _errors(finding for name, finding in connector.validate(config).items() if name not in CONNECTOR)


def _named_class(config: Mapping[str, str]) -> type[Connector]:
    if CONNECTOR_CLASS not in config:
        shown = ", ".join(f"{key}={value if key in _HARMLESS else HIDDEN}" for key, value in config.items())
        raise BadRequestError(f"Connector config {{{shown}}} contains no connector type")
    try:
        connector = connector_class(config[CONNECTOR_CLASS].strip())
        is_sink(connector)  # raises for a class that is neither
    except (NotFoundError, ConfigError) as error:
        raise BadRequestError(str(error)) from error
    return connector


def _errors(findings: Iterable[ValidatedValue]) -> Iterator[str]:
    for finding in findings:
        yield from finding.errors


def _converter_problems(key: str, config: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with the connector's own converter and its options; the worker's is not its business."""
    if key not in config:
        return
    try:
        converter = converter_class(config[key].strip())
    except ConfigError as error:
        yield str(ConfigError(key, config[key], str(error)))
        return
    yield from _errors(_validate_below(f"{key}.", converter.config_def(), config))


def _validate_below(prefix: str, definition: ConfigDef, config: Mapping[str, str]) -> Iterable[ValidatedValue]:
    options = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    return definition.validate(options).values()


def _transform_problems(config: Mapping[str, str]) -> Iterator[str]:
    """Yield transforms and predicates that do not exist: what cannot be applied must not be left out in silence."""
    for kind, group in (("transforms", "sluiceway.transforms"), ("predicates", "sluiceway.predicates")):
        for alias in _list(config, kind):
            key = f"{kind}.{alias}.type"
            if key not in config:
                yield f'Missing required configuration "{key}" which has no default value.'
            elif not _exists(group, config[key].strip()):
                yield str(ConfigError(key, config[key], f"Class {config[key]} could not be found."))


def _exists(group: str, name: str) -> bool:
    for alias, plugin in plugins(group).items():
        java_class = getattr(plugin, "java_class", None) or ""
        if name and name in (alias, java_class, java_class.rpartition(".")[2]):
            return True
    try:
        return isinstance(load(name), type)
    except NotFoundError:
        return False


def _topics_problems(config: Mapping[str, str]) -> Iterator[str]:
    topics, regex = _list(config, TOPICS), config.get(TOPICS_REGEX, "").strip()
    dead_letters = config.get(DLQ_TOPIC, "").strip()
    both_keys = 2  # Connect reports it on each of the two keys
    if topics and regex:
        yield from [f"{TOPICS} and {TOPICS_REGEX} are mutually exclusive options, but both are set."] * both_keys
    elif not topics and not regex:
        yield from [f"Must configure one of {TOPICS} or {TOPICS_REGEX}"] * both_keys
    if not all(topics):
        yield f"Configuration '{TOPICS}' values must not be empty."
    if len(set(topics)) < len(topics):
        yield f"Configuration '{TOPICS}' values must not be duplicated."
    if dead_letters and dead_letters in topics:
        shown = f"{TOPICS}=[{', '.join(topics)}]"
        yield f"The DLQ topic '{dead_letters}' may not be included in the list of topics ('{shown}') consumed by the connector"
    if regex:
        yield from _regex_problems(regex, dead_letters)


def _regex_problems(regex: str, dead_letters: str) -> Iterator[str]:
    try:
        pattern = re.compile(regex)
    except re.error as error:
        yield str(ConfigError(TOPICS_REGEX, regex, f"Invalid regex: {error}"))
        return
    if dead_letters and pattern.fullmatch(dead_letters):
        yield (
            f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics "
            f"('{TOPICS_REGEX}={regex}') consumed by the connector"
        )


def _list(config: Mapping[str, str], key: str) -> list[str]:
    value = parse_value(key, config.get(key, ""), Type.LIST)
    return value if isinstance(value, list) else []
