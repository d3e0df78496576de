// Runs a config on a few records without writing anything, and shows in a dialog what would be written.

import { RequestError, preview } from "./api.js";
import { showModal } from "./dialog.js";
import { h, replace } from "./dom.js";
import { drawn } from "./previewed.js";

const RECORDS = [1, 5, 10, 50, 100];
const SECONDS = [10, 30, 60];

export class Preview {
  constructor() {
    this.dialog = document.getElementById("preview");
    this.asked = 0;
    this.records = h("select", { id: "preview-records" }, RECORDS.map((each) => h("option", { value: each, selected: each === 10 }, each)));
    this.seconds = h("select", { id: "preview-seconds" }, SECONDS.map((each) => h("option", { value: each }, each)));
    this.beginning = h("input", { id: "preview-beginning", type: "checkbox" });
    this.button = h("button.main", { type: "submit" }, "Run again");
    this.status = h("p.status", { role: "status" });
    this.body = h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Preview" });
  }

  /** Show a preview; ``read()`` returns the config. */
  open(title, read) {
    this.dialog.replaceChildren(h("h2", { id: "preview-title" }, title),
      h("form.tools", { submit: (event) => { event.preventDefault(); this.run(read); } },
        h("label", { for: "preview-records" }, "Records"), this.records, h("label", { for: "preview-seconds" }, "Seconds at most"), this.seconds,
        h("label", { for: "preview-beginning" }, this.beginning, " From the beginning"), this.button),
      this.status, this.body, h("div.actions", null, h("button", { type: "button", click: () => this.dialog.close() }, "Close")));
    showModal(this.dialog);
    return this.run(read);
  }

  /** Run the preview. Only the result of the latest run is shown. */
  async run(read) {
    const mine = ++this.asked;
    this.status.textContent = "Running on the next records. Nothing is written.";
    this.dialog.setAttribute("aria-busy", "true");
    replace(this.body);
    let status, result;
    try {
      const config = await read();
      const limits = { records: this.records.value, seconds: this.seconds.value, fromBeginning: this.beginning.checked };
      ({ status, result } = drawn(await preview(config["connector.class"] ?? "", config, limits)));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      status = "The preview failed.";
      result = [h("p.banner", null, error.message)];
    }
    if (mine !== this.asked) return;
    this.dialog.setAttribute("aria-busy", "false");
    this.status.textContent = status;
    replace(this.body, ...result);
  }
}
