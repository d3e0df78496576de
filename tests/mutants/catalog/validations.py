"""Validation of configs."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "validation-range",
        "config/validators.py",
        "if self.high is not None and value > self.high:",
        "if self.high is not None and value > self.high + 1:",
        "A number above a key's maximum is accepted.",
    ),
    Mutant(
        "validation-one-of",
        "config/validators.py",
        "        if shown not in allowed:",
        "        if value is not None and shown not in allowed:",
        "Null is accepted for a key with a fixed set of values.",
    ),
    Mutant(
        "validation-unique",
        "config/validators.py",
        "if not self.allow_duplicates and len(set(value)) < len(value):",
        "if False:",
        "A list with duplicates is accepted.",
    ),
    Mutant(
        "validation-required",
        "config/definition.py",
        "        if isinstance(self.default, _NoDefault):\n            raise ConfigError(f'Missing",
        "        if False:\n            raise ConfigError(f'Missing",
        "A missing required key has another error.",
    ),
    Mutant(
        "validation-both-errors",
        "config/definition.py",
        "        if key.validator is not None:  # also for a value that could not be parsed: Kafka reports both errors",
        "        if key.validator is not None and not result.errors:",
        "Of a value that cannot be parsed, the validator's error is missing.",
    ),
    Mutant(
        "validation-integer-range",
        "config/parsing.py",
        "if number is None or not low <= number <= high:",
        "if number is None:",
        "A number beyond the range of its type is accepted.",
    ),
    Mutant(
        "validation-null",
        "herder/validation.py",
        '        validated.errors.append("Null value can not be supplied as the configuration value.")',
        "        pass",
        "A config with a null value is valid.",
    ),
    Mutant(
        "validation-name",
        "herder/validation.py",
        "if found is not None and found != name:",
        "if False:",
        "A config with another connector's name is accepted.",
    ),
    Mutant(
        "validation-topics",
        "herder/validation.py",
        "        _check_topics(config, found)\n",
        "",
        "A sink with both topics and topics.regex is accepted.",
    ),
    Mutant(
        "validation-group",
        "herder/client_overrides.py",
        "    if group != worker.group_id:\n        return",
        "    if group != worker.group_id or not config.get(GROUP):\n        return",
        "A sink whose name gives it the workers' consumer group is accepted.",
    ),
    Mutant(
        "validation-override-policy",
        "herder/override_policy.py",
        "if self.allowed is None or key in self.allowed:",
        "if True:",
        "The override policy None allows overrides.",
    ),
    Mutant(
        "validation-exactly-once",
        "herder/exactly_once.py",
        "        if not exactly_once_enabled(worker):",
        "        if False:",
        "exactly.once.support=required is accepted by a worker without it.",
    ),
    Mutant(
        "validation-substitute",
        "herder/validation.py",
        "raise InvalidConfigError(found.errors, substitutes.advice(config, worker))",
        "raise InvalidConfigError(found.errors)",
        "A config that Python refuses does not say that plugin.path has the Java class.",
        tests=("tests/unit/herder/test_substitutes.py",),
    ),
)
