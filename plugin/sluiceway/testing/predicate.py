"""The contract of a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sluiceway.api import ConnectRecord, Predicate
from sluiceway.testing.checks import breach, fingerprint, no_error, outcome
from sluiceway.testing.options import ClosedContract
from sluiceway.testing.samples import all_records


class PredicateContract(ClosedContract):
    """Subclass as ``Test...``; set ``predicate_class`` and ``options`` (without ``predicates.<alias>.``).

    Override ``matching`` to return records for which the predicate must be true, and ``others`` for the opposite.
    """

    predicate_class: ClassVar[type[Predicate]]

    def matching(self) -> Sequence[ConnectRecord]:
        """Return records for which the predicate must be true."""
        return []

    def others(self) -> Sequence[ConnectRecord]:
        """Return records for which the predicate must be false."""
        return []

    def records(self) -> Sequence[ConnectRecord]:
        """Return records to test; new objects at each call."""
        return [*all_records(), *self.matching(), *self.others()]

    def subject(self) -> type[Predicate]:
        return self.predicate_class

    def test_the_answer_is_true_or_false_for_every_record(self) -> None:
        predicate = self.configured()
        nothing = {"key": None, "key_schema": None, "value": None, "value_schema": None}
        for record in [one for any_ in self.records() for one in (any_, any_.new_record(**nothing))]:
            advice = f"Return True or False for any record, such as {record!r} with a {type(record.value).__name__}"
            with no_error(self._where("test"), advice):
                answer = predicate.test(record)
            if not isinstance(answer, bool):
                breach(self._where("test"), f"returned {answer!r} for {record!r}", "Return a bool")

    def test_the_answer_is_as_the_author_says(self) -> None:
        predicate = self.configured()
        for expected, records in ((True, self.matching()), (False, self.others())):
            for record in records:
                if predicate.test(record) is not expected:
                    breach(
                        self._where("test"),
                        f"is not {expected} for {record!r}",
                        "Correct it, or matching() and others()",
                    )

    def test_the_answer_stays_the_same(self) -> None:
        used = self.configured()
        for record in self.records():
            first, again = outcome(used.test, record), outcome(used.test, record)
            if first != again or first != outcome(self.configured().test, record):
                breach(
                    self._where("test"),
                    f"returned another result for {record!r} at the second call",
                    "Keep no state between records",
                )

    def test_the_record_is_left_as_it_was(self) -> None:
        predicate = self.configured()
        for record in self.records():
            before = fingerprint(record)
            outcome(predicate.test, record)
            if fingerprint(record) != before:
                breach(self._where("test"), f"changed the record {record!r}", "Do not change the record")
