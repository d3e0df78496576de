"""The contract for options of transforms, predicates and converters."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, ClassVar

from sluiceway.config.definition import ConfigDef
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.testing.checks import (
    breach,
    check_documented,
    check_found_by_name,
    no_error,
    only_these_errors,
    required_keys,
)

_UNKNOWN = "not.an.option.of.this.class"


class OptionsContract:
    """Tests of a class that is created by name and configured once.

    ``options`` is a valid configuration, without the prefix ``transforms.<alias>.``.
    """

    options: ClassVar[Mapping[str, str]] = {}

    def subject(self) -> type[Any]:
        """Return the class under test."""
        raise NotImplementedError

    def definition(self) -> ConfigDef:
        """Return the definition of the options."""
        definition: ConfigDef = self.subject().config_def()
        return definition

    def configured(self, options: Mapping[str, str] | None = None) -> Any:
        """Return a new configured instance."""
        instance = self.subject()()
        self.configure(instance, dict(self.options if options is None else options))
        return instance

    def configure(self, instance: Any, options: Mapping[str, str]) -> None:
        """Configure an instance."""
        instance.configure(options)

    def test_another_process_finds_the_class_by_its_name(self) -> None:
        check_found_by_name(self.subject())

    def test_every_option_is_documented(self) -> None:
        check_documented(self.subject().__name__, self.definition())

    def test_the_sample_options_are_valid(self) -> None:
        advice = "Set valid options, or let config_def() and configure() accept the same values"
        with no_error(f"{self.subject().__name__}.config_def()", advice):
            self.definition().parse(self.options)
        with no_error(self._where("configure"), advice):
            self.configured()

    def test_unknown_options_are_ignored(self) -> None:
        with no_error(self._where("configure"), "Ignore unknown options, like Connect: they may belong to another version"):
            self.configured({**self.options, _UNKNOWN: "x"})

    def test_a_missing_required_option_is_refused(self) -> None:
        for key in required_keys(self.definition()):
            rest = {name: value for name, value in self.options.items() if name != key.name}
            advice = f"Parse the options with config_def().parse(options), which raises ConfigError if {key.name} is missing"
            with only_these_errors(self._where("configure"), (ConnectError,), advice):
                self.configured(rest)
                breach(self._where("configure"), f"accepted options without {key.name}, which is required", advice)

    def test_the_options_are_left_as_they_were(self) -> None:
        options = dict(self.options)
        self.configure(self.subject()(), options)
        if options != dict(self.options):
            breach(self._where("configure"), "changed the mapping that it was given", "Copy it: dict(options)")

    def _where(self, method: str) -> str:
        return f"{self.subject().__name__}.{method}()"


class ClosedContract(OptionsContract):
    """Tests of a class with a ``close`` method."""

    def test_closing_twice_is_harmless(self) -> None:
        instance = self.configured()
        with no_error(self._where("close"), "Let close() do nothing at the second call"):
            instance.close()
            instance.close()

    def test_closing_after_a_refused_configuration_is_harmless(self) -> None:
        instance = self.subject()()
        with contextlib.suppress(ConfigError):
            self.configure(instance, {})
        with no_error(self._where("close"), "Let close() release only what configure() has acquired"):
            instance.close()
