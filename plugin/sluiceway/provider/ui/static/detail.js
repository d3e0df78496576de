// Shows the details of one connector.

import { buttons, configButtons, setBy, taskButton } from "./actions.js";
import { RequestError, deadLetters, intervals, offsets } from "./api.js";
import { DeadLetters } from "./deadletters.js";
import { h, replace, whenFree } from "./dom.js";
import { UNKNOWN, count, exact, rate, rootCause, time } from "./format.js";
import { Intervals } from "./intervals.js";
import { tasks, whereabouts } from "./list.js";
import { Log } from "./log.js";
import { changesTable } from "./review.js";
import { ofConnector } from "./route.js";
import { badge, dagLink, gone, importError, runsInFull, scheduleLabel, stateBadge } from "./schedule.js";
import { sparkline } from "./spark.js";

const SHOWN = 100; // offsets at most

export class Detail {
  /** ``back()`` opens the list, null if there is none; ``go(hash)`` another part of the page, ``goTo(path)`` a page of Airflow. */
  constructor(name, { back, changed, go, goTo, inDag }) {
    this.name = name;
    this.changed = changed;
    this.go = go;
    this.goTo = goTo;
    this.inDag = inDag;
    this.head = h("header");
    this.body = h("div.body", null, h("p.empty", null, "Loading…"));
    this.errors = new Cached(errors);
    this.tasks = new Cached(([found, mayEdit]) => taskTable(name, found, mayEdit, changed));
    this.config = new Cached(config);
    this.drift = new Cached(drift);
    this.offsets = new Section("Offsets", () => offsets(name), (response) => sourceOffsets(response.offsets));
    this.deadLetters = new Section("Newest dead letter queue records", () => deadLetters(name), deadLetterTable);
    this.records = new DeadLetters(name);
    this.recordsSection = new Section("Dead letter queue records", () => this.records.load(), () => this.records.element);
    this.intervals = new Intervals(name, goTo);
    this.intervalsSection = new Section("Intervals of its runs", () => intervals(name), (response) => this.intervals.draw(response, this.found));
    this.log = new Log(name, goTo);
    this.logSection = new Section("Log of the driver and its tasks", () => this.log.load(this.dag), () => this.log.element);
    this.element = h("section.detail", { "aria-label": name },
      back ? h("button.back", { type: "button", click: back }, "‹ All connectors") : null, this.head, this.body);
  }

  show(found) {
    whenFree(() => this.draw(found));
  }

  draw(found) {
    this.dag = found.dag;
    this.found = found;
    this.offsets.showInstead(found.type === "sink" ? sinkOffsets(found) : null);
    const sections = [
      this.drift.drawn([found.drift, found.dag]), charts(found), this.errors.drawn([found.trace, found.tasks_in_full.map((task) => [task.id, task.trace])]),
      this.tasks.drawn([found.tasks_in_full, found.may_edit]), found.dead_letters === null ? null : (found.may_edit ? this.recordsSection : this.deadLetters).element, this.offsets.element,
      found.config["airflow.mode"] === "micro-batch" ? this.intervalsSection.element : null,
      this.config.drawn(found.config), found.dag ? this.logSection.element : null,
    ];
    replace(this.head, h("div.title", null, h("h1", null, found.name), badge(found)), buttons(found, this.changed), configButtons(found, this.go),
      h("p.about", null, this.about(found)), h("p.about", null, this.runs(found)),
      ...(whereabouts(found) ? [h("p.about.whereabouts", null, `${whereabouts(found)}. ${found.moving ? "If no command moves it, 'sluiceway migrate --execute' continues." : "To move it back: sluiceway migrate --execute --back."}`)] : []),
      ...(found.config_task ? [h("p.about", null, `${setBy(found.dag, found.config_task)}.`)] : []));
    replace(this.body, ...sections.filter(Boolean));
  }

  gone(message) {
    replace(this.head, h("h1", null, this.name));
    const history = ofConnector(this.name, "history");
    const link = h("a", { href: history, "data-key": "history", click: (event) => { event.preventDefault(); this.go(history); } }, "History");
    replace(this.body, h("p.empty", null, message), h("p", null, link));
  }

  about(found) {
    const parts = [`${found.type} · ${found.class}${found.version ? ` ${found.version}` : ""}`];
    if (found.worker_id) parts.push(` · driver ${found.worker_id}`);
    if (found.topics.length) parts.push(` · topics ${found.topics.slice(0, 5).join(", ")}${found.topics.length > 5 ? ", …" : ""}`);
    return parts;
  }

  runs(found) {
    if (found.schedule?.gone) return [gone(found.dag)];
    if (found.schedule?.import_error) return [h("span.failed", null, `${importError(found.dag)}. Airflow's start page shows the error.`)];
    const parts = [this.inDag ? null : dagLink(found, `DAG ${found.dag}`, this.goTo)];
    if (found.schedule) parts.push(`schedule ${scheduleLabel(found)}`, ...runsInFull(found, this.goTo));
    return parts.filter(Boolean).flatMap((part, index) => (index ? [" · ", part] : [part]));
  }
}

