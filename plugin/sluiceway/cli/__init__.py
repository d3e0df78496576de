"""The ``sluiceway`` command. Each subcommand is a module that imports what it needs only when it runs."""
