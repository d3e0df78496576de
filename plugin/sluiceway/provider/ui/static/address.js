// Keeps what the page shows in the address of Airflow's page that frames it, so that it can be bookmarked, shared, and reloaded.

/** Show the part of the page that Airflow's address names, if the page's own names none. */
export function adoptAddress() {
  const outside = framing();
  if (outside?.location.hash && !window.location.hash) window.location.replace(outside.location.hash);
}

/** Name the part of the page that is shown in Airflow's address, without an entry in the history: the frame makes those. */
export function publishAddress() {
  const outside = framing();
  if (!outside || outside.location.hash === window.location.hash) return;
  const { pathname, search } = outside.location;
  outside.history.replaceState(outside.history.state, "", `${pathname}${search}${window.location.hash}`);
}

function framing() {
  try {
    return window.parent === window || !window.parent.location.href ? null : window.parent;
  } catch {
    return null; // the parent has another origin
  }
}
