"""Fall-backs from columns to rows."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "fall-back-source",
        "runtime/source/worker_source_task.py",
        "                records = records.records()\n",
        "                return\n",
        "A source's batch that has no columnar form is lost.",
    ),
    Mutant(
        "fall-back-sink",
        "runtime/sink/sink_batches.py",
        "            return [SinkPart(messages, refusal=error.refusal._replace(schema=part.columns.value.schema))]",
        "            return [SinkPart(messages, dropped=True)]",
        "A sink's batch that transforms cannot handle as columns is dropped.",
    ),
    Mutant(
        "fall-back-sink-put",
        "runtime/sink/worker_sink_task.py",
        "                batch = self._batches.not_columnar(part, error)\n",
        "                return batch, 0.0\n",
        "A batch that a sink task refuses as columns is lost.",
    ),
    Mutant(
        "fall-back-attempts",
        "runtime/columns.py",
        "self._pause = min(max(1, self._pause * 2), _LONGEST_PAUSE)",
        "self._pause = 1_000_000",
        "After one batch that is not columnar, no more batches are tried as columns.",
    ),
    Mutant(
        "fall-back-attempts-success",
        "runtime/columns.py",
        "        self._pause, self._last = 0, _SINGLE",
        "        self._last = _SINGLE",
        "A batch of columns does not end the pause between attempts.",
    ),
    Mutant(
        "fall-back-few-records",
        "runtime/sink/sink_batches.py",
        "        if self._forms.always is None and len(messages) < FEWEST_RECORDS:",
        "        if self._forms.always is None and not messages:",
        "Small batches of a sink are handled as columns.",
    ),
    Mutant(
        "fall-back-headers",
        "runtime/sink/column_reader.py",
        "        if any(map(_HEADERS, run)):",
        "        if False and any(map(_HEADERS, run)):",
        "Records with headers lose them in batches of columns.",
    ),
    Mutant(
        "fall-back-timestamp-types",
        "runtime/sink/column_reader.py",
        "    if set(map(_first, pairs)) != {timestamp_type}:",
        "    if False:",
        "Records with timestamps of another type get the first record's type.",
    ),
    Mutant(
        "fall-back-subclass",
        "runtime/transforms/column_chain.py",
        "        if _ROW_FORM & vars(kind).keys():\n            return False",
        "        if False:\n            return False",
        "A subclass's own row form is ignored in batches of columns.",
    ),
    Mutant(
        "fall-back-predicate-parts",
        "runtime/transforms/column_chain.py",
        "starts: list[int] = [0, *pc.add(changes, 1).to_pylist(), batch.count]",
        "starts: list[int] = [0, *pc.add(changes, 0).to_pylist(), batch.count]",
        "A predicate's result is applied to the record before.",
    ),
    Mutant(
        "fall-back-several-batches",
        "runtime/source/column_encoder.py",
        "        if len(batches) > 1:  #",
        "        if len(batches) > 1 and not source:  #",
        "Of a source's batch that a predicate splits, only the first part is sent.",
    ),
    Mutant(
        "fall-back-row-errors",
        "runtime/sink/column_reader.py",
        "            return [SinkPart(run, refusal=error.refusal)]",
        "            return [SinkPart(run, dropped=True)]",
        "Messages that a converter does not read as columns are lost.",
    ),
)
