"""The ``sluiceway`` command. Each subcommand is a module and imports its dependencies only when it runs."""
