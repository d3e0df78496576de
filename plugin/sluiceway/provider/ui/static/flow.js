// Shows connectors and topics as a graph, or their connections as a table.

import { arrange, h, replace, whenFree } from "./dom.js";
import { UNKNOWN, exact, rate, shortClass } from "./format.js";
import { parts } from "./layout.js";
import { Picture, topicLabel } from "./picture.js";
import { badge } from "./schedule.js";

const KINDS = { writes: "writes to", reads: "reads", dead_letters: "sends dead letters to" };

/** Return the parts of a graph of which a connector or a topic matches each word. */
export function matching(found, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  return parts(found).filter(({ connectors, topics }) => !words.length
    || connectors.some((row) => has(`${row.name} ${row.type} ${row.class} ${row.shown}`)) || topics.some(({ names }) => names.some(has)));
}

export class Flow {
  /** ``open(name)`` shows a connector, ``back()`` the list. */
  constructor({ open, back }) {
    this.open = open;
    this.pictures = new Map(); // by the first connector of each part
    this.filter = h("input.filter", { type: "search", placeholder: "Filter by connector or topic", "aria-label": "Filter the flow", input: () => this.draw() });
    this.ways = h("div.buttons", { role: "group", "aria-label": "Show as" }, this.way("Graph"), this.way("Table"));
    this.body = h("div.body", null, h("p.empty", null, "Loading…"));
    this.element = h("section.flow", { "aria-label": "Flow" }, h("button.back", { type: "button", click: back }, "‹ All connectors"),
      h("header", null, h("h1", null, "Flow"), this.filter, this.ways), this.body);
    this.choose("Graph");
  }

  way(label) {
    return h("button", { type: "button", "data-way": label, click: () => this.choose(label) }, label);
  }

  choose(way) {
    this.chosen = way;
    for (const button of this.ways.children) button.setAttribute("aria-pressed", String(button.dataset.way === way));
    if (this.found) this.draw();
  }

  show(found) {
    this.found = found;
    whenFree(() => this.draw());
  }

  draw() {
    const shown = matching(this.found, this.filter.value);
    if (!shown.length) return replace(this.body, h("p.empty", null, this.found.connectors.length ? "Nothing matches the filter." : "There are no connectors yet."));
    if (this.chosen === "Table") return this.drawTable(shown);
    return arrange(this.body, shown.map((part) => this.picture(part)));
  }

  picture(part) {
    const [{ name }] = part.connectors;
    if (!this.pictures.has(name)) this.pictures.set(name, new Picture(this.open));
    const picture = this.pictures.get(name);
    picture.show(part);
    return picture.element;
  }

  drawTable(shown) {
    const rows = shown.flatMap(({ connectors, topics, edges }) => {
      const topic = Object.fromEntries(topics.map((each) => [each.id, each]));
      return connectors.flatMap((row) => {
        const own = edges.filter(({ connector }) => connector === row.name);
        return own.length ? own.map((edge) => this.row(row, edge, topic[edge.topic])) : [this.row(row)];
      });
    });
    const head = ["Connector", "State", "Connection", "Topic", "Records/s", "Lag"];
    const key = JSON.stringify([this.found, this.filter.value]);
    if (key === this.key && this.table.isConnected) return;
    this.key = key;
    this.table = h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Connections" }, h("table", { "aria-label": "Connections" },
      h("thead", null, h("tr", null, head.map((label) => h("th", { scope: "col" }, label)))), h("tbody", null, rows)));
    replace(this.body, this.table);
  }

  row(row, edge, topic) {
    const link = h("a", {
      href: `#${encodeURIComponent(row.name)}`, "data-key": `open ${row.name} ${edge?.kind} ${edge?.topic}`,
      click: (event) => { event.preventDefault(); this.open(row.name); },
    }, row.name);
    const name = h("th", { scope: "row", class: "name" }, link, h("small", null, `${row.type} · ${shortClass(row.class)}`));
    if (!edge) return h("tr", null, name, h("td", null, badge(row)), h("td.unknown", { colspan: "4" }, "Its topics are not known yet"));
    const isQueue = edge.kind === "dead_letters";
    return h("tr", { "data-connection": `${row.name} ${edge.kind} ${edge.topic}` }, name, h("td", null, badge(row)),
      h("td", null, `${edge.planned ? "will write to" : KINDS[edge.kind]}`), h("td", null, topicLabel(topic)),
      h("td.value", null, isQueue ? `${exact(edge.records)} in it` : rate(edge.rate)), h("td.value", null, edge.kind === "reads" ? exact(edge.lag) : UNKNOWN));
  }
}
