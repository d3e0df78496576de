// Refreshes the page every few seconds while it is visible, and every second after an action.

import { RequestError, details, history, overview } from "./api.js";
import { Detail } from "./detail.js";
import { h } from "./dom.js";
import { List } from "./list.js";
import { followTheme } from "./theme.js";

const SECONDS = 5;
const QUICK_SECONDS = 1;
const TYPING_MILLISECONDS = 150;
const QUICK_TIMES = 15; // refreshes at the higher rate after an action

const dag = new URLSearchParams(window.location.search).get("dag");
const view = document.getElementById("view");
const list = new List({ open, changed, paged: rememberSoon });
let detail = null;
let quick = 0;
let timer = 0;
let round = 0;
let soon = 0;

function show(element) {
  if (view.firstElementChild !== element) view.replaceChildren(element);
}

function showProblem(problem) {
  const banner = document.getElementById("problem");
  banner.hidden = !problem;
  banner.textContent = problem ?? "";
}

async function refresh() {
  const mine = ++round;
  clearTimeout(timer);
  try {
    await (detail ? refreshDetail(detail, mine) : refreshList(mine));
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (mine === round) showProblem(error.message);
  } finally {
    if (mine === round && !document.hidden) timer = setTimeout(refresh, 1000 * (quick-- > 0 ? QUICK_SECONDS : SECONDS));
  }
}

async function refreshList(mine) {
  const found = await overview(dag);
  if (mine !== round) return;
  showProblem(found.problem && `Rates, lags and dead letter counts are not up to date: ${found.problem}`);
  if (dag !== null && found.connectors.length < 2) return void only(found.connectors[0]);
  show(list.element);
  list.show(found.connectors);
  await remember();
}

/** In the tab of a DAG that runs one connector, show that connector. */
async function only(row) {
  if (row) return open(row.name);
  return show(h("div.empty", null, h("h2", null, "This DAG runs no connectors"),
    h("p", null, "A connector's DAG is generated from its config, or is the one named in the config's airflow.dag. Connect in Airflow's navigation lists all connectors.")));
}

async function refreshDetail(shown, mine) {
  try {
    const found = await details(shown.name);
    if (mine !== round) return;
    showProblem(found.problem && `Rates, lag and offsets are not up to date: ${found.problem}`);
    shown.show(found);
  } catch (error) {
    if (!(error instanceof RequestError) || error.status !== 404) throw error;
    if (mine === round) shown.gone("The connector was deleted.");
  }
}

async function remember() {
  const names = [...list.shown];
  const histories = await history(names).catch((error) => {
    if (error instanceof RequestError) return null;
    throw error;
  });
  if (histories && !detail) list.remember(histories);
}

/** Wait for the end of the typing: each letter in the filter shows other rows. */
function rememberSoon() {
  clearTimeout(soon);
  soon = setTimeout(remember, TYPING_MILLISECONDS);
}

function changed() {
  quick = QUICK_TIMES;
  refresh();
}

/** Show a connector. Its name is part of the URL, so that a reload and the browser's Back button work. */
function open(name) {
  const hash = `#${encodeURIComponent(name)}`;
  if (window.location.hash === hash) follow();
  else if (dag === null) window.location.hash = hash;
  else { window.history.replaceState(null, "", hash); follow(); }
}

function follow() {
  const name = decoded(window.location.hash.slice(1));
  if (name && detail?.name !== name) {
    const back = dag === null || list.all.length > 1 ? () => { window.location.hash = ""; } : null;
    detail = new Detail(name, { back, changed, goTo, inDag: dag !== null });
    show(detail.element);
  } else if (!name) {
    detail = null;
    if (list.all.length) show(list.element);
  }
  refresh();
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

// A framed page may not navigate its parent, so the link is created and clicked in the parent's document.
function goTo(path) {
  const outside = window.parent.document;
  const base = new URL(outside.baseURI).pathname.replace(/\/$/, "");
  const link = outside.createElement("a");
  link.href = base + path;
  link.click();
}

followTheme();
window.addEventListener("hashchange", follow);
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
follow();
