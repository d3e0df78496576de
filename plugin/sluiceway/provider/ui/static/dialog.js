// Asks for confirmation, and shows the result of an action.

/** Show the result of an action: for 5 seconds, or 15 for an error. */
export function say(text, isError = false) {
  const element = document.getElementById("message");
  element.textContent = text;
  element.classList.toggle("error", isError);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { element.textContent = ""; }, isError ? 15000 : 5000);
}

/** Open a dialog. When it closes, the focus returns to where it was, or to what was drawn in its place meanwhile. */
export function showModal(dialog) {
  const focused = document.activeElement;
  const key = focused?.closest("[data-key]")?.dataset.key;
  dialog.showModal();
  dialog.addEventListener("close", () => {
    if (focused?.isConnected || key === undefined) return;
    [...document.querySelectorAll("[data-key]")].find((each) => each.dataset.key === key)?.focus();
  }, { once: true });
}

/** Ask in a dialog; resolves to true if the user agrees. The page's frame in Airflow may not open the browser's own dialogs. */
export function confirmed(title, text, yes) {
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  document.getElementById("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  showModal(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
