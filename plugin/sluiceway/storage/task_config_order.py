"""The order in which Connect writes the keys of a task's config. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway.java.hash_map import copied_table_size, grown_table_size, in_buckets


def task_config_order(config: Mapping[str, str], added: str) -> dict[str, str]:
    """Return a task's config in the order in which Connect writes it.

    Connect reads the connector's config into a HashMap key by key, copies it, puts the key ``added`` into the copy, and
    copies that once more. Keys that share a bucket come in the order in which they went in; so the given order has to be
    that of the stored connector config.
    """
    read = in_buckets([key for key in config if key != added], grown_table_size(len(config) - (added in config)))
    if added in config:
        read.append(added)
    return {key: config[key] for key in in_buckets(read, copied_table_size(len(config)))}
