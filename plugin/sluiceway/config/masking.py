"""Hides secrets in connector configs: by the declared types of keys, then by their names, then by their values. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from sluiceway.config.password import HIDDEN

# The page uses these two patterns, so they are written as Python and JavaScript read them alike, and ignore case.
HIDDEN_NAMES = (
    r"passw|pwd|secret|token|credential|jaas|passphrase|signature|authorization|cookie"
    r"|(?:private|api|access|account|shared|encryption)[._-]?key|(?:^|[._-])key\.pem$|keystore\.key$"
    r"|(?:^|[._-])(?:pass|pw|sas|sig)(?:$|[._-])|basic[._-]auth(?:$|\.user\.info)|(?:^|[._-])userinfo$"
)
SHOWN_NAMES = r"\.(?:url|uri|location|class|file|method|name|source|provider)$|keyname$|token\.endpoint"

_SECRET = re.compile(HIDDEN_NAMES, re.IGNORECASE)
_NOT_SECRET = re.compile(SHOWN_NAMES, re.IGNORECASE)
_ONLY_REFERENCES = re.compile(r"(\$\{[^}]*\})+")
_REFERENCE = re.compile(r"\$\{[^}]{0,1000}\}")
_FILLER = "\0"  # in place of references, which are no secrets
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
# A name with its separator: ?password=, ;AccountKey=, password="x" of JAAS, "password": "x" of JSON, Authorization: Bearer x.
_NAMED = re.compile(r"(?<![\w.-])([\w.-]+)[\"']?[ \t]{0,8}([=:])[ \t]{0,8}(?!//)")
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|\{(?:[^}]|\}\})*\}?""", re.DOTALL)
_UNQUOTED = {"=": re.compile(r"[^&;\s]+"), ":": re.compile(r"[^\n]+")}
# What a user and password follow. Those of Oracle are user/password@host, without "//" before them.
_AUTHORITY = re.compile(r"://|jdbc:oracle:\w{1,20}:")
_END = re.compile(r"[\s\"']|$")

_Span = tuple[int, int]


def is_secret(key: str) -> bool:
    """Return whether the name of a config key indicates a secret value."""
    return bool(_SECRET.search(key)) and not _NOT_SECRET.search(key)


def shown(key: str, value: str, passwords: Container[str] = ()) -> str:
    """Replace a secret value, or the secrets in another value, with ``[hidden]``. References to secrets are kept.

    ``passwords`` are the keys that are declared with type password.
    """
    return _replaced(value, _secrets(key, value, passwords), lambda _: HIDDEN)


def masked(config: Mapping[str, str], passwords: Container[str] = ()) -> dict[str, str]:
    """Return a config with hidden secrets. ``passwords`` as in ``shown``."""
    return {key: shown(key, value, passwords) for key, value in config.items()}


def literal_secrets(config: Mapping[str, str], passwords: Container[str] = ()) -> set[str]:
    """Return the texts that ``masked`` hides, so that they can be hidden elsewhere too, such as in a log."""
    return {value[begin:end] for key, value in config.items() for begin, end in _secrets(key, value, passwords)}


def _secrets(key: str, value: str, passwords: Container[str]) -> list[_Span]:
    """Return where a value has secrets, in order and apart from each other. Takes linear time: a value may have a megabyte."""
    if key in passwords or is_secret(key):
        return [] if not value or _ONLY_REFERENCES.fullmatch(value) else [(0, len(value))]
    if _PRIVATE_KEY.search(value):
        return [(0, len(value))]
    text = _REFERENCE.sub(lambda found: _filled(found[0]), value)
    spans = list(_assigned(text))
    text = _replaced(text, spans, _filled)  # an "@" in a password ends no user information
    return _merged(sorted([*spans, *_user_infos(text)]))


def _replaced(text: str, spans: Iterable[_Span], by: Callable[[str], str]) -> str:
    """Return a text with each span replaced by what ``by`` returns for it."""
    parts, done = [], 0
    for begin, end in spans:
        parts += [text[done:begin], by(text[begin:end])]
        done = end
    return "".join([*parts, text[done:]])


def _filled(text: str) -> str:
    return _FILLER * len(text)


def _assigned(text: str) -> Iterator[_Span]:
    """Yield the values of names that indicate secrets, as in URLs, connection strings, JAAS, JSON, and HTTP headers."""
    done = 0
    for found in _NAMED.finditer(text):
        if found.start() < done or not is_secret(found[1]):
            continue
        value = _QUOTED.match(text, found.end()) or _UNQUOTED[found[2]].match(text, found.end())
        if value is not None and value[0].strip(f"{_FILLER}\"'{{}}"):
            done = value.end()
            yield value.span()


def _user_infos(text: str) -> Iterator[_Span]:
    """Yield each user with a password before an "@". A password may have "/" and "@" in it, so the last "@" counts."""
    at = 0
    while (found := _AUTHORITY.search(text, at)) is not None:
        begin = found.end()
        end = _END.search(text, begin)
        last = text.rfind("@", begin, end.start() if end is not None else len(text))
        _, separator, password = text[begin : max(begin, last)].partition(":" if found[0] == "://" else "/")
        if separator and password.strip(_FILLER):
            yield begin, last
        at = last + 1 if last >= 0 else (end.start() if end is not None else len(text))


def _merged(spans: list[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged
