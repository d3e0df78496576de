"""Takes one record through a chain of transforms, and shows it after each. No I/O of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from sluiceway.api.transform import R
from sluiceway.preview.errors import ErrorPolicy
from sluiceway.preview.images import record_image
from sluiceway.runtime.errors.processing_context import Stage, class_name
from sluiceway.runtime.transforms.chain_config import TransformationStage
from sluiceway.runtime.transforms.transformation_chain import as_records, selects


@dataclass(slots=True)
class Passage(Generic[R]):
    """A record's way through a chain.

    ``steps`` has a JSON object for each transform, ``records`` are those after the last, and ``error`` is that of a failed one.
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    records: Sequence[R] = ()
    error: dict[str, Any] | None = None


def pass_through(stages: Sequence[TransformationStage], record: R, policy: ErrorPolicy) -> Passage[R]:
    """Return a record's way through transforms, one after the other. It ends with the transform that drops or refuses it."""
    passage: Passage[R] = Passage(records=[record])
    images = [record_image(record)]
    for stage in stages:
        if not passage.records:
            break
        after: list[R] = []
        step: dict[str, Any] = {"transform": stage.alias, "class": class_name(type(stage.transform))}
        passage.steps.append(step)
        selected = False
        try:
            for each in passage.records:
                if selects(stage, each):
                    selected = True
                    after += as_records(stage.transform.apply(each))
                else:
                    after.append(each)
        except Exception as error:  # noqa: BLE001 (as in a running task, any error of a transform is its record's)
            passage.error = policy.image(error, Stage.TRANSFORMATION.name, type(stage.transform), stage.alias)
            step["outcome"] = "failed"
            passage.records = ()
            break
        before, images = images, [record_image(each) for each in after]
        clipped = any("clipped" in image for image in images) and list(after) != list(passage.records)
        step["outcome"] = _outcome(before, images, selected=selected, may_differ=clipped)
        if step["outcome"] == "changed":
            step["records"] = images
        passage.records = after
    return passage


def _outcome(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], *, selected: bool, may_differ: bool) -> str:
    """Return a step's outcome. ``may_differ``: equal images may be of different records, because they are clipped."""
    if not selected:
        return "not selected"
    if not after:
        return "dropped"
    return "unchanged" if after == before and not may_differ else "changed"
