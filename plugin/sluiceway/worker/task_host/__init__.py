"""Lets many small tasks share a Python worker process, their task host.

The driver tells a host which tasks to run, and the host tells the driver how they are, in two records of the status topic that
each of them rewrites (``messages``). So a host needs no port and no connection besides those to Kafka. ``task_hosts`` runs on
the driver, ``host`` and what it imports on an executor.
"""
