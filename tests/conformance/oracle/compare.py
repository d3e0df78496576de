"""Runs generated questions through Kafka Connect and Sluiceway, and prints the differences.

Run: python tests/conformance/oracle/compare.py --seed 1 --count 2000

Prints each class of difference with its count and an example, then the rate. The exit code is 1 if more than 0.5 % differ.
``--keep FILE`` writes the questions that differ as vectors with Connect's results.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.answer import answer
from conformance.compare_vectors import check
from conformance.oracle.ask import ask
from conformance.oracle.generate import KINDS, generate, parser

Json = Any
LIMIT = 0.005


def _message(expect: Json) -> str:
    return str(expect.get("error", {}).get("message"))


#: Deliberate differences, by reason.
DELIBERATE: dict[str, Callable[[Json, Json], bool]] = {
    "bytes in a text are Java's identity hash, another one in each run": lambda expect, _ours: (
        b"[B@" in base64.b64decode(expect.get("bytes") or "").replace(b"\0", b"")
    ),
    "the message lists the connectors that are installed": lambda expect, _ours: "available connectors are: " in _message(expect),
    "the message shows options that may be secret": lambda _expect, ours: "[hidden]" in _message(ours),
}


def differences(vectors: list[Json], level: str) -> list[tuple[Json, list[str]]]:
    """Return the vectors with different results, and the differences."""
    found = []
    for vector in vectors:
        ours = answer(vector)
        if any(applies(vector["expect"], ours) for applies in DELIBERATE.values()):
            continue
        try:
            unlike = check(vector, ours, level)
        except Exception as error:  # noqa: BLE001 (the comparator takes two answers of one form for granted)
            unlike = [f"not comparable: {error!r}"]
        if unlike:
            found.append((vector, unlike))
    return found


def class_of(vector: Json, unlike: list[str]) -> str:
    """Return a key for differences of one cause: the kind of vector, and the text without numbers and names."""
    parts = [str(option).rsplit(".", 1)[-1] for name, option in vector.get("config", {}).items() if name.endswith(".type")]
    asked = "+".join(sorted(set(parts))[:2]) if vector["kind"] == "transform" else vector["category"]
    return f"{asked}: {re.sub(r'[0-9]+|(?<=: ).{120,}', '#', unlike[0])[:160]}"


def main() -> int:
    options = parser()
    options.add_argument("--level", choices=("outcome", "class", "message"), default="message")
    options.add_argument("--keep", type=Path, help="write the vectors that differ to this file")
    given = options.parse_args()
    logging.disable(logging.CRITICAL)
    vectors = ask(list(generate(given.seed, given.count, given.kind or tuple(KINDS))))
    found = differences(vectors, given.level)
    classes = defaultdict(list)
    for vector, unlike in found:
        classes[class_of(vector, unlike)].append((vector, unlike))
    for name, members in sorted(classes.items(), key=lambda item: -len(item[1])):
        vector, unlike = members[0]
        print(f"{len(members)} x {name}\n    {vector['id']}: {'; '.join(unlike)[:400]}")
    if given.keep:
        given.keep.write_text("".join(json.dumps(vector) + "\n" for vector, _ in found))
    rate = len(found) / max(len(vectors), 1)
    print(
        f"{len(found)} of {len(vectors)} answers differ ({rate:.2%}); {given.count - len(vectors)} questions could not be asked"
    )
    return int(rate > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
