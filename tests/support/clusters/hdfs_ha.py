"""HDFS with two NameNodes, which share their edits by a folder. Failovers are manual, as ``hdfs haadmin`` does them."""

from __future__ import annotations

from pathlib import Path

from sluiceway.stack.ports import free_port
from support.clusters.daemons import HOST, Daemon
from support.clusters.hadoop import Hdfs, get_json
from support.eventually import eventually

SERVICE = "lab"
_IDS = ("nn1", "nn2")
_SECONDS = 180


class HaHdfs(Hdfs):
    """Two NameNodes and a DataNode. Clients find the active NameNode by ``conf``."""

    def __init__(self, folder: Path) -> None:
        self._webs = {each: f"{HOST}:{free_port()}" for each in _IDS}
        site = {
            "dfs.nameservices": SERVICE,
            f"dfs.ha.namenodes.{SERVICE}": ",".join(_IDS),
            **{f"dfs.namenode.rpc-address.{SERVICE}.{each}": f"{HOST}:{free_port()}" for each in _IDS},
            **{f"dfs.namenode.http-address.{SERVICE}.{each}": web for each, web in self._webs.items()},
            f"dfs.client.failover.proxy.provider.{SERVICE}": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
            "dfs.namenode.shared.edits.dir": f"file://{folder}/shared",
            "dfs.ha.tail-edits.period": 1,
            "dfs.ha.fencing.methods": "shell(/bin/true)",
        }
        super().__init__(folder, nodes=1, core={"fs.defaultFS": f"hdfs://{SERVICE}"}, site=site)
        self.url = f"hdfs://{SERVICE}"
        self.name_nodes = {each: self._name_node(each) for each in _IDS}
        self.name_node = self.name_nodes["nn1"]
        self.active = "nn1"

    def _name_node(self, name: str) -> Daemon:
        settings = {"dfs.ha.namenode.id": name, "dfs.namenode.name.dir": f"file://{self.folder}/name-{name}"}
        arguments = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        return self._daemon(f"namenode-{name}", "namenode.NameNode", arguments)

    def start(self) -> None:
        """Format HDFS, start all daemons, and make the first NameNode active."""
        self._format()
        for daemon in (self.name_node, *self.data_nodes):
            daemon.start()
        eventually(lambda: self.state("nn1") == "standby", within=_SECONDS, what="the first NameNode")
        self.run(self.name_nodes["nn2"], "-bootstrapStandby", "-nonInteractive")
        self.name_nodes["nn2"].start()
        self._activate("nn1")

    def failover(self) -> None:
        """Kill the active NameNode, make the other one active, and start the killed one again."""
        killed, other = (self.active, "nn2" if self.active == "nn1" else "nn1")
        self.name_nodes[killed].kill()
        self._activate(other)
        self.name_nodes[killed].start()

    def _activate(self, name: str) -> None:
        eventually(lambda: self.state(name) == "standby", within=_SECONDS, what=f"{name} as standby")
        self.admin("DFSHAAdmin", "-transitionToActive", "--forceactive", name)
        self.active = name
        eventually(lambda: self._is_operational(name), within=_SECONDS, what=f"{name} out of safe mode")

    def state(self, name: str) -> str:
        return str(self._bean(name, "NameNodeStatus").get("State", ""))

    def _is_operational(self, name: str) -> bool:
        found = self._bean(name, "FSNamesystemState")
        return found.get("NumLiveDataNodes") == len(self.data_nodes) and found.get("FSState") == "Operational"

    def _bean(self, name: str, bean: str) -> dict[str, object]:
        beans = get_json(f"http://{self._webs[name]}/jmx?qry=Hadoop:service=NameNode,name={bean}").get("beans")
        return beans[0] if beans else {}

    def stop(self) -> None:
        for daemon in (*self.data_nodes, *self.name_nodes.values()):
            daemon.stop(5)