function charts(found) {
  const chart = (title, value, values, format) => {
    const known = (values ?? []).filter((each) => each !== null);
    return h("figure", null, h("figcaption", null, h("span", null, title), h("b", null, value)),
      sparkline(values, `${title}, last hour`, 400, 80), h("div.axis", null, h("span", null, "1 h ago"), h("span", null, known.length ? `highest ${format(Math.max(...known))}` : ""), h("span", null, "now")));
  };
  return h("div.charts", null,
    chart("Records per second", rate(found.rate), found.rates, rate),
    found.type === "sink" ? chart("Lag", exact(found.lag), found.lags, count) : null,
    h("figure.numbers", null, h("figcaption", null, h("span", null, "Tasks running"), h("b", null, tasks(found))),
      h("figcaption", null, h("span", null, "Dead letters"), h("b", null, exact(found.dead_letters)))));
}

function errors([own, ofTasks]) {
  const failed = [["Connector", own], ...ofTasks.map(([id, trace]) => [`Task ${id}`, trace])].filter(([, trace]) => trace);
  if (!failed.length) return null;
  const title = failed.every(([, trace]) => trace.startsWith("Waiting since ")) ? "Waiting" : "Last error";
  return h("section.errors", { "aria-label": title }, h("h2", null, title),
    failed.slice(0, 10).map(([what, trace]) => h("div", null, h("h3", null, what), h("pre", { tabindex: "0" }, trace))));
}

function drift([found, dag]) {
  if (!found.length) return null;
  return h("section", { "aria-label": "Changes in the DAG's file" }, h("h2", null, "Changes in the DAG's file"),
    h("p", null, `The config in the file of DAG ${dag} is not the one that runs. The next try of the task stores it: clear the task to do so now.`),
    changesTable(found.map(({ key, before, after }) => ({ key, before: before ?? undefined, after: after ?? undefined })), (key, value) => value));
}

function taskTable(name, found, mayEdit, changed) {
  if (!found.length) return null;
  const rows = found.map((task) => [String(task.id), stateBadge(task.state), task.worker_id ?? UNKNOWN, taskButton(name, task.id, mayEdit, changed)]);
  return h("section", null, h("h2", null, "Tasks"), table(["Task", "State", "Worker", "Actions"], rows));
}

function config(found) {
  return h("details", null, h("summary", { "data-key": "config" }, "Config"),
    table(["Key", "Value"], Object.entries(found).map(([key, value]) => [h("code", null, key), h("code", null, value)])));
}

function table(head, rows) {
  return h("div.scroll", null, h("table", null, h("thead", null, h("tr", null, head.map((label) => h("th", { scope: "col" }, label)))),
    h("tbody", null, rows.map((row) => h("tr", null, row.map((cell) => h("td", null, cell)))))));
}

/** An element that is redrawn only if its content changes, so that open, scrolled and selected parts stay as they are. */
class Cached {
  constructor(draw) {
    this.draw = draw;
  }

  drawn(content) {
    const key = JSON.stringify(content);
    if (key !== this.key) {
      this.key = key;
      this.element = this.draw(content);
    }
    return this.element;
  }
}

/** A section that is loaded when the user opens it, because each time it is read from Kafka. */
class Section {
  constructor(title, load, draw) {
    this.body = h("div");
    this.load = load;
    this.draw = draw;
    this.element = h("details", { toggle: () => this.opened() }, h("summary", { "data-key": title }, title), this.body);
  }

  showInstead(content) {
    this.given = content;
    if (content) replace(this.body, content);
  }

  async opened() {
    if (!this.element.open || this.given) return;
    replace(this.body, h("p.empty", null, "Reading from Kafka…"));
    try {
      replace(this.body, this.draw(await this.load()));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      replace(this.body, h("p.empty", null, error.message));
    }
  }
}

function sinkOffsets(found) {
  if (!found.partitions.length) return h("p.empty", null, "The connector has committed no offsets, or its consumer group may not be read.");
  const rows = found.partitions.slice(0, SHOWN).map((each) => [`${each.topic}-${each.partition}`, exact(each.offset), exact(each.end), exact(each.lag)]);
  return h("div", null, table(["Partition", "Committed", "End", "Lag"], rows), more(found.partitions.length + found.more_partitions));
}

function sourceOffsets(found) {
  if (!found.length) return h("p.empty", null, "The connector has stored no offsets yet.");
  const rows = found.slice(0, SHOWN).map((each) => [h("code", null, JSON.stringify(each.partition)), h("code", null, JSON.stringify(each.offset))]);
  return h("div", null, table(["Partition", "Offset"], rows), more(found.length));
}

function more(total) {
  return total > SHOWN ? h("p", null, `${exact(total - SHOWN)} more are not shown.`) : null;
}

function deadLetterTable(response) {
  if (!response.records.length) return h("p.empty", null, `Topic ${response.topic} holds no records of this connector.`);
  const rows = response.records.map((each) => [
    time(each.at),
    each.topic === null ? UNKNOWN : `${each.topic}-${each.partition ?? "?"}:${each.offset ?? "?"}`,
    each.stage ?? UNKNOWN,
    h("div", null, each.exception ?? "No error headers (set errors.deadletterqueue.context.headers.enable=true)", each.message ? `: ${each.message}` : "",
      rootCause(each.trace) && h("small", null, `Cause: ${rootCause(each.trace)}`),
      each.trace ? h("details", null, h("summary", null, "Trace"), h("pre", { tabindex: "0" }, each.trace)) : null),
  ]);
  return h("div", null, h("p", null, `${exact(response.count)} in topic ${response.topic}. Keys and values are not shown here: "sluiceway dlq show" prints them.`),
    table(["Written", "Record", "Stage", "Error"], rows));
}
