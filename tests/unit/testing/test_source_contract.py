"""A valid source connector fulfills the contract, and each test of the contract detects a violation."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from sluiceway.api import ExactlyOnceSupport, Offset, Partition, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ConfigKey, Type, ValidatedValue
from sluiceway.config.validators import Range
from sluiceway.errors import ConnectError
from sluiceway.testing import SourceConnectorContract
from support.eventually import LIMIT

from .breaches import breaches

CONFIG = {"topic": "numbers", "secret": "sesame-open"}


class GoodTask(SourceTask):
    """Counts to four, two records at a time."""

    _open = False

    def start(self, config: Mapping[str, str]) -> None:
        values = GoodConnector.config_def().parse(config)
        self.topic = str(values["topic"])
        stored = self.context.offset_storage_reader.offset({"source": "numbers"})
        self.next = 1 if stored is None else stored["number"] + 1
        self._open = True

    def poll(self) -> Sequence[SourceRecord] | None:
        numbers = range(self.next, min(self.next + 2, 5))
        self.next = numbers.stop
        return [self.record(number) for number in numbers] or None

    def record(self, number: int) -> SourceRecord:
        return SourceRecord({"source": "numbers"}, {"number": number}, self.topic, f"n{number}")


class GoodConnector(SourceConnector):
    """Counts."""

    task_class: ClassVar[type[SourceTask]] = GoodTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            [
                ConfigKey(name="topic", type=Type.STRING, doc="Where to write."),
                ConfigKey(name="secret", type=Type.PASSWORD, doc="Opens the door."),
                ConfigKey(
                    name="step",
                    type=Type.INT,
                    default=1,
                    validator=Range(1),
                    dependents=("topic",),
                    doc="How far to count at a time.",
                ),
            ]
        )

    def start(self, config: Mapping[str, str]) -> None:
        self.config_def().parse(config)
        self.config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [dict(self.config)]


class UndocumentedConnector(GoodConnector):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return GoodConnector.config_def().define(ConfigKey(name="more", type=Type.INT, default=1))


class BadDefaultConnector(GoodConnector):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return GoodConnector.config_def().define(
            ConfigKey(name="more", type=Type.INT, default=0, validator=Range(1), doc="More.")
        )


class VersionlessConnector(GoodConnector):
    @classmethod
    def version(cls) -> str:
        return None  # type: ignore[return-value]


class PickyConnector(GoodConnector):
    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = super().validate(config)
        found["topic"].errors.append("I do not like it")
        return found


class CarelessConnector(GoodConnector):
    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        return {}


class RaisingValidationConnector(GoodConnector):
    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        cls.config_def().parse(config)
        return super().validate(config)


class IdleConnector(GoodConnector):
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return []


class GreedyConnector(GoodConnector):
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [dict(self.config)] * 3


class NumberConfigConnector(GoodConnector):
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, Any]]:
        return [{**self.config, "task": 0}]


class MoodyConnector(GoodConnector):
    calls = 0

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        self.calls += 1
        return [{**self.config, "call": str(self.calls)}]


class ChangingConfigConnector(GoodConnector):
    def start(self, config: Mapping[str, str]) -> None:
        config["topic"] = "another"  # type: ignore[index]
        super().start(config)


class SharingConfigConnector(GoodConnector):
    def start(self, config: Mapping[str, str]) -> None:
        self.config = config  # type: ignore[assignment]

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.config]


class StopsOnceConnector(GoodConnector):
    def stop(self) -> None:
        self.__dict__.pop("config", None)
        if self.__dict__.setdefault("stopped", False):
            raise ConnectError("Stopped already.")
        self.stopped = True


class StopNeedsStartConnector(GoodConnector):
    def stop(self) -> None:
        self.config.get("topic")


class UnpicklableError(ConnectError):
    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} in {where}")


class UnpicklableErrorConnector(GoodConnector):
    def start(self, config: Mapping[str, str]) -> None:
        if "topic" not in config:
            raise UnpicklableError("no topic", "the config")
        super().start(config)


class LoggingConnector(GoodConnector):
    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        logging.getLogger("test").debug("Started with %s", config)


class TellingConnector(GoodConnector):
    def __repr__(self) -> str:
        return f"TellingConnector({self.__dict__})"


class TellingValidationConnector(GoodConnector):
    @classmethod
    def validate(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = super().validate(config)
        if found["step"].errors:
            found["step"].errors.append(f"Bad config: {dict(config)}")
        return found


class EagerExactlyOnceConnector(GoodConnector):
    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return True  # type: ignore[return-value]


class SupportedConnector(GoodConnector):
    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED


class SilentAlterConnector(GoodConnector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        return None  # type: ignore[return-value]


class RefusesResetConnector(GoodConnector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        return all(offset["number"] for _, offset in offsets)  # type: ignore[index]


class ChangesOffsetsConnector(GoodConnector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        offsets.clear()  # type: ignore[attr-defined]
        return True


class GarbageInConnector(GoodConnector):
    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Partition, Offset | None]]) -> bool:
        if ({"no": "such"}, {"offset": "x"}) in offsets:
            raise KeyError("source")
        return True


class TopiclessTask(GoodTask):
    def record(self, number: int) -> SourceRecord:
        return super().record(number).new_record(topic="")


class TupleOffsetTask(GoodTask):
    def record(self, number: int) -> SourceRecord:
        return super().record(number).new_record(source_offset={"number": number, "at": (1, 2)})


class ListHeadersTask(GoodTask):
    def record(self, number: int) -> SourceRecord:
        return super().record(number).new_record(headers=[])


class DictsTask(GoodTask):
    def poll(self) -> Sequence[SourceRecord] | None:
        return [{"value": 1}]  # type: ignore[list-item]


class HangingTask(GoodTask):
    def poll(self) -> Sequence[SourceRecord] | None:
        if self.next == 5:
            threading.Event().wait(3)
        return super().poll()


class SharedOffsetTask(GoodTask):
    place: dict[str, int] | None = None

    def record(self, number: int) -> SourceRecord:
        self.place = self.place or {}
        self.place["number"] = number
        return super().record(number).new_record(source_offset=self.place)


class RaisingCommitTask(GoodTask):
    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        if offset < 0:
            raise ConnectError("No such offset.")


class LosingTask(GoodTask):
    """Sets offsets to the position after the records read ahead."""

    def record(self, number: int) -> SourceRecord:
        return super().record(number).new_record(source_offset={"number": self.next - 1, "record": number})


class ForgetfulTask(GoodTask):
    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self.next = 1


class StopsOnceTask(GoodTask):
    def stop(self) -> None:
        if self.__dict__.setdefault("stopped", False):
            raise ConnectError("Stopped already.")
        self.stopped = True


class StopNeedsStartTask(GoodTask):
    def stop(self) -> None:
        self.topic.upper()


def with_task(task: type[SourceTask]) -> type[SourceConnector]:
    connector = type(f"{task.__name__}Connector", (GoodConnector,), {"task_class": task, "__module__": __name__})
    globals()[connector.__name__] = connector
    return connector


def found(connector: type[SourceConnector], **attributes: Any) -> dict[str, str]:
    settings = {"record_count": 4, "records_within": LIMIT, "poll_within": LIMIT, **attributes}
    return breaches(SourceConnectorContract, CONFIG, connector_class=connector, **settings)


def test_a_valid_source_fulfills_the_contract() -> None:
    assert found(GoodConnector) == {}


HANGING, LOSING = with_task(HangingTask), with_task(LosingTask)
BROKEN: list[tuple[type[SourceConnector], str, str]] = [
    (UndocumentedConnector, "test_every_option_is_documented", "option more: has no documentation"),
    (BadDefaultConnector, "test_every_option_is_documented", "default that its own type or validator refuses"),
    (VersionlessConnector, "test_the_version_is_a_text", "returned None"),
    (PickyConnector, "test_a_valid_config_is_found_valid", "I do not like it"),
    (CarelessConnector, "test_a_missing_required_option_is_reported", "no error if topic is missing"),
    (RaisingValidationConnector, "test_validation_reports_and_does_not_raise", "raised ConfigError"),
    (IdleConnector, "test_there_are_one_to_max_tasks_with_configs_of_texts", "returned 0 configs"),
    (GreedyConnector, "test_there_are_one_to_max_tasks_with_configs_of_texts", "returned 3 configs"),
    (NumberConfigConnector, "test_there_are_one_to_max_tasks_with_configs_of_texts", "not strings"),
    (MoodyConnector, "test_there_are_one_to_max_tasks_with_configs_of_texts", "other configs at the second call"),
    (ChangingConfigConnector, "test_the_config_is_left_as_it_was", "changed"),
    (SharingConfigConnector, "test_the_config_is_left_as_it_was", "changed or returned the mapping"),
    (StopsOnceConnector, "test_stopping_twice_is_harmless", "Stopped already"),
    (StopNeedsStartConnector, "test_stopping_after_a_failed_start_is_harmless", "AttributeError"),
    (with_task(StopNeedsStartTask), "test_stopping_after_a_failed_start_is_harmless", "AttributeError"),
    (UnpicklableErrorConnector, "test_errors_pickle", "cannot be pickled"),
    (LoggingConnector, "test_secrets_are_not_shown", "shows the secret secret: Started with"),
    (TellingConnector, "test_secrets_are_not_shown", "TellingConnector({"),
    (TellingValidationConnector, "test_secrets_are_not_shown", "Bad config"),
    (EagerExactlyOnceConnector, "test_exactly_once_support_is_said", "returned True"),
    (SilentAlterConnector, "test_its_own_offsets_may_be_set_by_a_user", "returned None"),
    (RefusesResetConnector, "test_its_own_offsets_may_be_set_by_a_user", "raised TypeError"),
    (ChangesOffsetsConnector, "test_its_own_offsets_may_be_set_by_a_user", "changed the offsets"),
    (GarbageInConnector, "test_its_own_offsets_may_be_set_by_a_user", "raised KeyError"),
    (with_task(TopiclessTask), "test_records_have_a_topic_and_a_place_that_can_be_stored", "the topic ''"),
    (with_task(TupleOffsetTask), "test_records_have_a_topic_and_a_place_that_can_be_stored", "source_offset has 'at': (1, 2)"),
    (with_task(ListHeadersTask), "test_records_have_a_topic_and_a_place_that_can_be_stored", "headers []"),
    (with_task(DictsTask), "test_records_have_a_topic_and_a_place_that_can_be_stored", "returned [{'value': 1}]"),
    (HANGING, "test_an_idle_poll_returns_soon", "did not return within 0.2 s"),
    (with_task(SharedOffsetTask), "test_polled_records_are_not_changed_later", "changed a record after"),
    (with_task(RaisingCommitTask), "test_committing_what_was_polled_is_taken", "No such offset"),
    (LOSING, "test_a_restart_neither_loses_nor_repeats_records", "lost"),
    (with_task(ForgetfulTask), "test_a_restart_neither_loses_nor_repeats_records", "repeated"),
    (with_task(StopsOnceTask), "test_stopping_a_task_twice_is_harmless_and_ends_poll", "Stopped already"),
]


@pytest.mark.parametrize(("connector", "rule", "text"), BROKEN, ids=[f"{one[0].__name__}-{one[2]}" for one in BROKEN])
def test_a_violation_is_detected(connector: type[SourceConnector], rule: str, text: str) -> None:
    # These two end by the time that is up, and the fewer the seconds, the sooner.
    within = {"poll_within": 0.2} if connector is HANGING else {"records_within": 1.0} if connector is LOSING else {}
    failed = found(connector, only=rule, **within)
    assert text in failed.get(rule, "nothing"), failed


def test_every_test_of_the_contract_is_covered_by_a_violation() -> None:
    rules = {name for name in dir(SourceConnectorContract) if name.startswith("test_")}
    assert rules - {rule for _, rule, _ in BROKEN} == {"test_executors_find_the_classes_by_their_names"}


def test_a_class_that_executors_cannot_import_is_detected() -> None:
    class Hidden(GoodConnector):
        """Defined in a function."""

    assert "cannot import the class" in found(Hidden)["test_executors_find_the_classes_by_their_names"]


def test_a_source_that_may_repeat_must_not_support_exactly_once() -> None:
    assert list(found(SupportedConnector, may_repeat=True)) == ["test_exactly_once_support_is_said"]


def test_a_source_may_be_declared_to_repeat_or_not_to_resume() -> None:
    forgetful = with_task(ForgetfulTask)
    assert found(forgetful, may_repeat=True) == {}
    assert found(forgetful, resumable=False) == {}


def test_fewer_records_than_record_count_are_reported() -> None:
    assert (
        "returned 4 of 5 records within 0.1 s"
        in found(GoodConnector, record_count=5, records_within=0.1)["test_an_idle_poll_returns_soon"]
    )
