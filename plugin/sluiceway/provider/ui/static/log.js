// Shows the end of the log of a connector's driver, which is that of the Airflow task that runs it.

import { RequestError, dagRuns, taskInstances, taskLog } from "./api.js";
import { h, replace } from "./dom.js";

const LINES = 500;

export class Log {
  /** ``goTo(path)`` opens a page of Airflow. */
  constructor(goTo) {
    this.goTo = goTo;
    this.choice = h("select", { "aria-label": "Airflow task", "data-key": "log task", change: () => this.read() });
    this.body = h("div");
    this.element = h("div", null, h("div.tools", null, this.choice, h("button", { type: "button", "data-key": "log again", click: () => this.load(this.dag) }, "Read again"),
      h("a", { href: "#", "data-key": "log in airflow", click: (event) => { event.preventDefault(); goTo(this.path); } }, "Whole log in Airflow")), this.body);
  }

  /** Read the log of the newest run of a DAG. */
  async load(dag) {
    this.dag = dag;
    this.path = `/dags/${encodeURIComponent(dag)}`;
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
    if (!task) return replace(this.body, h("p.empty", null, "Airflow has not started the connector's DAG yet."));
    this.path = `/dags/${encodeURIComponent(this.dag)}/runs/${encodeURIComponent(this.run)}/tasks/${encodeURIComponent(task.task_id)}`;
    return this.attempt(async () => {
      const lines = await taskLog(this.dag, this.run, task, LINES);
      const text = h("pre.log", { tabindex: "0", "aria-label": "End of the log" }, lines.map(line).join("\n"));
      replace(this.body, text);
      text.scrollTop = text.scrollHeight;
    });
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

/** Return a line of Airflow's structured log as text. */
export function line(text) {
  try {
    const { timestamp, level, event } = JSON.parse(text);
    return [timestamp?.slice(0, 19).replace("T", " "), level?.toUpperCase(), event].filter(Boolean).join(" ");
  } catch {
    return text;
  }
}
