"""Reads Airflow's Spark connection: the master, the deploy mode, and how to log in."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.folders import cache_home, write_atomically
from sluiceway.provider.compat import AirflowFailException
from sluiceway.provider.driver.kubernetes import NAMESPACE
from sluiceway.provider.driver.submit_options import SubmitOptions

MASTER = "spark.master"

_BINARY = "spark-submit"
_BINARIES = (_BINARY, "spark2-submit", "spark3-submit")  # an editor of connections must not choose which program runs
_STANDALONE = "spark://"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkConnection:
    """Where and how a driver is submitted."""

    master: str
    deploy_mode: str | None = None
    binary: str = _BINARY
    queue: str | None = None
    namespace: str | None = None
    """The namespace on Kubernetes."""
    principal: str | None = None
    keytab: str | None = field(default=None, repr=False)
    """The keytab's path."""
    rest_scheme: str = "http"
    rest_port: int = 6066
    """The port of a standalone master's REST API."""
    resource_manager: str | None = None
    """The address of YARN's resource manager's REST API."""

    @classmethod
    def parse(cls, conn_id: str, found: Any, options: SubmitOptions, conf: Mapping[str, Any]) -> SparkConnection:
        """Return what a connection and the operator's options say; the options win.

        Args:
            conn_id: the connection's id, for messages.
            found: Airflow's connection; None if there is none, in which case ``conf`` must have the master.
            options: the operator's options.
            conf: Spark settings. Their master and namespace win.

        Raises:
            AirflowFailException: an extra is invalid.
        """
        extra: Mapping[str, Any] = {} if found is None else found.extra_dejson
        if extra.get("spark-home"):
            raise _invalid(conn_id, "spark-home", f"put one of {', '.join(_BINARIES)} on the PATH and name it in 'spark-binary'")
        principal = options.principal or extra.get("principal")
        return cls(
            master=str(conf.get(MASTER) or _master(found)),
            deploy_mode=options.deploy_mode or extra.get("deploy-mode"),
            binary=options.spark_binary or _binary(conn_id, extra),
            queue=options.yarn_queue or extra.get("queue"),
            namespace=conf.get(NAMESPACE) or extra.get("namespace"),
            principal=_own_principal(principal) if options.use_krb5ccache else principal,
            keytab=options.keytab or _keytab_file(conn_id, extra.get("keytab")),
            rest_scheme=extra.get("rest-scheme") or "http",
            rest_port=_port(conn_id, extra),
            resource_manager=_with_scheme(extra.get("yarn_resourcemanager_webapp_address")),
        )

    @property
    def is_local(self) -> bool:
        """Return whether the whole Spark application runs on this machine."""
        return self.master.startswith("local")

    @property
    def is_yarn(self) -> bool:
        """Return whether the master is YARN, also in Airflow's form ``yarn://...``."""
        return self.master.startswith("yarn")

    @property
    def is_kubernetes(self) -> bool:
        return self.master.startswith("k8s")

    @property
    def is_standalone(self) -> bool:
        return self.master.startswith(_STANDALONE)

    @property
    def is_client_mode(self) -> bool:
        """Return whether the driver is a child of this process, so that it can be signalled."""
        return self.deploy_mode != "cluster"

    @property
    def rest_servers(self) -> list[str]:
        """Return the addresses of a standalone master's REST API, of each master if there are several."""
        hosts = [each.strip().rsplit(":", 1)[0] for each in self.master.removeprefix(_STANDALONE).split(",")]
        return [f"{self.rest_scheme}://{host}:{self.rest_port}" for host in hosts]


def _master(found: Any) -> str:
    """Return the master's URL. Airflow keeps the scheme of a URI as the connection's type; in a form, it is part of the host."""
    host = found.host or ""
    in_host = found.conn_type == "spark" and host and ("://" in host or not found.port)
    url = host if in_host else f"{found.conn_type}://{host}"
    return f"{url}:{found.port}" if found.port else url


def _binary(conn_id: str, extra: Mapping[str, Any]) -> str:
    binary = extra.get("spark-binary") or _BINARY
    if binary not in _BINARIES:
        raise _invalid(conn_id, "spark-binary", f"it must be one of {', '.join(_BINARIES)}, not {binary!r}")
    return str(binary)


def _port(conn_id: str, extra: Mapping[str, Any]) -> int:
    text = str(extra.get("rest-port") or 6066)
    if not text.isdecimal():
        raise _invalid(conn_id, "rest-port", f"it must be a number, not {text!r}")
    return int(text)


def _with_scheme(address: str | None) -> str | None:
    text = (address or "").strip().rstrip("/")
    return (text if "://" in text else f"http://{text}") if text else None


def _own_principal(principal: str | None) -> str | None:
    from airflow.security.kerberos import get_kerberos_principal

    return get_kerberos_principal(principal)


def _keytab_file(conn_id: str, encoded: str | None) -> str | None:
    """Write the keytab of a connection's extra, which is Base64, to a file that only this user can read; return its path."""
    if not encoded:
        return None
    try:
        content = base64.b64decode("".join(encoded.split()), validate=True)  # base64 breaks lines
    except (binascii.Error, ValueError):
        raise _invalid(conn_id, "keytab", "it must be a keytab in Base64 (base64 -w0 FILE)") from None
    path = cache_home() / "keytabs" / f"{hashlib.sha256(content).hexdigest()[:32]}.keytab"
    write_atomically(path, content, mode=0o600)
    return str(path)


def _invalid(conn_id: str, extra: str, why: str) -> AirflowFailException:
    return AirflowFailException(f"The Spark connection {conn_id!r} has an invalid extra {extra!r}: {why}.")
