// Sends requests to the API server. URLs are relative to the page, so they do not depend on Airflow's base path.

const REST = new URL("..", document.baseURI);
const OWN = new URL("api/", document.baseURI);
const AIRFLOW = new URL("../../api/v2/", document.baseURI);

/** A request that failed, with a message for the user. ``status`` is 0 if there was no response. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const ofDag = (path, dag) => get(new URL(dag === null ? path : `${path}?dag=${encodeURIComponent(dag)}`, OWN));

export const overview = (dag) => ofDag("overview", dag);
export const flow = (dag) => ofDag("flow", dag);
export const moves = () => get(new URL("moves", OWN));
export const details = (name) => get(new URL(`connectors/${part(name)}`, OWN));
export const deadLetters = (name) => get(new URL(`connectors/${part(name)}/dead-letters`, OWN));
export const intervals = (name) => get(new URL(`connectors/${part(name)}/intervals`, REST));
export const offsets = (name) => get(new URL(`connectors/${part(name)}/offsets`, REST));

export function history(names) {
  const query = new URLSearchParams(names.map((name) => ["name", name]));
  return names.length ? get(new URL(`history?${query}`, OWN)) : Promise.resolve({});
}

export const config = (name) => get(new URL(`connectors/${part(name)}/config`, REST));
/** Return the installed plugins: what each connects, and what it does. */
export const plugins = () => get(new URL("plugins", OWN));
export const pluginConfig = (plugin) => get(new URL(`connector-plugins/${part(plugin)}/config`, REST));

/** Return the definitions of the keys that Connect does not have, and the values that keys of a plugin may have: {own, choices}. */
export const knownKeys = (plugin) => get(new URL(`keys?plugin=${part(plugin)}`, OWN));

export const validate = (plugin, config) => send(new URL(`connector-plugins/${part(plugin)}/config/validate`, REST), "PUT", JSON.stringify(config));

const STARTING_SECONDS = 90; // that the process of a preview may take to start on a busy machine

export function preview(plugin, config, { records, seconds, fromBeginning }) {
  const query = new URLSearchParams({ records, seconds, fromBeginning });
  const url = new URL(`connector-plugins/${part(plugin)}/config/preview?${query}`, REST);
  return send(url, "POST", JSON.stringify(config), { seconds: Number(seconds) + STARTING_SECONDS });
}

export const create = (name, config, initial) => send(new URL("connectors", REST), "POST", JSON.stringify({ name, config, initial_state: initial }));
export const putConfig = (name, config) => send(new URL(`connectors/${part(name)}/config`, REST), "PUT", JSON.stringify(config));
export const remove = (name) => send(new URL(`connectors/${part(name)}`, REST), "DELETE");
export const restartTask = (name, task) => send(new URL(`connectors/${part(name)}/tasks/${task}/restart`, REST), "POST");

/** Return dead letter queue records with their keys and values, which users see who may edit the connector. */
export const deadLetterRecords = (name, limit) => get(new URL(`connectors/${part(name)}/dead-letters?limit=${limit}`, REST));
export const replay = (name, records, topic) => send(new URL(`connectors/${part(name)}/dead-letters/replay`, REST), "POST", JSON.stringify({ records, topic }));

/** Return the offsets of a connector as the text of the response, since numbers in them may exceed those of JavaScript. */
export const offsetsText = (name) => send(new URL(`connectors/${part(name)}/offsets`, REST), "GET", null, { read: text });
export const foundOffsetsText = (name, query) => send(new URL(`connectors/${part(name)}/offsets/find?${query}`, REST), "GET", null, { read: text });
export const alterOffsets = (name, body) => send(new URL(`connectors/${part(name)}/offsets`, REST), "PATCH", body);
export const resetOffsets = (name) => send(new URL(`connectors/${part(name)}/offsets`, REST), "DELETE");

/** Return the changes of a connector as the text of the response, since they contain offsets. */
export const changesText = (name) => send(new URL(`connectors/${part(name)}/history`, REST), "GET", null, { read: text });
export const rollBack = (name, version) => send(new URL(`connectors/${part(name)}/rollback`, REST), "POST", JSON.stringify({ version }));

/** Return the newest run of a DAG. Airflow's own API, under Airflow's permissions. */
export const dagRuns = (dag) => get(new URL(`dags/${part(dag)}/dagRuns?limit=1&order_by=-run_after`, AIRFLOW));
export const taskInstances = (dag, run) => get(new URL(`dags/${part(dag)}/dagRuns/${part(run)}/taskInstances`, AIRFLOW));

/** Clear all tasks of a run, so that they run again. Airflow's own API, under Airflow's permissions. */
export function clearRun(dag, run) {
  const body = { dry_run: false, dag_run_id: run, only_failed: false };
  return send(new URL(`dags/${part(dag)}/clearTaskInstances`, AIRFLOW), "POST", JSON.stringify(body));
}

/** Return the links that the operator of a task offers, such as to Spark's UI. */
export function taskLinks(dag, run, { task_id: task, map_index: index }) {
  return get(new URL(`dags/${part(dag)}/dagRuns/${part(run)}/taskInstances/${part(task)}/links?map_index=${index}`, AIRFLOW));
}

/** Return the last lines of a task's log, each the JSON text of an event. The whole log passes through, but is not kept. */
export function taskLog(dag, run, { task_id: task, try_number: attempt, map_index: index }, count) {
  const url = new URL(`dags/${part(dag)}/dagRuns/${part(run)}/taskInstances/${part(task)}/logs/${attempt}?map_index=${index}`, AIRFLOW);
  return send(url, "GET", null, { read: (response) => lastLines(response, count), accept: "application/x-ndjson" });
}

async function lastLines(response, count) {
  let lines = [], rest = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const found = (rest + part.value).split("\n");
    rest = found.pop();
    lines = [...lines, ...found].slice(-count);
  }
  return [...lines, rest].filter(Boolean).slice(-count);
}

/** Pause, resume, stop or restart a connector through Connect's REST API. */
export function act(name, action) {
  const [method, path] = { restart: ["POST", "restart?includeTasks=true"] }[action] ?? ["PUT", action];
  return send(new URL(`connectors/${part(name)}/${path}`, REST), method);
}

const get = (url) => send(url, "GET");

/** Send a request with a JSON body, and return the JSON of the response, or what ``read`` returns for it, within some seconds. */
async function send(url, method, body = null, { read = json, accept = "application/json", seconds = 60 } = {}) {
  let response;
  const headers = { Accept: accept, ...(body === null ? {} : { "Content-Type": "application/json" }) };
  try {
    response = await fetch(url, { method, headers, body, signal: AbortSignal.timeout(1000 * seconds) });
  } catch {
    throw new RequestError(0, "Airflow's API server does not respond. Check that it is running.");
  }
  if (response.ok) return read(response);
  throw new RequestError(response.status, errorMessage(response.status, await json(response)));
}

const text = (response) => response.text();

async function json(response) {
  const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
  const body = isJson ? await response.text() : "";
  return body === "" ? null : JSON.parse(body);
}

function errorMessage(status, body) {
  if (status === 401) return "Your session has ended. Reload Airflow to log in again.";
  if (status === 403) return "You do not have the right to do this. Changes need the right to edit the connector's DAG, new connectors that to create DAGs.";
  return body?.message ?? `The API server responded with status ${status}. See its log.`;
}

function part(name) {
  return encodeURIComponent(name);
}
