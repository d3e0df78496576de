// Shows the list of connectors.

import { buttons } from "./actions.js";
import { h, replace, whenFree } from "./dom.js";
import { UNKNOWN, count, exact, rate, shortClass } from "./format.js";
import { FLOW, MOVES, PLUGINS } from "./route.js";
import { STATES, chosen, counts } from "./rows.js";
import { badge, dagLink, runs, scheduleLabel, stateLabel } from "./schedule.js";
import { sparkline } from "./spark.js";

const COLUMNS = [
  ["name", "Connector"], ["state", "State"], [null, "Tasks"], [null, "Schedule"], ["rate", "Records/s"], ["lag", "Lag"],
  ["dead_letters", "Dead letters"], [null, "Actions"],
];

export class List {
  /**
   * ``open(name)`` shows a connector, ``go(hash)`` another part of the page, ``goTo(path)`` a page of Airflow. ``changed()`` is called
   * after an action, ``paged()`` when other rows become visible.
   */
  constructor({ open, go, goTo, changed, paged }) {
    this.goTo = goTo;
    this.choice = { filter: "", state: null, sort: "state", descending: false, page: 0 };
    this.open = open;
    this.changed = changed;
    this.paged = paged;
    this.all = [];
    this.histories = {};
    this.shown = [];
    this.chips = h("div.chips", { role: "group", "aria-label": "Filter by state" });
    this.filter = h("input.filter", {
      type: "search", placeholder: "Filter by name, type or class", "aria-label": "Filter connectors",
      input: () => this.choose({ filter: this.filter.value, page: 0 }),
    });
    const link = (hash, label) => h("a.button", { href: hash, click: (event) => { event.preventDefault(); go(hash); } }, label);
    this.plugins = link(PLUGINS, "Plugins");
    this.moves = link(MOVES, "Moves");
    this.moves.hidden = true;
    this.body = h("div.body");
    this.element = h("section.list", null, h("header", null, h("h1", null, "Connectors"), this.chips, this.filter, link(FLOW, "Flow"), this.moves, this.plugins), this.body);
  }

  /** ``otherCluster`` is the address of the one that connectors move from or to; null without one. */
  show(rows, mayCreate, otherCluster) {
    this.all = rows;
    this.moves.hidden = !otherCluster;
    this.plugins.textContent = mayCreate ? "Create connector" : "Plugins";
    this.plugins.classList.toggle("main", mayCreate);
    this.redraw();
  }

  remember(histories) {
    this.histories = histories;
    this.redraw();
  }

  choose(change) {
    Object.assign(this.choice, change);
    this.draw();
    this.paged();
  }

  redraw() {
    const key = JSON.stringify([this.all, this.histories]);
    if (key === this.key) return;
    this.key = key;
    whenFree(() => this.draw());
  }

  draw() {
    const { rows, total, page, pages } = chosen(this.all, this.choice);
    this.choice.page = page;
    this.shown = rows.map((row) => row.name);
    replace(this.chips, ...this.stateChips());
    if (!this.all.length) return replace(this.body, noConnectors());
    if (!total) return replace(this.body, h("p.empty", null, "No connectors match the filter."));
    const table = h("table", { "aria-label": "Connectors" },
      h("thead", null, h("tr", null, COLUMNS.map(([key, label]) => this.heading(key, label)))),
      h("tbody", null, rows.map((row) => this.row(row))));
    return replace(this.body, table, this.pager(total, page, pages));
  }

  stateChips() {
    const found = counts(this.all);
    const chip = (state, label, number) => h("button.chip", {
      type: "button", "data-key": `chip ${label}`, "data-state": state, "aria-pressed": String(this.choice.state === state),
      click: () => this.choose({ state: this.choice.state === state ? null : state, page: 0 }),
    }, h("span", null, label), h("b", null, exact(number)));
    const used = STATES.filter((state) => found[state] || this.choice.state === state);
    return [chip(null, "All", this.all.length), ...used.map((state) => chip(state, stateLabel(state), found[state]))];
  }

