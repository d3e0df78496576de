// Draws a connector's buttons, and performs their actions.

import { RequestError, act } from "./api.js";
import { h } from "./dom.js";

const ACTIONS = {
  pause: { label: "Pause", done: "pause requested" },
  resume: { label: "Resume", done: "resume requested" },
  restart: { label: "Restart", done: "restart requested, with its tasks" },
  stop: {
    label: "Stop", done: "stop requested",
    question: "Its tasks end and free their slots. Its offsets are kept, and a resumed connector continues from them.",
  },
};

/** Return a connector's buttons. They are disabled if they have no effect now, or the user may not use them. */
export function buttons(row, changed) {
  const inactive = row.target !== "STARTED";
  const shown = [inactive ? "resume" : "pause", "restart", "stop"];
  return h("div.buttons", { role: "group", "aria-label": `Actions on ${row.name}` }, shown.map((action) => {
    const noEffect = (action === "restart" && inactive) || (action === "stop" && row.target === "STOPPED");
    const disabled = !row.may_edit || noEffect;
    return h(`button.action.${action}`, {
      type: "button", "data-key": `${action} ${row.name}`, "data-action": action, disabled,
      "aria-label": `${ACTIONS[action].label} ${row.name}`, title: row.may_edit ? null : "Requires the right to edit the connector's DAG",
      click: (event) => run(row.name, action, event.currentTarget, changed),
    }, ACTIONS[action].label);
  }));
}

async function run(name, action, button, changed) {
  const { label, done, question } = ACTIONS[action];
  if (question && !(await confirmed(`${label} ${name}?`, question, label))) return;
  button.disabled = true;
  try {
    await act(name, action);
    say(`${name}: ${done}.`);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    say(`Cannot ${action} ${name}: ${error.message}`, true);
    button.disabled = error.status === 403;
  }
  changed();
}

/** Show the result of an action: for 5 seconds, or 15 for an error. */
export function say(text, isError = false) {
  const element = document.getElementById("message");
  element.textContent = text;
  element.classList.toggle("error", isError);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { element.textContent = ""; }, isError ? 15000 : 5000);
}

// The page's frame in Airflow may not open the browser's own dialogs.
function confirmed(title, text, yes) {
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  document.getElementById("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
