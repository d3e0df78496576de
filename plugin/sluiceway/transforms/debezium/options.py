"""Reads and checks options as Debezium does: from the raw text, with its own rules for booleans, lists and missing values."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type, Validator, Width
from sluiceway.data import java_text
from sluiceway.errors import ConfigError
from sluiceway.java.blanks import is_blank, trim
from sluiceway.java.hash_map import hash_map_order
from sluiceway.java.numbers import parse_integer
from sluiceway.java.regex import RegexError, compile_java
from sluiceway.transforms.debezium.errors import InvalidOptionsError
from sluiceway.transforms.util.mappings import java_split

log = logging.getLogger(__name__)

Check = Callable[["Options", str], str | None]
"""Returns what is wrong with the value of an option, or None. The arguments are all options and the option's name."""


class Option(NamedTuple):
    """The definition of an option. Debezium makes its checks when the transform is configured, not in ``ConfigDef``."""

    key: ConfigKey
    checks: tuple[Check, ...] = ()


def option(
    name: str,
    type_: Type,
    display_name: str,
    doc: str,
    *,
    default: str | None = None,
    importance: Importance = Importance.LOW,
    width: Width = Width.MEDIUM,
    group: str | None = None,
    order: int = 1,
    checks: tuple[Check, ...] = (),
    validator: Validator | None = None,
) -> Option:
    """Return the definition of an option. No option is required for ``ConfigDef``, and few have a validator in it."""
    key = ConfigKey(
        name=name,
        type=type_,
        default=default,
        importance=importance,
        doc=doc,
        group=group,
        order_in_group=order,
        width=width,
        display_name=display_name,
        validator=validator,
    )
    return Option(key, checks)


def config_def(options: Iterable[Option]) -> ConfigDef:
    """Return the definition as Connect's REST API shows it."""
    return ConfigDef(each.key for each in options)


class Options:
    """The options of one transform: its config, or the defaults of what the config does not have."""

    def __init__(self, definitions: Iterable[Option], config: Mapping[str, object]) -> None:
        self._definitions = {each.key.name: each for each in definitions}
        self._config = config

    def raw(self, name: str) -> str | None:
        """Return the text in the config, or None."""
        value = self._config.get(name)
        return None if value is None else str(value)

    def text(self, name: str) -> str | None:
        """Return the text in the config or the default."""
        raw = self.raw(name)
        if raw is not None:
            return raw
        default = self._definitions[name].key.default
        return None if default is None else str(default)

    def flag(self, name: str) -> bool:
        """Return a boolean; any text that is neither true nor false means the default."""
        given = trim(self.raw(name) or "").lower()
        if given in ("true", "false"):
            return given == "true"
        return self._definitions[name].key.default == "true"

    def integer(self, name: str) -> int:
        """Return an integer; the default for a text that is none."""
        try:
            return parse_integer(self.raw(name) or "", 32)
        except ValueError:
            return parse_integer(str(self._definitions[name].key.default), 32)

    def items(self, name: str) -> list[str]:
        """Return the trimmed elements of a list. An empty text is a list with one empty element."""
        text = self.text(name)
        return [] if text is None else [trim(each) for each in java_split(text, ",")]

    def __contains__(self, name: object) -> bool:
        return name in self._config

    def require_valid(self, names: Iterable[str] | None = None) -> None:
        """Raise ConfigError for the first invalid option, in the order of Java's HashMap. Checks all options by default."""
        checked = dict.fromkeys(self._definitions if names is None else names)
        for name in hash_map_order(checked):
            problem = next(self._problems(name), None)
            if problem is not None:
                raise ConfigError(name, self.raw(name), f"The '{name}' value is invalid: {problem}")

    def require_all_valid(self, names: Iterable[str] | None = None) -> None:
        """Log every invalid option and raise InvalidOptionsError if there is one. Checks all options by default."""
        valid = True
        for name in self._definitions if names is None else names:
            for problem in self._problems(name):
                value = self.text(name)
                shown = "" if value is None else f" '{value}'"
                log.error("The '%s' value%s is invalid: %s", name, shown, problem)
                valid = False
        if not valid:
            raise InvalidOptionsError("Unable to validate config.")

    def _problems(self, name: str) -> Iterator[str]:
        definition = self._definitions[name]
        type_check = _TYPE_CHECKS.get(definition.key.type)
        for check in (*((type_check,) if type_check else ()), *definition.checks):
            problem = check(self, name)
            if problem is not None:
                yield problem


