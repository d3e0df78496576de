"""Finds the classes that a misspelled name in a config may mean, and adds them to errors about such names. No I/O.

The REST API has Connect's messages as they are; the command line and the operators add the question.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable

_KIND = re.compile(r"(?<=.)((S[oin]|Co)[a-z]+)+$")  # Source, Sink, Connector, Converter, Compaction, misspelled too
_SIMILAR = 0.65
_ALMOST_EQUAL = 0.9
_NO_CLASS = re.compile(r"for configuration (\S+): Class (.*) could not be found\.")
_NO_CONNECTOR = re.compile(r"which name matches (\S+), available connectors are: (.*)")


def similar_classes(name: str, known: Iterable[str]) -> list[str]:
    """Return the known classes that are most like a name, in the form in which a config can have them: none, one, or variants.

    What they connect or convert must be alike, for all that is a source ends alike. A name without ``$Key`` or ``$Value`` gets
    both, which have full names only. Of others, a full name gets the full name.
    """
    outer, _, variant = _simple(name).partition("$")
    by_outer: dict[str, list[str]] = {}
    for each in sorted(known):
        by_outer.setdefault(_simple(each).partition("$")[0], []).append(each)
    meant = _alike(outer, by_outer)
    if meant is None:
        return []
    variants = {each.rpartition("$")[2]: each for each in by_outer[meant] if "$" in each}
    if variants:
        return [variants[each] for each in (difflib.get_close_matches(variant, variants, n=1, cutoff=0) if variant else variants)]
    return difflib.get_close_matches(name, by_outer[meant], n=1, cutoff=0) if "." in name else [meant]


def question(name: str, known: Iterable[str]) -> str:
    """Return a question with the classes that a name may mean, with a blank before it; empty if none is alike."""
    classes = similar_classes(name, known)
    return f" Did you mean {' or '.join(classes)}?" if classes else ""


def with_similar_classes(text: str, known: Callable[[str], Iterable[str]]) -> str:
    """Return an error's text with a question behind each message about a class that does not exist.

    ``known`` returns the installed classes of a type, both named as in ``GET /connector-plugins``.
    """
    text = _NO_CLASS.sub(lambda found: f"{found[0]}{question(found[2], known(_type(found[1])))}", text)
    return _NO_CONNECTOR.sub(lambda found: f"{found[0]}.{connector_question(found[1], found[2])}", text)


def connector_question(name: str, available: str) -> str:
    """Return ``question`` for a connector and the list in the error about it: with the alias of the one that is alike."""
    return question(_simple(name), [_simple(each.strip()) for each in available.split(",")])


def _type(key: str) -> str:
    """Return the type of the plugins that a key names."""
    if key.startswith("transforms."):
        return "transformation"
    if key.startswith("predicates."):
        return "predicate"
    return "header_converter" if key == "header.converter" else "converter"


def _alike(name: str, known: Iterable[str]) -> str | None:
    """Return the known class that is most like a name, both without package and variant."""
    by_folded = {each.casefold(): each for each in known}
    if almost := difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=_ALMOST_EQUAL):
        return by_folded[almost[0]]
    by_system: dict[str, list[str]] = {}
    for each in by_folded.values():
        by_system.setdefault(_KIND.sub("", each).casefold(), []).append(each)
    systems = difflib.get_close_matches(_KIND.sub("", name).casefold(), by_system, n=1, cutoff=_SIMILAR)
    return difflib.get_close_matches(name, by_system[systems[0]], n=1, cutoff=0)[0] if systems else None


def _simple(name: str) -> str:
    return name.rpartition(".")[2]
