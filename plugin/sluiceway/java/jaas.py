"""Parses ``sasl.jaas.config``, a login module in the syntax of Java's login configuration. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sluiceway.errors import ConfigError

KEY = "sasl.jaas.config"

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/                                # between tokens
      | "(?P<double>(?:[^"\\\n]|\\.)*)" | '(?P<single>(?:[^'\\\n]|\\.)*)'
      | (?P<mark>[=;]) | (?P<word>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = {"required", "requisite", "sufficient", "optional"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module's class and options. ``repr`` hides the options, which hold secrets."""

    name: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def simple_name(self) -> str:
        """Return the class name without its package."""
        return self.name.rpartition(".")[2]


def parse_jaas(text: str) -> LoginModule:
    """Return the login module of ``<class> <flag> key="value" ... ;``; raises ConfigError, whose message hides the text."""
    *tokens, last = [*_tokens(text)] or [_END]
    if last != _END:
        raise _refused("it does not end with a semicolon")
    if _END in tokens:
        raise _refused("it holds several login modules, where one is needed")
    words = [token.text for token in tokens]
    if len(words) < 2 or words[1].lower() not in _FLAGS:
        raise _refused(f"the login module's class must be followed by one of {', '.join(sorted(_FLAGS))}")
    return LoginModule(words[0], _options(tokens[2:]))


class _Token(NamedTuple):
    text: str
    is_mark: bool = False


_EQUALS, _END = _Token("=", is_mark=True), _Token(";", is_mark=True)


def _options(tokens: list[_Token]) -> dict[str, str]:
    options: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        triple = tokens[at : at + 3]
        if [token == _EQUALS for token in triple] != [False, True, False]:
            raise _refused(f'option {at // 3 + 1} is not of the form key="value"')
        options[triple[0].text] = triple[2].text
    return options


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _refused(f"the quote at character {at + 1} is not closed")
        at = found.end()
        quoted = found["double"] if found["double"] is not None else found["single"]
        if quoted is not None:
            yield _Token(_ESCAPE.sub(_unescaped, quoted))
        elif found["mark"] or found["word"]:
            yield _Token(found[0], is_mark=bool(found["mark"]))


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _CONTROL.get(code, code)


def _refused(why: str) -> ConfigError:
    return ConfigError(
        f"Invalid value [hidden] for configuration {KEY}: {why}. It should read: <login module's class> required "
        'username="..." password="...";'
    )
