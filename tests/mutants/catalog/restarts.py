"""Restarts: what a request concerns, and when a failed or lost task starts again."""

from mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "restart-only-failed",
        "herder/restart_plan.py",
        "return not request.only_failed or state is State.FAILED",
        "return True",
        "A restart of failed instances restarts all.",
    ),
    Mutant(
        "restart-without-tasks",
        "herder/restart_plan.py",
        "if request.include_tasks else ()",
        "",
        "A restart of the connector restarts its tasks.",
    ),
    Mutant(
        "restart-one-task",
        "herder/restart_plan.py",
        "return RestartPlan(connector=False, tasks=(request.task,) if request.task in tasks else ())",
        "return RestartPlan(connector=True, tasks=(request.task,) if request.task in tasks else ())",
        "A restart of one task restarts the connector.",
    ),
    Mutant(
        "restart-unknown-task",
        "herder/restart_plan.py",
        "tasks=(request.task,) if request.task in tasks else ())",
        "tasks=(request.task,))",
        "A restart of a task that does not exist is planned.",
    ),
    Mutant(
        "restart-shown",
        "herder/restart_plan.py",
        "_restarting(status) if number in self.tasks else status for number, status in tasks.items()",
        "_restarting(status) for number, status in tasks.items()",
        "All tasks are shown as RESTARTING.",
    ),
    Mutant(
        "restart-policy-limit",
        "herder/restart_policy.py",
        "if used >= policy.max_restarts:",
        "if used > policy.max_restarts:",
        "A failed task is restarted once too often.",
    ),
    Mutant(
        "restart-policy-reset",
        "herder/restart_policy.py",
        "used = 0 if ran_for >= policy.reset_after else self.used",
        "used = self.used",
        "Failures that are days apart add up.",
    ),
    Mutant(
        "restart-policy-backoff",
        "herder/restart_policy.py",
        "pause_after(used + 1, policy.backoff_initial, policy.backoff_max)",
        'pause_after(used + 1, policy.backoff_initial, float("inf"))',
        "The back-off before a restart has no maximum.",
    ),
    Mutant(
        "restart-policy-off",
        "herder/restart_policy.py",
        "max_restarts=number(MAX_RESTARTS) if values[POLICY] == ON_FAILURE else 0,",
        "max_restarts=number(MAX_RESTARTS),",
        "Failed tasks restart without being asked to.",
    ),
    Mutant(
        "restart-changed-tasks",
        "herder/task_plan.py",
        "if number in present and not (keep_unchanged and dict(present[number]) == dict(config))",
        "if number in present",
        "A new set of task configs restarts tasks whose config is the same.",
    ),
    Mutant(
        "restart-gone-tasks",
        "herder/task_plan.py",
        "if number >= len(wanted)",
        "if number > len(wanted)",
        "A task that is no longer configured goes on.",
    ),
)
