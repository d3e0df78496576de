"""Generates questions like the recorded ones; a seed always gives the same questions.

Run: python tests/conformance/oracle/generate.py --seed 1 --count 1000 > questions.jsonl
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.oracle import generate_configs, generate_converters, generate_transforms

Json = Any

RECORDED = Path(__file__).parents[1] / "data" / "vectors.jsonl"
KINDS = {
    "transform": (generate_transforms, 0.6),
    "converter": (generate_converters, 0.33),
    "configdef": (generate_configs, 0.07),
}


def generate(seed: int, count: int, kinds: Sequence[str] = tuple(KINDS)) -> Iterator[Json]:
    """Yield ``count`` distinct questions of the given kinds, each with its own id."""
    random = Random(seed)  # noqa: S311 (the same again for the same seed)
    recorded = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").split("\n") if line]
    public = {kind: [vector for vector in recorded if vector["kind"] == kind] for kind in KINDS}
    seen: set[str] = set()
    while len(seen) < count:
        kind = random.choices(kinds, [KINDS[each][1] for each in kinds])[0]
        question = KINDS[kind][0].question(random, public[kind])
        digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:10]
        if digest not in seen:
            seen.add(digest)
            yield {"id": f"{question['category']}-{digest}", **question}


def parser() -> argparse.ArgumentParser:
    """Return a parser with the options of both commands."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--count", type=int, default=1000)
    made.add_argument("--kind", action="append", choices=list(KINDS), help="only questions of this kind; may be repeated")
    return made


if __name__ == "__main__":
    given = parser().parse_args()
    for made in generate(given.seed, given.count, given.kind or tuple(KINDS)):
        print(json.dumps(made))
