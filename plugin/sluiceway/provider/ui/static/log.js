// Shows the end of the log of a connector's driver, which is that of the Airflow task that runs it.

import { RequestError, dagRuns, taskInstances, taskLinks, taskLog } from "./api.js";
import { h, replace } from "./dom.js";
import { time } from "./format.js";

const LINES = 500;
const SPARK_UI = "Spark UI"; // the name of the operators' link

export class Log {
  /** ``goTo(path)`` opens a page of Airflow, or another one by its URL. */
  constructor(name, goTo) {
    this.name = name;
    this.lines = [];
    this.choice = h("select", { "aria-label": "Airflow task", "data-key": "log task", change: () => this.read() });
    this.part = h("select", { "aria-label": "Lines of", "data-key": "log part", change: () => this.draw() });
    const link = (label, target) => h("a", { href: "#", "data-key": label, click: (event) => { event.preventDefault(); goTo(target()); } }, label);
    this.spark = link("Spark UI, with the logs of executors", () => this.sparkUi);
    this.body = h("div");
    this.element = h("div", null, h("div.tools", null, this.choice, this.part,
      h("button", { type: "button", "data-key": "log again", click: () => this.load(this.dag) }, "Read again"),
      link("Whole log in Airflow", () => this.path), this.spark), this.body);
  }

  /** Read the log of the newest run of a DAG. */
  async load(dag) {
    this.dag = dag;
    this.path = `/dags/${encodeURIComponent(dag)}`;
    this.showSparkUi(null);
    replace(this.body, h("p.empty", null, "Reading from Airflow…"));
    await this.attempt(async () => {
      const [run] = (await dagRuns(dag)).dag_runs;
      this.run = run?.dag_run_id;
      const found = run ? (await taskInstances(dag, this.run)).task_instances : [];
      this.tasks = found.filter((task) => task.start_date).sort((a, b) => b.start_date.localeCompare(a.start_date));
      this.choice.replaceChildren(...this.tasks.map((task, index) => h("option", { value: index }, `${task.task_id}, try ${task.try_number}, ${task.state}`)));
      this.choice.hidden = this.tasks.length < 2;
      await this.read();
    });
  }

  async read() {
    const task = this.tasks[Number(this.choice.value)];
    this.part.hidden = true;
    if (!task) return replace(this.body, h("p.empty", null, "Airflow has not started the connector's DAG yet."));
    this.path = `/dags/${encodeURIComponent(this.dag)}/runs/${encodeURIComponent(this.run)}/tasks/${encodeURIComponent(task.task_id)}`;
    return this.attempt(async () => {
      const [texts, links] = await Promise.all([taskLog(this.dag, this.run, task, LINES), this.links(task)]);
      this.showSparkUi(links[SPARK_UI]);
      this.lines = byPart(texts.map(line).filter((text) => text !== null), this.name);
      this.offerParts();
      this.draw();
    });
  }

  /** Return the links of a task. Airflow refuses them for DAGs that have changed since; the log is worth showing without. */
  async links(task) {
    try {
      return (await taskLinks(this.dag, this.run, task)).extra_links;
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return {};
    }
  }

  showSparkUi(url) {
    this.sparkUi = /^https?:\/\//.test(url ?? "") ? url : null;
    this.spark.hidden = this.sparkUi === null;
  }

  offerParts() {
    const chosen = this.part.value;
    const found = [...new Set(this.lines.map(({ part }) => part))].filter(Boolean).sort(inOrder);
    const labels = { "": "all lines", worker: "the connector" };
    this.part.replaceChildren(...["", ...found].map((part) => h("option", { value: part, selected: part === chosen }, labels[part] ?? part.replace("-", " "))));
    this.part.hidden = found.length === 0;
  }

  draw() {
    const part = this.part.value;
    const shown = this.lines.filter((each) => part === "" || each.part === part).map(({ text }) => text);
    const text = h("pre.log", { tabindex: "0", "aria-label": "End of the log" }, shown.join("\n"));
    replace(this.body, text);
    requestAnimationFrame(() => { text.scrollTop = text.scrollHeight; }); // the section is opened after this
  }

  async attempt(action) {
    try {
      await action();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      replace(this.body, h("p.empty", null, error.message));
    }
  }
}

/** Return a line of Airflow's structured log as text; null for the marks by which Airflow's UI folds lines. */
export function line(text) {
  try {
    const { timestamp, level, event } = JSON.parse(text);
    if (/^::(end)?group::/.test(event)) return null;
    return [timestamp && time(Date.parse(timestamp)), level?.toUpperCase(), event].filter(Boolean).join(" ");
  } catch {
    return text;
  }
}

/**
 * Return lines as {text, part} by Connect's context prefix: ``worker`` for the connector, or ``task-0``; null for lines of Airflow,
 * Spark, and other connectors in the same application. The lines of a trace belong to the line before them.
 */
export function byPart(texts, name) {
  let part = null;
  return texts.map((text) => {
    const found = /\[([^[\]|]+)\|(worker|task-\d+)/.exec(text);
    if (found) part = found[1] === name ? found[2] : null;
    else if (!isTrace(text)) part = null;
    return { text, part };
  });
}

// After the time and the level that Airflow adds.
function isTrace(text) {
  return /^(\S+ \S+ [A-Z]+ )?(\s|Traceback |Caused by: |[\w.]+(Error|Exception)\b)/.test(text);
}

function inOrder(a, b) {
  if (a === "worker" || b === "worker") return a === "worker" ? -1 : 1;
  return Number(a.slice(5)) - Number(b.slice(5));
}
