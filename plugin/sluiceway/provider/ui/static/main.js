// Keeps what is shown up to date: asks every few seconds while the page is visible, and quickly after an action.

import { Refused, details, history, overview } from "./api.js";
import { Detail } from "./detail.js";
import { h } from "./dom.js";
import { List } from "./list.js";
import { followTheme } from "./theme.js";

const SECONDS = 5;
const QUICK_SECONDS = 1;
const QUICK_TIMES = 15; // how often it is asked quickly after an action

const dag = new URLSearchParams(window.location.search).get("dag");
const place = document.getElementById("view");
const list = new List({ open, changed, paged: remember });
let detail = null;
let quick = 0;
let timer = 0;
let round = 0;

function show(element) {
  if (place.firstElementChild !== element) place.replaceChildren(element);
}

function tell(problem) {
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
    if (!(error instanceof Refused)) throw error;
    if (mine === round) tell(error.message);
  } finally {
    if (mine === round && !document.hidden) timer = setTimeout(refresh, 1000 * (quick-- > 0 ? QUICK_SECONDS : SECONDS));
  }
}

async function refreshList(mine) {
  const found = await overview(dag);
  if (mine !== round) return;
  tell(found.problem && `What Kafka knows of the connectors is not up to date: ${found.problem}`);
  if (dag !== null && found.connectors.length < 2) return void only(found.connectors[0]);
  show(list.element);
  list.show(found.connectors);
  await remember();
}

/** In a DAG's tab: show the one connector that the DAG runs. */
async function only(row) {
  if (row) return open(row.name);
  return show(h("div.empty", null, h("h2", null, "This DAG runs no connector"),
    h("p", null, "A connector's DAG is made from its config, or is one whose id the config names in airflow.dag. All connectors are listed under Connect in Airflow's navigation.")));
}

async function refreshDetail(shown, mine) {
  try {
    const found = await details(shown.name);
    if (mine !== round) return;
    tell(found.problem && `What Kafka knows of the connector is not up to date: ${found.problem}`);
    shown.show(found);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    if (mine === round) shown.gone("There is no such connector any more.");
  }
}

async function remember() {
  const names = [...list.shown];
  const histories = await history(names).catch((error) => {
    if (error instanceof Refused) return null;
    throw error;
  });
  if (histories && !detail) list.remember(histories);
}

function changed() {
  quick = QUICK_TIMES;
  refresh();
}

/** Show a connector; its name is in the address, so that a reload and the browser's way back find it. */
function open(name) {
  const address = `#${encodeURIComponent(name)}`;
  if (window.location.hash === address) follow();
  else if (dag === null) window.location.hash = address;
  else { window.history.replaceState(null, "", address); follow(); }
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

// Airflow's frame may not navigate the page around it, so the page around it does.
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
