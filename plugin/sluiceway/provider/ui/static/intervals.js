// Shows which intervals the runs of a connector have moved, as a calendar; and clears the run of one, so that it is moved again.

import { REFUSED } from "./actions.js";
import { RequestError, clearRun } from "./api.js";
import { confirmed, say } from "./dialog.js";
import { h, replace } from "./dom.js";
import { UNKNOWN, day, exact, time } from "./format.js";
import { airflowLink } from "./schedule.js";

const DAYS = 30;
const DAY = 24 * 3600 * 1000;
const STATES = { done: "moved", running: "not complete", failed: "failed" };

/** Return the days of the last 30 days that have intervals, the latest first: [{day, intervals}], with the earliest interval first. */
export function calendar(intervals, now) {
  const days = new Map();
  for (const each of [...intervals].sort((a, b) => a.start - b.start)) {
    if (each.end <= now - DAYS * DAY) continue;
    const name = day(each.start);
    days.set(name, [...(days.get(name) ?? []), each]);
  }
  return [...days].map(([name, found]) => ({ day: name, intervals: found })).reverse();
}

/** Return what a cell shows: its state, "again" for one that was moved more than once, "late" for one with late records, or that such wait for. */
export function kind({ state, attempt, late, rerun }) {
  if (state !== "done") return state;
  return late || rerun ? "late" : attempt > 1 ? "again" : "done";
}

/** Return an interval in a line. */
export function described({ start, end, state, attempt, records, late, at_least: atLeast, rerun }) {
  const least = atLeast ? "at least " : "";
  const parts = [`${time(start)} to ${time(end)}`, STATES[state]];
  if (records !== null) parts.push(`${least}${exact(records)} ${records === 1 ? "record" : "records"}`);
  if (late) parts.push(`${least}${exact(late)} late`);
  if (attempt > 1) parts.push(`moved ${exact(attempt)} times`);
  if (rerun) parts.push("late records wait until it is moved again");
  return parts.join(", ");
}

export class Intervals {
  constructor(name, goTo) {
    this.name = name;
    this.goTo = goTo;
    this.chosen = h("div.chosen", { role: "status" });
    this.days = h("div.calendar");
    this.element = h("div", null, this.days, this.chosen);
  }

  /** Show a response. ``row`` is the connector: its DAG, and whether the user may edit it. */
  draw({ intervals }, row) {
    this.row = row;
    const days = calendar(intervals, Date.now());
    replace(this.chosen);
    if (!days.length) {
      replace(this.days, h("p.empty", null, "No run has moved an interval in the last 30 days. Runs do with airflow.interval=exact, and in backfills."));
      return this.element;
    }
    replace(this.days, h("p", null, `The last ${DAYS} days: a cell is an interval.`), h("ul.legend", null, legend("done", "moved"), legend("late", "with late records"),
      legend("again", "moved again"), legend("running", "not complete"), legend("failed", "failed")), ...days.map((each) => this.day(each)));
    return this.element;
  }

  day({ day: name, intervals }) {
    return h("div.day", null, h("span.name", null, name), h("div.cells", { role: "group", "aria-label": name }, intervals.map((each) => this.cell(each))));
  }

  cell(interval) {
    const text = described(interval);
    return h("button.cell", { type: "button", "data-key": `interval ${interval.start}`, "data-kind": kind(interval), "aria-label": text, title: text, click: () => this.choose(interval) });
  }

  choose(interval) {
    const run = interval.runs.at(-1);
    const { dag, may_edit: mayEdit } = this.row;
    const path = `/dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(run ?? "")}`;
    replace(this.chosen, h("p", null, described(interval), ". ", dag && run ? airflowLink(`Run ${run}`, path, "interval run", this.goTo, {}) : `Run ${run ?? UNKNOWN}`),
      interval.error ? h("pre", { tabindex: "0" }, interval.error) : null,
      h("button.small", {
        type: "button", "data-key": "clear interval", disabled: !mayEdit || !dag || !run, title: mayEdit ? null : REFUSED, click: () => this.clear(interval, dag, run),
      }, "Clear its run"));
  }

  async clear(interval, dag, run) {
    const question = "Its tasks run again. Files of the interval are replaced; a target that would keep both is left as it is.";
    if (!(await confirmed(`Clear the run of ${time(interval.start)}?`, question, "Clear"))) return;
    try {
      await clearRun(dag, run);
      say(`${this.name}: run ${run} is cleared.`);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      say(error.message, true);
    }
  }
}

function legend(name, label) {
  return h("li", null, h("span.cell", { "data-kind": name }), label);
}
