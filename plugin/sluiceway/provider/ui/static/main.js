// Shows the part of the page that the URL names. Refreshes the list and a connector's details every few seconds while they are
// visible, and every second after an action.

import { adoptAddress, publishAddress } from "./address.js";
import { RequestError, details, flow as flowOf, history, moves as movesOf, overview } from "./api.js";
import { Detail } from "./detail.js";
import { h } from "./dom.js";
import { Editor } from "./editor.js";
import { History } from "./history.js";
import { List } from "./list.js";
import { Moves } from "./moves.js";
import { OffsetsEditor } from "./offsets.js";
import { PluginPage, Plugins } from "./plugins.js";
import { ofConnector, parsed } from "./route.js";
import { followTheme } from "./theme.js";

const SECONDS = 5;
const QUICK_SECONDS = 1;
const TYPING_MILLISECONDS = 150;
const QUICK_TIMES = 15; // refreshes at the higher rate after an action

const dag = new URLSearchParams(window.location.search).get("dag");
const view = document.getElementById("view");
const list = new List({ open, go, goTo, changed, paged: rememberSoon });
const editors = new Map(); // by hash: what was entered is still there after a look at something else
let detail = null;
let flow = null; // kept, with its filter
let isFlow = false;
let moves = null;
let isMoves = false;
let isStill = false; // whether the page shows something that is not refreshed
let mayCreate = true;
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
  if (isStill) return;
  try {
    await (detail ? refreshDetail(detail, mine) : isFlow ? refreshFlow(mine) : isMoves ? refreshMoves(mine) : refreshList(mine));
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    if (mine === round) showProblem(error.message);
  } finally {
    if (mine === round && !document.hidden) timer = setTimeout(refresh, 1000 * (quick-- > 0 ? QUICK_SECONDS : SECONDS));
  }
}

const outdated = (problem) => problem && `Rates, lags and dead letter counts are not up to date: ${problem}`;

async function refreshList(mine) {
  const found = await overview(dag);
  if (mine !== round) return;
  showProblem(outdated(found.problem));
  if (dag !== null && found.connectors.length < 2) return void only(found.connectors[0]);
  mayCreate = found.may_create;
  show(list.element);
  list.show(found.connectors, mayCreate, found.other_cluster);
  await remember();
}

/** In the tab of a DAG that runs one connector, show that connector. */
async function only(row) {
  if (row) return open(row.name);
  return show(h("div.empty", null, h("h2", null, "This DAG runs no connectors"),
    h("p", null, "A connector's DAG is generated from its config, or is the one named in the config's airflow.dag. Connect in Airflow's navigation lists all connectors.")));
}

/** The code that draws is loaded with the first look at it. */
async function refreshFlow(mine) {
  const [{ Flow }, found] = await Promise.all([import("./flow.js"), flowOf(dag)]);
  if (mine !== round) return;
  showProblem(outdated(found.problem));
  flow ??= new Flow({ open, back: () => go("#") });
  show(flow.element);
  flow.show(found);
}

async function refreshMoves(mine) {
  const found = await movesOf();
  if (mine !== round) return;
  showProblem(found.problem);
  moves ??= new Moves({ open, back: () => go("#") });
  show(moves.element);
  moves.show(found);
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
  if (histories && !detail && !isFlow && !isMoves) list.remember(histories);
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

function open(name) {
  go(ofConnector(name));
}

/** Show another part of the page. It is named in the URL, so that a reload and the browser's Back button work. */
function go(hash) {
  if (window.location.hash === hash) follow();
  else if (dag === null) window.location.hash = hash;
  else { window.history.replaceState(null, "", hash); follow(); }
}

function follow() {
  publishAddress();
  const route = parsed(window.location.hash);
  isStill = !["list", "detail", "flow", "moves"].includes(route.view);
  if (route.view !== "detail") detail = null;
  isFlow = route.view === "flow";
  isMoves = route.view === "moves";
  if (isStill) {
    showProblem(null);
    show(still(route).element);
  } else if (route.view === "detail" && detail?.name !== route.name) {
    const back = dag === null || list.all.length > 1 ? () => go("#") : null;
    detail = new Detail(route.name, { back, changed, go, goTo, inDag: dag !== null });
    show(detail.element);
  } else if (isFlow && flow) show(flow.element);
  else if (isMoves && moves) show(moves.element);
  else if (route.view === "list" && list.all.length) show(list.element);
  refresh();
}

/** Return a part of the page that is not refreshed. */
function still(route) {
  if (route.view === "plugins") return new Plugins({ go });
  if (route.view === "plugin") return new PluginPage(route.plugin, { go, mayCreate: () => mayCreate });
  if (route.view === "history") return new History(route.name, { left: () => go(ofConnector(route.name)) });
  const { hash } = window.location;
  const closed = (next) => () => { editors.delete(hash); go(next); };
  if (!editors.has(hash)) editors.set(hash, editor(route, closed));
  return editors.get(hash);
}

function editor(route, closed) {
  if (route.view === "offsets") {
    const back = closed(ofConnector(route.name));
    return new OffsetsEditor(route.name, { done: back, left: back });
  }
  const left = closed(route.view === "create" ? "#/plugins" : ofConnector(route.name));
  return new Editor(route, { done: (name) => { closed(ofConnector(name))(); changed(); }, left });
}

// A framed page may not navigate its parent or open a tab, so the link is created and clicked in the parent's document.
function goTo(path) {
  const outside = window.parent.document;
  const link = outside.createElement("a");
  if (path.startsWith("/")) link.href = new URL(outside.baseURI).pathname.replace(/\/$/, "") + path;
  else Object.assign(link, { href: path, target: "_blank", rel: "noreferrer" });
  link.click();
}

followTheme();
adoptAddress();
window.addEventListener("hashchange", follow);
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
follow();
