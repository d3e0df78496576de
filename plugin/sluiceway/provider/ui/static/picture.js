// Draws one part of the graph of connectors and topics. Nodes are links and text above a drawing of the edges.

import { h, replace, svg } from "./dom.js";
import { count, exact, rate, shortClass } from "./format.js";
import { idOf, placed, shape } from "./layout.js";
import { badge } from "./schedule.js";

let pictures = 0;

/** Return the lines of an edge's label: what moves along it, as far as that is known. */
export function edgeLabel({ kind, planned, rate: perSecond, lag, records }) {
  if (kind === "dead_letters") return [records === null ? null : count(records), records === 1 ? "dead letter" : "dead letters"].filter(Boolean);
  if (planned) return ["not yet"];
  return [perSecond === null ? null : `${rate(perSecond)}/s`, lag === null ? null : `lag ${count(lag)}`].filter(Boolean);
}

/** Return the name of a topic's node. Topics that the same connectors use share one. */
export function topicLabel({ names, count: total, cluster }) {
  const more = total > 1 ? ` and ${exact(total - 1)} more` : "";
  return `${names[0]}${more}${cluster ? ` at ${cluster}` : ""}`;
}

export class Picture {
  /** ``open(name)`` shows a connector. */
  constructor(open) {
    this.open = open;
    this.id = `arrow-${++pictures}`;
    this.stage = h("div.stage");
    this.element = h("div.picture", null, this.stage);
  }

  /** Show a part of the graph. Nothing moves unless a connector, a topic, or an edge has come or gone. */
  show(part) {
    const key = shape(part);
    if (key !== this.shape) this.draw(part);
    this.shape = key;
    for (const row of part.connectors) this.update(this.nodes.get(row.name), row);
    part.edges.forEach((edge, index) => fill(this.labels[index], edge));
  }

  draw(part) {
    const place = placed(part);
    this.nodes = new Map(part.connectors.map((row) => [row.name, this.connector(row, place.nodes[idOf(row.name)])]));
    this.labels = place.edges.map((edge) => at(h("span.edge", { "aria-hidden": "true" }), edge));
    const topics = part.topics.map((topic) => at(h(topic.cluster ? "div.node.topic.far" : "div.node.topic", { title: topicTitle(topic) }, topicLabel(topic)), place.nodes[topic.id]));
    replace(this.stage, this.lines(place, part.edges), ...this.labels, ...topics, ...this.nodes.values());
    Object.assign(this.stage.style, { width: `${place.width}px`, height: `${place.height}px` });
  }

  connector(row, place) {
    return at(h("a.node.connector", {
      href: `#${encodeURIComponent(row.name)}`, title: `${row.name}, ${shortClass(row.class)}`, "data-key": `node ${row.name}`,
      click: (event) => { event.preventDefault(); this.open(row.name); },
    }, h("b", null, row.name), h("span.about-node", null, h("span.holder"), h("small", null, row.type))), place);
  }

  update(node, row) {
    const label = badge(row);
    const holder = node.querySelector(".holder");
    if (holder.textContent === label.textContent && node.dataset.state === row.shown) return;
    node.dataset.state = row.shown;
    holder.replaceChildren(label);
  }

  lines({ width, height, edges }, kinds) {
    const arrow = svg("marker", { id: this.id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
      svg("path", { d: "M0,0 L8,4 L0,8 z" }));
    return svg("svg", { width, height, "aria-hidden": "true" }, svg("defs", null, arrow), edges.map(({ points }, index) => svg("path", {
      class: `line ${kinds[index].kind}${kinds[index].planned ? " planned" : ""}`, d: curve(points), "marker-end": `url(#${this.id})`,
    })));
  }
}

/** Return a smooth line through points as the text of a path: from middle to middle, bent at the points between. */
export function curve(points) {
  const text = ({ x, y }) => `${Math.round(x)},${Math.round(y)}`;
  const middle = (a, b) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
  const bends = points.slice(1, -1).map((point, index) => {
    const isLast = index === points.length - 3;
    return `Q${text(point)} ${text(isLast ? points.at(-1) : middle(point, points[index + 2]))}`;
  });
  return [`M${text(points[0])}`, ...(bends.length ? bends : [`L${text(points.at(-1))}`])].join(" ");
}

function fill(label, edge) {
  const lines = edgeLabel(edge);
  if (label.dataset.text === JSON.stringify(lines)) return;
  label.dataset.text = JSON.stringify(lines);
  label.dataset.kind = edge.kind;
  label.replaceChildren(...lines.map((line) => h("span", null, line)));
}

function topicTitle({ names, count: total }) {
  return names.length < total ? `${names.join(", ")}, …` : names.join(", ");
}

// Set by a property, since the page's policy allows no style attributes. A label's place is its middle, as a node's.
function at(element, { x, y, width, height }) {
  Object.assign(element.style, { left: `${x - width / 2}px`, top: `${y - height / 2}px`, width: `${width}px`, height: `${height}px` });
  return element;
}