def required(options: Options, name: str) -> str | None:
    """Check that there is a value."""
    value = options.text(name)
    return "A value is required" if value is None or is_blank(value) else None


def one_of(*allowed: str) -> Check:
    """Return the check for one of these values in any case."""

    def check(options: Options, name: str) -> str | None:
        value = options.text(name)
        return None if value is None or trim(value).lower() in allowed else not_one_of(allowed)

    return check


def not_one_of(allowed: Iterable[str]) -> str:
    """Return Debezium's message for a value that is none of these, which it lists in the order of Java's HashSet."""
    return f"Value must be one of {', '.join(hash_map_order(dict.fromkeys(allowed)))}"


def regular_expression(options: Options, name: str) -> str | None:
    """Check that a value is a Java regular expression."""
    value = options.text(name)
    problem = None if value is None else _regex_problem(value)
    return None if problem is None else f"A valid regular expressions is expected, but {problem}"


def regular_expressions(options: Options, name: str) -> str | None:
    """Check that a value is a list of Java regular expressions, in which a comma can be escaped."""
    value = options.text(name)
    for each in () if value is None else _split_expressions(value):
        problem = _regex_problem(each)
        if problem is not None:
            return f"A comma-separated list of valid regular expressions is expected, but {problem}"
    return None


def positive_integer(options: Options, name: str) -> str | None:
    """Check that a value is an integer above zero."""
    value = options.text(name)
    return None if value is None or (_is_integer(value) and int(value) > 0) else "A positive, non-zero integer value is expected"


def without_spaces(options: Options, name: str) -> str | None:
    """Check that no element of a list has a space in it."""
    has_space = name in options and any(" " in each for each in options.items(name))
    return "Element(s) containing space not permitted" if has_space else None


def without_empty_elements(options: Options, name: str) -> str | None:
    """Check that no element of a list is empty."""
    has_empty = name in options and "" in options.items(name)
    return "Empty string element(s) not permitted" if has_empty else None


def string_pairs(options: Options, name: str) -> str | None:
    """Check that each element of a list has two or three parts with colons between them."""
    value = options.text(name)
    elements = [] if value is None else java_split(value, ",")
    if all(len(java_split(each)) in (2, 3) for each in elements):
        return None
    return f"A comma-separated list of valid String pairs or trios is expected but got: {java_text(elements)}"


def _boolean(options: Options, name: str) -> str | None:
    value = options.text(name)
    return None if value is None or trim(value).lower() in ("true", "false") else "Either 'true' or 'false' is expected"


def _integer(options: Options, name: str) -> str | None:
    value = options.text(name)
    return None if value is None or _is_integer(value) else "An integer is expected"


_TYPE_CHECKS: Mapping[Type, Check] = {Type.BOOLEAN: _boolean, Type.INT: _integer}


def _is_integer(text: str) -> bool:
    try:
        parse_integer(text, 32)
    except ValueError:
        return False
    return True


def _regex_problem(pattern: str) -> str | None:
    try:
        compile_java(pattern)
    except RegexError as error:
        return str(error)
    return None


def _split_expressions(text: str) -> Iterator[str]:
    """Yield the trimmed expressions between commas that no backslash precedes."""
    part, escaped = "", False
    for character in text + ",":
        if character == "," and not escaped:
            if part:
                yield trim(part).replace("\\,", ",")
            part = ""
        else:
            part += character
        escaped = character == "\\" and not escaped
