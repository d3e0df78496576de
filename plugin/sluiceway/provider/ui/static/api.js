// Asks the API server. Addresses are relative to the page, so they hold wherever Airflow is mounted.

const REST = new URL("..", document.baseURI);
const OWN = new URL("api/", document.baseURI);

export class Refused extends Error {
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

/** Do something to a connector, through Connect's REST API. */
export function act(name, action) {
  const [method, path] = { restart: ["POST", "restart?includeTasks=true"] }[action] ?? ["PUT", action];
  return ask(new URL(`connectors/${part(name)}/${path}`, REST), method);
}

const get = (url) => ask(url, "GET");

async function ask(url, method) {
  let answer;
  try {
    answer = await fetch(url, { method, headers: { Accept: "application/json" }, signal: AbortSignal.timeout(60000) });
  } catch {
    throw new Refused(0, "Airflow's API server does not answer.");
  }
  const isJson = (answer.headers.get("content-type") ?? "").startsWith("application/json");
  const body = isJson ? await answer.json() : null;
  if (answer.ok) return body;
  throw new Refused(answer.status, explained(answer.status, body));
}

function explained(status, body) {
  if (status === 401) return "Your session has ended. Reload Airflow to log in again.";
  if (status === 403) return "You may not do this: it takes the right to edit the connector's DAG.";
  return body?.message ?? `The API server answered ${status}.`;
}

function part(name) {
  return encodeURIComponent(name);
}
