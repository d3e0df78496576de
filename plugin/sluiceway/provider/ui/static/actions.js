// The buttons of a connector, and what they do.

import { Refused, act } from "./api.js";
import { h } from "./dom.js";

const WORDS = {
  pause: { label: "Pause", done: "is asked to pause" },
  resume: { label: "Resume", done: "is asked to run" },
  restart: { label: "Restart", done: "is asked to restart, with its tasks" },
  stop: {
    label: "Stop", done: "is asked to stop",
    question: "Its tasks end and their slots become free. Offsets stay, and resuming the connector goes on from there.",
  },
};

/** Return the buttons that make sense for a connector now; without the right to use them they are there, and off. */
export function buttons(row, changed) {
  const rests = row.target !== "STARTED";
  const shown = [rests ? "resume" : "pause", "restart", "stop"];
  return h("div.buttons", { role: "group", "aria-label": `Actions on ${row.name}` }, shown.map((action) => {
    const pointless = (action === "restart" && rests) || (action === "stop" && row.target === "STOPPED");
    const off = !row.may_edit || pointless;
    return h(`button.action.${action}`, {
      type: "button", "data-key": `${action} ${row.name}`, "data-action": action, disabled: off,
      "aria-label": `${WORDS[action].label} ${row.name}`, title: row.may_edit ? null : "Needs the right to edit the connector's DAG",
      click: (event) => run(row.name, action, event.currentTarget, changed),
    }, WORDS[action].label);
  }));
}

async function run(name, action, button, changed) {
  const { label, done, question } = WORDS[action];
  if (question && !(await confirmed(`${label} ${name}?`, question, label))) return;
  button.disabled = true;
  try {
    await act(name, action);
    say(`${name} ${done}.`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    say(`${label} ${name}: ${error.message}`, true);
    button.disabled = error.status === 403;
  }
  changed();
}

/** Tell what became of an action; gone after some seconds, unless it went wrong. */
export function say(text, wrong = false) {
  const place = document.getElementById("said");
  place.textContent = text;
  place.classList.toggle("wrong", wrong);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { place.textContent = ""; }, wrong ? 15000 : 5000);
}

// A frame in Airflow may not open the browser's own dialogues.
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
