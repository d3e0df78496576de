// Shows changes of a config or of offsets before they are saved.

import { RequestError } from "./api.js";
import { changes } from "./config.js";
import { showModal } from "./dialog.js";
import { h } from "./dom.js";

export class Review {
  constructor() {
    this.dialog = document.getElementById("review");
  }

  /**
   * Show the changes in a dialog; resolves to whether they were saved. ``save()`` sends them, and its error is shown in the dialog.
   * ``show(key, value)`` returns a value as it may be shown. ``hasChanged``: another user has changed the config meanwhile.
   * ``label`` is that of the button which saves.
   */
  ask({ title, before, after, show, isEdit, hasChanged = false, label = isEdit ? "Save" : "Create", save }) {
    const found = changes(before, after);
    const failure = h("p.banner", { role: "alert", hidden: true });
    let saved = false;
    const yes = h("button.main", { type: "button", disabled: isEdit && !found.length, click: async () => {
      yes.disabled = true;
      try {
        await save();
        saved = true;
        this.dialog.close();
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        failure.textContent = error.message;
        failure.hidden = false;
        yes.disabled = false;
      }
    } }, label);
    this.dialog.replaceChildren(
      h("h2", { id: "review-title" }, title),
      hasChanged ? h("p.banner", null, "Somebody has changed this config since you began. Their changes are undone where this list shows a change that is not yours.") : "",
      failure, found.length ? changesTable(found, show, { isEdit }) : h("p.empty", null, "Nothing has changed."),
      h("div.actions", null, h("button", { type: "button", click: () => this.dialog.close() }, "Back"), yes),
    );
    showModal(this.dialog);
    return new Promise((resolve) => { this.dialog.addEventListener("close", () => resolve(saved), { once: true }); });
  }
}

/** Return a table of changes, which are {key, before, after}; only of the values after it unless ``isEdit``. */
export function changesTable(found, show, { isEdit = true, label = "Changes" } = {}) {
  const columns = isEdit ? ["Key", "Before", "After"] : ["Key", "Value"];
  return h("div.scroll", { tabindex: "0", role: "region", "aria-label": label }, h("table.changes", null,
    h("thead", null, h("tr", null, columns.map((label) => h("th", { scope: "col" }, label)))),
    h("tbody", null, found.map(({ key, before, after }) => h("tr", { "data-change": key }, h("th", { scope: "row" }, h("code", null, key)),
      isEdit ? h("td.before", null, cell(key, before, show, "del")) : null, h("td.after", null, cell(key, after, show, "ins")))))));
}

function cell(key, value, show, tag) {
  return value === undefined ? h("span.unknown", null, "not set") : h(tag, null, h("code", null, show(key, value)));
}
