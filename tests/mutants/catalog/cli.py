"""The command's exit codes and what it refuses."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "cli-exit-status",
        "exit_codes.py",
        'return _OF_STATUS.get(getattr(error, "status", -1), FAILED)',
        "return FAILED",
        "Every error of the server has exit code 1.",
    ),
    Mutant(
        "cli-exit-invalid",
        "exit_codes.py",
        "    if isinstance(error, InvalidConfigError):\n        return REFUSED\n",
        "",
        "A config with errors has exit code 1.",
        tests=("tests/unit/cli/test_main.py",),
    ),
    Mutant(
        "cli-exit-unreachable",
        "exit_codes.py",
        "_OF_STATUS = {0: UNREACHABLE,",
        "_OF_STATUS = {0: FAILED,",
        "A server that cannot be reached has exit code 1.",
        tests=("tests/unit/cli/test_main.py", "tests/unit/cli/test_cli.py"),
    ),
    Mutant(
        "cli-exit-interrupted",
        "cli/main.py",
        "        return exit_codes.INTERRUPTED",
        "        return exit_codes.DONE",
        "Ctrl-C ends a command with success.",
    ),
    Mutant(
        "cli-exit-pipe",
        "cli/main.py",
        "    except BrokenPipeError:",
        "    except UnicodeError:",
        "A command whose reader has ended prints a traceback.",
    ),
    Mutant(
        "cli-diff-exit",
        "cli/apply.py",
        'return exit_codes.DIFFERENT if any(step.action != "keep" for step in steps) else exit_codes.DONE',
        "return exit_codes.DONE",
        "sluiceway diff always succeeds.",
    ),
    Mutant(
        "cli-validate-exit",
        "cli/validate.py",
        "return exit_codes.REFUSED if any(findings.errors for findings in found) else exit_codes.DONE",
        "return exit_codes.DONE",
        "sluiceway validate succeeds for a config with errors.",
    ),
    Mutant(
        "cli-dry-run",
        "cli/apply.py",
        '            say(f"Dry run: {summary(steps)}")\n            return code',
        '            say(f"Dry run: {summary(steps)}")',
        "sluiceway apply --dry-run makes the changes.",
    ),
    Mutant(
        "cli-dry-run-exit",
        "cli/apply.py",
        "return exit_codes.REFUSED if any(findings.errors for findings in found) else exit_codes.DONE",
        "return exit_codes.DONE",
        "sluiceway apply --dry-run succeeds for a config with errors.",
    ),
    Mutant(
        "cli-prune-nothing",
        "cli/diff.py",
        "    if prune and not files:",
        "    if False:",
        "sluiceway apply --prune of an empty folder deletes every connector.",
    ),
    Mutant(
        "cli-prune",
        "cli/diff.py",
        "gone = sorted(set(configs) - {file.name for file in files}) if prune else []",
        "gone = sorted(set(configs) - {file.name for file in files})",
        "sluiceway apply deletes connectors that the files do not have.",
    ),
    Mutant(
        "cli-hidden",
        "cli/diff.py",
        "            if value == HIDDEN:",
        "            if False:",
        "sluiceway apply stores the mask of a secret as its value.",
    ),
    Mutant(
        "cli-initial-state",
        "cli/apply.py",
        'if step.action == "create" and step.initial_state:',
        "if False and step.initial_state:",
        "sluiceway apply ignores a new connector's initial state.",
    ),
)
