// Draws the buttons of connectors and tasks, and performs their actions.

import { RequestError, act, config, remove, restartTask } from "./api.js";
import { confirmed, say } from "./dialog.js";
import { h } from "./dom.js";
import { Preview } from "./preview.js";
import { ofConnector } from "./route.js";

const ACTIONS = {
  pause: { label: "Pause", done: "pause requested" },
  resume: { label: "Resume", done: "resume requested" },
  restart: { label: "Restart", done: "restart requested, with its tasks" },
  stop: {
    label: "Stop", done: "stop requested",
    question: "Its tasks end and free their slots. Its offsets are kept, and a resumed connector continues from them.",
  },
};

export const REFUSED = "Requires the right to edit the connector's DAG";

/** Return by which DAG and task a connector's config is set, in whose file it is to be changed. */
export const setBy = (dag, task) => `The config is set by DAG ${dag}, task ${task}: change it in the DAG's file`;

/** Return a connector's buttons. They are disabled if they have no effect now, or the user may not use them. */
export function buttons(row, changed) {
  const inactive = row.target !== "STARTED";
  const shown = [inactive ? "resume" : "pause", "restart", "stop"];
  return h("div.buttons", { role: "group", "aria-label": `Actions on ${row.name}` }, shown.map((action) => {
    const noEffect = (action === "restart" && inactive) || (action === "stop" && row.target === "STOPPED");
    const disabled = !row.may_edit || noEffect;
    return h(`button.action.${action}`, {
      type: "button", "data-key": `${action} ${row.name}`, "data-action": action, disabled,
      "aria-label": `${ACTIONS[action].label} ${row.name}`, title: row.may_edit ? null : REFUSED,
      click: (event) => run(row.name, action, event.currentTarget, changed),
    }, ACTIONS[action].label);
  }));
}

/** Return the buttons that open editors of a connector's config and offsets, show a preview or its history, or delete it. ``go(hash)`` opens another part of the page. */
export function configButtons(row, go) {
  const refused = row.may_edit ? null : REFUSED;
  const noCreation = row.may_create ? null : "Requires the right to create DAGs";
  const open = (view, label, reason) => h("button", {
    type: "button", "data-key": `${view} ${row.name}`, "data-action": view, disabled: Boolean(reason), title: reason,
    click: () => go(ofConnector(row.name, view)),
  }, label);
  return h("div.buttons", { role: "group", "aria-label": `Config of ${row.name}` },
    open("edit", "Edit", refused ?? (row.config_task ? setBy(row.dag, row.config_task) : null)), open("clone", "Clone", noCreation),
    h("button", {
      type: "button", "data-key": `preview ${row.name}`, "data-action": "preview", disabled: Boolean(noCreation), title: noCreation,
      click: () => new Preview().open(`Preview of ${row.name}`, () => config(row.name)),
    }, "Preview"), open("history", "History", null),
    open("offsets", "Edit offsets", refused ?? (row.target === "STOPPED" ? null : "Stop the connector first")),
    h("button.danger", {
      type: "button", "data-key": `delete ${row.name}`, "data-action": "delete", disabled: !row.may_edit, title: refused,
      click: (event) => removed(row, event.currentTarget, go),
    }, "Delete"));
}

/** Return the button that restarts one task. */
export function taskButton(name, task, mayEdit, changed) {
  return h("button.small", {
    type: "button", "data-key": `restart task ${task}`, disabled: !mayEdit, "aria-label": `Restart task ${task}`, title: mayEdit ? null : REFUSED,
    click: (event) => attempt(event.currentTarget, `restart task ${task} of ${name}`, async () => {
      await restartTask(name, task);
      say(`${name}: restart of task ${task} requested.`);
      changed();
    }),
  }, "Restart");
}

async function run(name, action, button, changed) {
  const { label, done, question } = ACTIONS[action];
  if (question && !(await confirmed(`${label} ${name}?`, question, label))) return;
  await attempt(button, `${action} ${name}`, async () => {
    await act(name, action);
    say(`${name}: ${done}.`);
  });
  changed();
}

async function removed({ name, dag, config_task: task }, button, go) {
  const text = "Its tasks end, and its config and statuses are removed. Its offsets are kept: a new connector of this name continues from them.";
  const again = task ? ` The next run of DAG ${dag} creates it again: pause the DAG, or remove the connector from its file, first.` : "";
  if (!(await confirmed(`Delete ${name}?`, text + again, "Delete"))) return;
  await attempt(button, `delete ${name}`, async () => {
    await remove(name);
    say(`${name}: deleted.`);
    go("#");
  });
}

/** Perform an action while its button is disabled, and show the error if it fails. */
export async function attempt(button, what, action) {
  button.disabled = true;
  try {
    await action();
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    say(`Cannot ${what}: ${error.message}`, true);
    button.disabled = error.status === 403;
    return;
  }
  button.disabled = false;
}