  heading(key, label) {
    const attributes = { scope: "col", class: key ?? label.toLowerCase() };
    if (key === null) return h("th", attributes, label);
    const sorted = this.choice.sort === key;
    const descending = sorted ? !this.choice.descending : ["rate", "lag", "dead_letters"].includes(key);
    const arrow = sorted ? (this.choice.descending ? " ↓" : " ↑") : "";
    return h("th", { ...attributes, "aria-sort": sorted ? (this.choice.descending ? "descending" : "ascending") : null },
      h("button.sort", { type: "button", "data-key": `sort ${key}`, click: () => this.choose({ sort: key, descending, page: 0 }) },
        label, h("span", { "aria-hidden": "true" }, arrow)));
  }

  row(row) {
    const past = this.histories[row.name] ?? {};
    return h("tr", { "data-connector": row.name, "data-state": row.shown },
      h("th", { scope: "row", class: "name" },
        h("a", { href: `#${encodeURIComponent(row.name)}`, "data-key": `open ${row.name}`, click: (event) => this.follow(event, row.name) }, row.name),
        h("small", null, `${row.type} · ${shortClass(row.class)}`),
        whereabouts(row) ? h("small.whereabouts", null, whereabouts(row)) : null,
        row.error ? h("small.error", { title: row.error }, row.error) : null),
      h("td.state", null, badge(row)),
      h("td.tasks", null, tasks(row)),
      h("td.schedule", null, dagLink(row, scheduleLabel(row), this.goTo), h("small", null, runs(row))),
      h("td.rate", null, h("div.cell", null, h("span.value", null, rate(row.rate)), sparkline(past.rates, `Records per second of ${row.name}, last hour`))),
      h("td.lag", null, row.type === "sink"
        ? h("div.cell", null, h("span.value", { title: exact(row.lag) }, count(row.lag)), sparkline(past.lags, `Lag of ${row.name}, last hour`))
        : h("span.value.unknown", { title: "A source has no lag: Kafka does not know what its system still holds" }, UNKNOWN)),
      h("td.dead_letters", null, h(row.dead_letters ? "span.value.some" : "span.value", null, count(row.dead_letters))),
      h("td.actions", null, buttons(row, this.changed)));
  }

  follow(event, name) {
    event.preventDefault();
    this.open(name);
  }

  pager(total, page, pages) {
    if (pages === 1) return h("p.pager", null, `${exact(total)} ${total === 1 ? "connector" : "connectors"}`);
    const turn = (label, to) => h("button", {
      type: "button", "data-key": `page ${label}`, disabled: to < 0 || to >= pages, click: () => this.choose({ page: to }),
    }, label);
    return h("nav.pager", { "aria-label": "Pages" }, turn("Previous", page - 1),
      h("span", null, `Page ${page + 1} of ${pages}, ${exact(total)} connectors`), turn("Next", page + 1));
  }
}

/** The text on a connector that moves between two clusters, or has moved; null for others. */
export function whereabouts({ moved_to: there, moving }) {
  if (moving) return "Moves between two clusters";
  return there ? `Has moved to ${there} and rests here` : null;
}

export function tasks({ tasks: found, shown }) {
  const total = Object.values(found).reduce((sum, number) => sum + number, 0);
  if (!total || shown === "IDLE") return h("span.unknown", null, "none");
  const failed = found.FAILED ?? 0;
  const text = `${found.RUNNING ?? 0} of ${total} running`;
  return h("span", { title: Object.entries(found).map(([state, number]) => `${number} ${stateLabel(state)}`).join(", ") },
    `${found.RUNNING ?? 0}/${total}`, h("span.hidden", null, ` (${text})`), failed ? h("b.failed", null, ` ${failed} failed`) : null);
}

function noConnectors() {
  return h("div.empty", null, h("h2", null, "There are no connectors yet"),
    h("p", null, "Create one here from a plugin, or with Connect's REST API, which Airflow serves at this URL:"),
    h("pre", null, `curl -X POST ${new URL("../connectors", document.baseURI)} \\\n  -H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json' \\\n  -d '{"name": "lines", "config": {"connector.class": "FileStreamSource", "file": "/tmp/in.txt", "topic": "lines"}}'`),
    h("p", null, "or from a file:"), h("pre", null, "sluiceway apply -f connector.json"),
    h("p", null, "Its DAG is generated, and it appears here. Connectors whose DAGs you may not see are not shown."));
}
