// Shows what Airflow says about a connector: its state there, its DAG, and the runs of that.

import { h } from "./dom.js";
import { moment, time } from "./format.js";

const LABELS = { success: "OK", failed: "FAILED" };

/** Return a connector's badge: its state in Airflow, and the reason for a failure. */
export function badge(row) {
  const failed = { RUNNING: "Failed tasks", PAUSED: "Paused, failed tasks", UNASSIGNED: row.tasks.FAILED ? "Failed" : "Last run failed" };
  return stateBadge(row.shown, row.shown === "FAILED" ? failed[row.state] : undefined);
}

export function stateBadge(state, label = stateLabel(state)) {
  return h("span.badge", { "data-state": state }, label);
}

export function stateLabel(state) {
  return state[0] + state.slice(1).toLowerCase();
}

/** Return a link to a connector's DAG, with its schedule. ``goTo(path)`` opens a page of Airflow. */
export function dagLink({ dag, schedule }, label, goTo) {
  if (dag === null) return null;
  if (schedule?.gone) return h("span.failed", { title: gone(dag) }, `DAG ${dag} is gone`);
  const link = airflowLink(label, `/dags/${encodeURIComponent(dag)}`, `dag ${dag}`, goTo, { title: `DAG ${dag}` });
  return schedule?.import_error ? [link, h("small.failed", { title: importError(dag) }, `DAG ${dag} has an import error`)] : link;
}

/** Return why a DAG whose file cannot be imported does not run. */
export function importError(dag) {
  return `The file of DAG ${dag} has an import error, so Airflow starts no run of it`;
}

/** Return how a DAG without a file came about, and what to do. */
export function gone(dag) {
  return `Airflow has no file of DAG ${dag} any more, so nothing starts this connector again. Delete it, which keeps its offsets, or restore the file.`;
}

/** Return the last result and the next run as text, "" if there are none. */
export function runs({ schedule }) {
  if (!schedule || schedule.gone) return "";
  if (schedule.active) return `run ${schedule.active.state} since ${moment(schedule.active.at)}`;
  const last = schedule.last && `last run ${result(schedule.last)} ${moment(schedule.last.at)}`;
  const next = schedule.paused ? "paused" : schedule.next && !schedule.import_error && `next ${moment(schedule.next)}`;
  return [last ?? "never ran", next].filter(Boolean).join(", ");
}

/** Return the same for the page of a connector: with a link to the last run. */
export function runsInFull(row, goTo) {
  const run = row.schedule?.active ?? row.schedule?.last;
  if (!run || row.schedule.gone) return [runs(row)];
  const path = `/dags/${encodeURIComponent(row.dag)}/runs/${encodeURIComponent(run.run_id)}`;
  return [airflowLink(runs(row), path, "run", goTo, { title: `${run.run_id}, ${time(1000 * run.at)}` })];
}

/** Return the text for a DAG's schedule. */
export function scheduleLabel({ dag, schedule }) {
  if (!schedule) return `DAG ${dag}`;
  return ["None", "", null].includes(schedule.schedule) ? "when triggered" : schedule.schedule;
}

function result({ state }) {
  return LABELS[state] ?? state;
}

/** Return a link to a page of Airflow. */
export function airflowLink(label, path, key, goTo, attributes) {
  return h("a", { href: path, "data-key": key, ...attributes, click: (event) => { event.preventDefault(); goTo(path); } }, label);
}
