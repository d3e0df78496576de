// Sends requests to the API server. URLs are relative to the page, so they do not depend on Airflow's base path.

const REST = new URL("..", document.baseURI);
const OWN = new URL("api/", document.baseURI);

/** A request that failed, with a message for the user. ``status`` is 0 if there was no response. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const overview = (dag) => get(new URL(dag === null ? "overview" : `overview?dag=${encodeURIComponent(dag)}`, OWN));
export const details = (name) => get(new URL(`connectors/${part(name)}`, OWN));
export const deadLetters = (name) => get(new URL(`connectors/${part(name)}/dead-letters`, OWN));
export const offsets = (name) => get(new URL(`connectors/${part(name)}/offsets`, REST));

export function history(names) {
  const query = new URLSearchParams(names.map((name) => ["name", name]));
  return names.length ? get(new URL(`history?${query}`, OWN)) : Promise.resolve({});
}

/** Pause, resume, stop or restart a connector through Connect's REST API. */
export function act(name, action) {
  const [method, path] = { restart: ["POST", "restart?includeTasks=true"] }[action] ?? ["PUT", action];
  return send(new URL(`connectors/${part(name)}/${path}`, REST), method);
}

const get = (url) => send(url, "GET");

async function send(url, method) {
  let response;
  try {
    response = await fetch(url, { method, headers: { Accept: "application/json" }, signal: AbortSignal.timeout(60000) });
  } catch {
    throw new RequestError(0, "Airflow's API server does not respond. Check that it is running.");
  }
  const isJson = (response.headers.get("content-type") ?? "").startsWith("application/json");
  const body = isJson ? await response.json() : null;
  if (response.ok) return body;
  throw new RequestError(response.status, errorMessage(response.status, body));
}

function errorMessage(status, body) {
  if (status === 401) return "Your session has ended. Reload Airflow to log in again.";
  if (status === 403) return "You do not have the right to edit the connector's DAG.";
  return body?.message ?? `The API server responded with status ${status}. See its log.`;
}

function part(name) {
  return encodeURIComponent(name);
}
