"""HDFS with Kerberos: a KDC, a NameNode and a DataNode, with encrypted calls and data."""

from __future__ import annotations

from pathlib import Path

from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from support.clusters.daemons import HOST, Daemon
from support.clusters.hadoop import HADOOP_VERSION, Hdfs

REALM = "EXAMPLE.COM"
#: Principal of the tests' tasks.
PRINCIPAL = f"connect@{REALM}"
_SERVER = f"hdfs/localhost@{REALM}"
_SECONDS = 180


class Kdc:
    """A Kerberos server, whose keytab has the principals of the servers and of the tasks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config, self.keytab = folder / "krb5.conf", folder / "all.keytab"
        folder.mkdir(parents=True)
        settings = {
            "org.name": "EXAMPLE",
            "org.domain": "COM",
            "kdc.bind.address": HOST,
            "kdc.port": free_port(),
            "instance": "KDC",
        }
        properties = folder / "kdc.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        jars = maven.resolve(
            [f"org.apache.hadoop:hadoop-minikdc:{HADOOP_VERSION}"], title="Hadoop's KDC for tests", progress=print
        )
        principals = [each.partition("@")[0] for each in (PRINCIPAL, _SERVER)]
        arguments = [str(folder), str(properties), str(self.keytab), *principals]
        self._daemon = Daemon("kdc", maven.classpath(jars), "org.apache.hadoop.minikdc.MiniKdc", arguments, folder)

    def start(self) -> None:
        self._daemon.start()
        self._daemon.wait_until(lambda: self.config.exists() and self.keytab.exists(), _SECONDS)
        # The servers' names are not to be looked up.
        text = self.config.read_text().replace(
            "[libdefaults]", "[libdefaults]\n dns_canonicalize_hostname = false\n rdns = false"
        )
        self.config.write_text(text)

    def stop(self) -> None:
        self._daemon.stop(5)


def secure_hdfs(folder: Path, kdc: Kdc, protection: str) -> Hdfs:
    """Return an HDFS that requires Kerberos. ``protection`` is ``authentication``, ``integrity`` or ``privacy``."""
    servers = {
        f"dfs.{role}.{key}": value
        for role in ("namenode", "datanode")
        for key, value in (("kerberos.principal", _SERVER), ("keytab.file", str(kdc.keytab)))
    }
    core = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.authorization": "true",
        "hadoop.rpc.protection": protection,
    }
    site = {
        **servers,
        "dfs.block.access.token.enable": "true",
        "dfs.data.transfer.protection": protection,
        "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
        "ignore.secure.ports.for.testing": "true",
    }
    return Hdfs(folder, nodes=1, core=core, site=site, options=[f"-Djava.security.krb5.conf={kdc.config}"])
