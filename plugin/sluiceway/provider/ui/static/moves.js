// Shows connectors on this cluster and on the one that they move from or to.

import { h, replace, whenFree } from "./dom.js";
import { count, exact } from "./format.js";
import { tasks, whereabouts } from "./list.js";
import { stateBadge } from "./schedule.js";

const RUN = { here: "Here", there: "There", both: "Both sides", nobody: "Nobody" };

export class Moves {
  /** ``open(name)`` shows a connector, ``back()`` the list. */
  constructor({ open, back }) {
    this.open = open;
    this.about = h("p.about");
    this.body = h("div.body", null, h("p.empty", null, "Loading…"));
    this.element = h("section.moves", { "aria-label": "Moves" }, h("button.back", { type: "button", click: back }, "‹ All connectors"),
      h("header", null, h("h1", null, "Moves")), this.about, this.body);
  }

  show(found) {
    whenFree(() => this.draw(found));
  }

  draw({ cluster, connectors }) {
    const number = (run) => connectors.filter((row) => row.run === run).length;
    const text = Object.entries(RUN).filter(([run]) => number(run)).map(([run, label]) => `${label}: ${exact(number(run))}`).join(", ");
    this.about.textContent = `Connectors here and at ${cluster}, and who runs them. ${text}`;
    if (!connectors.length) return replace(this.body, h("p.empty", null, "Neither side has connectors."));
    return replace(this.body, h("table", { "aria-label": "Moves" },
      h("thead", null, h("tr", null, ["Connector", "Run by", "Here", `At ${cluster}`, "Lag"].map((label) => h("th", { scope: "col" }, label)))),
      h("tbody", null, connectors.map((row) => this.row(row)))));
  }

  row(row) {
    const name = row.here
      ? h("a", { href: `#${encodeURIComponent(row.name)}`, "data-key": `open ${row.name}`, click: (event) => { event.preventDefault(); this.open(row.name); } }, row.name)
      : h("span", null, row.name);
    return h("tr", { "data-connector": row.name, "data-run": row.run },
      h("th", { scope: "row", class: "name" }, name, whereabouts(row) ? h("small.whereabouts", null, whereabouts(row)) : null,
        row.run === "both" ? h("small.error", null, "Both clusters run it, and write its records twice. Stop it on one side.") : null),
      h("td.run", null, RUN[row.run]), h("td.here", null, side(row.here)), h("td.there", null, side(row.there)),
      h("td.lag", null, row.lag === null ? "" : h("span.value", { title: exact(row.lag) }, count(row.lag))));
  }
}

function side(found) {
  if (!found) return h("span.unknown", null, "none");
  const { state, tasks: numbers, workers } = found;
  return [stateBadge(state), " ", Object.keys(numbers).length ? tasks({ tasks: numbers, shown: state }) : "", h("small", null, workers.join(", "))];
}
