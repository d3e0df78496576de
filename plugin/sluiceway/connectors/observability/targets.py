"""Finds the targets of PrometheusSource: from its config, and from Prometheus's files and URLs of targets. Runs on executors."""

from __future__ import annotations

import glob
import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import orjson

from sluiceway.connectors.observability.prometheus_config import FILES, SD_URL, TARGETS, PrometheusOptions, check_url
from sluiceway.connectors.shares import is_of_task
from sluiceway.errors import ConfigError, DataError

log = logging.getLogger(__name__)

INSTANCE = "instance"
_META = "__"
_MOST_FILE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """A target of scrapes. ``labels`` are those of all of its series, with ``job`` and ``instance``."""

    url: str
    labels: Mapping[str, str] = field(hash=False)

    @property
    def partition(self) -> dict[str, str]:
        """The source partition of its offsets."""
        return {"target": self.url}

    def phase(self, interval: int) -> int:
        """Return when in each interval the target is scraped, in milliseconds: stable, and spread over the targets."""
        return zlib.crc32(self.url.encode()) % interval

    def is_of(self, index: int, count: int) -> bool:
        """Return whether the task with this number scrapes the target."""
        return is_of_task(self.url, index, count)


def target_of(address: str, labels: Mapping[str, str], options: PrometheusOptions, source: str) -> Target:
    """Return the target of an address, which may be a URL. Raises ConfigError for one that is none.

    As in Prometheus, the labels ``__scheme__``, ``__metrics_path__`` and ``__param_<name>`` change the URL, and others that start
    with ``__`` are left out, as are labels without a value.
    """
    if "://" in address:
        check_url(source, address)
        parts = urlsplit(address)
        scheme, place, path = parts.scheme, parts.netloc, parts.path + (f"?{parts.query}" if parts.query else "")
        path = path or options.path
    else:
        check_url(source, f"http://{address}")
        scheme, place, path = options.scheme, address, options.path
    scheme, path = labels.get("__scheme__", scheme), labels.get("__metrics_path__", path)
    query = {key.removeprefix("__param_"): value for key, value in sorted(labels.items()) if key.startswith("__param_")}
    path = path if path.startswith("/") else f"/{path}"
    url = f"{scheme}://{place}{path}" + (f"{'&' if '?' in path else '?'}{urlencode(query)}" if query else "")
    check_url(source, url)
    own = {key: value for key, value in labels.items() if value and not key.startswith(_META)}
    return Target(url, {INSTANCE: place, **options.labels, **own})


def groups_of(content: Any, source: str) -> list[tuple[list[str], dict[str, str]]]:
    """Return the groups of addresses and labels of a discovery document. Raises DataError for one of another form."""
    if not isinstance(content, list):
        raise DataError(f"{source} is no list of groups of targets.")
    groups = []
    for group in content:
        targets, labels = (group.get("targets"), group.get("labels") or {}) if isinstance(group, dict) else (None, None)
        if not (isinstance(targets, list) and all(isinstance(each, str) for each in targets)):
            raise DataError(f"{source} has a group without a list of texts, targets.")
        if not (isinstance(labels, dict) and all(isinstance(each, str) for pair in labels.items() for each in pair)):
            raise DataError(f"{source} has a group whose labels are no texts.")
        groups.append((targets, labels))
    return groups


class Discovery:
    """Keeps the targets of one task. A source of targets that cannot be read keeps the last ones that it had.

    ``problem`` says which source cannot be read now, and why; None if all can be.
    """

    def __init__(self, options: PrometheusOptions) -> None:
        self._options = options
        self._found: dict[str, list[Target]] = {}
        self._problems: dict[str, str] = {}
        self._found[TARGETS] = [target_of(address, {}, options, TARGETS) for address in options.targets]

    @property
    def problem(self) -> str | None:
        return "; ".join(self._problems.values()) or None

    def read_files(self) -> None:
        """Read the files of targets."""
        seen = set()
        for pattern in self._options.files:
            names = sorted(glob.glob(pattern))  # noqa: PTH207 (a pattern may be absolute)
            if not names and not glob.has_magic(pattern):
                self._bad(pattern, f"{pattern} of {FILES} does not exist")
                seen.add(pattern)
            for name in names:
                seen.add(name)
                try:
                    self.take(name, _read(Path(name)))
                except (OSError, DataError) as error:
                    self._bad(name, f"{name} of {FILES} cannot be read: {error}")
        static = {TARGETS, self._options.sd_url}
        for name in set(self._found) | set(self._problems):
            if name not in seen and name not in static:
                self._found.pop(name, None)
                self._problems.pop(name, None)

    def take_answer(self, body: bytes | str) -> None:
        """Take the answer of the URL of targets, or a text that says why there is none."""
        url = self._options.sd_url
        assert url is not None  # noqa: S101 (only asked if there is one)
        try:
            if isinstance(body, str):
                raise DataError(body)
            self.take(url, orjson.loads(body))
        except (orjson.JSONDecodeError, DataError) as error:
            self._bad(url, f"{SD_URL} cannot be read: {error}")

    def take(self, source: str, content: Any) -> None:
        """Take a discovery document. Raises DataError for one that is not valid as a whole: the targets stay as they were."""
        try:
            targets = [
                target_of(address, labels, self._options, source)
                for addresses, labels in groups_of(content, source)
                for address in addresses
            ]
        except ConfigError as error:
            raise DataError(str(error)) from error
        self._found[source] = targets
        if self._problems.pop(source, None) is not None:
            log.info("%s can be read again", source)

    def targets(self) -> dict[str, Target]:
        """Return this task's targets by their URLs. Of several with one URL, the first counts."""
        found: dict[str, Target] = {}
        for source in self._found.values():
            for target in source:
                if target.is_of(self._options.index, self._options.count):
                    found.setdefault(target.url, target)
        return found

    def _bad(self, source: str, problem: str) -> None:
        if self._problems.get(source) != problem:
            kept = len(self._found.get(source, ()))
            log.warning("%s. Its last %d targets are kept.", problem, kept)
        self._problems[source] = problem


def _read(file: Path) -> Any:
    if file.stat().st_size > _MOST_FILE_BYTES:
        raise DataError(f"it has more than {_MOST_FILE_BYTES} bytes")
    content = file.read_bytes()
    if file.suffix == ".json":
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise DataError(f"it is no JSON: {error}") from error
    import yaml

    try:
        return yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise DataError(f"it is no YAML: {error}") from error


def merged(exposed: Mapping[str, str], own: Mapping[str, str], *, honor: bool) -> dict[str, str]:
    """Return the labels of a series: those that the target exposes and its own. Labels without a value are left out.

    Where both have a label, the exposed one is renamed ``exported_<label>``, or wins with ``honor``, as in Prometheus.
    """
    if honor:
        return {key: value for key, value in {**own, **exposed}.items() if value}
    labels = dict(own)
    for key, value in exposed.items():
        if not value:
            continue
        name = key
        while name in own or (name != key and name in exposed):
            name = f"exported_{name}"
        labels[name] = value
    return labels
