// Places connectors and topics by dagre, so that records move from the left to the right. No I/O.

import { Graph, graphlib, layout } from "./dagre.esm.js";

export const CONNECTOR = { width: 232, height: 58 }, TOPIC = { width: 180, height: 34 };
const LABEL = { width: 92, height: 36 };
const MARGIN = 6;

/** Return the id of a connector in a graph. Those of topics contain a slash before the name, so none is equal. */
export const idOf = (connector) => `connector ${connector}`;

/** Return the ends of an edge: records move from ``from`` to ``to``. */
export function ends({ connector, topic, kind }) {
  return kind === "reads" ? { from: topic, to: idOf(connector) } : { from: idOf(connector), to: topic };
}

/** Split a graph into the parts that nothing connects, sorted by their first connector: each {connectors, topics, edges}. */
export function parts({ connectors, topics, edges }) {
  const graph = graphOf({ connectors, topics, edges });
  const found = graphlib.alg.components(graph).map((ids) => {
    const has = new Set(ids);
    return {
      connectors: connectors.filter(({ name }) => has.has(idOf(name))), topics: topics.filter(({ id }) => has.has(id)),
      edges: edges.filter(({ topic }) => has.has(topic)),
    };
  });
  const first = ({ connectors: own }) => connectors.indexOf(own[0]);
  return found.filter(({ connectors: own }) => own.length).sort((a, b) => first(a) - first(b));
}

/** Return where the nodes and edges of a part are: {width, height, nodes, edges}, nodes by id, edges in their order. */
export function placed(part) {
  const graph = graphOf(part);
  layout(graph);
  const { width, height } = graph.graph();
  return {
    width, height, nodes: Object.fromEntries(graph.nodes().map((id) => [id, graph.node(id)])),
    edges: part.edges.map((edge) => ({ ...graph.edge(key(edge)), points: line(graph, edge) })),
  };
}

/** Return the points of an edge, from the middle of one node's side to that of the other. A circle has an edge that leads back. */
function line(graph, edge) {
  const [from, to] = Object.values(ends(edge)).map((id) => graph.node(id));
  const way = from.x <= to.x ? 1 : -1;
  const between = graph.edge(key(edge)).points.slice(1, -1);
  return [{ x: from.x + way * from.width / 2, y: from.y }, ...between, { x: to.x - way * to.width / 2, y: to.y }];
}

/** Return what a layout depends on. Numbers and states may change without moving anything. */
export function shape({ connectors, topics, edges }) {
  return JSON.stringify([connectors.map(({ name }) => name), topics.map(({ id }) => id), edges.map((edge) => Object.values(key(edge)))]);
}

function graphOf({ connectors, topics, edges }) {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 14, edgesep: 14, ranksep: 24, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { name } of connectors) graph.setNode(idOf(name), { ...CONNECTOR });
  for (const { id } of topics) graph.setNode(id, { ...TOPIC });
  for (const edge of edges) graph.setEdge(key(edge), { ...LABEL, labelpos: "c" });
  return graph;
}

function key(edge) {
  const { from, to } = ends(edge);
  return { v: from, w: to, name: edge.kind };
}
