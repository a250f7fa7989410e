// All jobs: search, filters, orders; who waits longest stands first.

import { mayAct, suspendedJobs } from "./acts.js";
import { html } from "./dom.js";
import { duration, number } from "./format.js";
import { Rows } from "./rows.js";
import { submission } from "./submission.js";
import { asked, choice, expectedStart, jobAddress, jobName, jobState, latestStart, plain, remember, waited } from "./words.js";

const PAGE = 200;
const ORDERS = {
  name: ([a], [b]) => a.localeCompare(b, "en", { numeric: true }),
  queue: ([, a], [, b]) => a.queue.localeCompare(b.queue),
  priority: ([, a], [, b]) => (a.priority ?? 0) - (b.priority ?? 0),
  age: ([, a], [, b]) => b.created - a.created,
  expected: ([, a], [, b]) => (a.expected?.[0] ?? Infinity) - (b.expected?.[0] ?? Infinity) || 0,
  wait: ([, a], [, b], at) => waited(b, at) - waited(a, at),
  gpus: ([, a], [, b]) => asked(a, "gpu") - asked(b, "gpu"),
  state: ([, a], [, b]) => jobState(a).localeCompare(jobState(b)),
};

export function jobs(store, _, parameters) {
  const search = html("input", { type: "search", value: parameters.get("q") ?? "", oninput: () => set("q", search.value) });
  const queueChoice = html("span");
  const count = html("output", { class: "quiet" });
  const more = html("button", { type: "button", hidden: true, onclick: () => { shown += PAGE; redraw(); } }, "Show more");
  const grid = new Rows("Jobs", [
    { name: "Job", sort: "name", cell: (_, key) => [jobName(store, key), jobAddress(key)] },
    { name: "State", sort: "state", cell: (job) => `${jobState(job)}${jobState(job) === "waiting" && job.phase ? ` (${job.phase})` : ""}` },
    { name: "Queue", sort: "queue", cell: (job) => job.queue },
    { name: "Age", sort: "age", number: true, cell: (job) => duration(Math.max(0, Math.floor(store.at - job.created))) },
    { name: "Wait", sort: "wait", number: true, cell: (job) => duration(waited(job, store.at)) },
    { name: "Expected start", sort: "expected", number: true, cell: (job) => (jobState(job) === "waiting" ? expectedStart(job, store.at) : ""), title: (job) => latestStart(job, store.at) },
    { name: "Pods", cell: (job) => Object.entries(job.pods).map(([state, count]) => `${count} ${state}`).join(", ") },
    { name: "GPUs", sort: "gpus", number: true, cell: (job) => number(asked(job, "gpu")) },
    { name: "Priority", sort: "priority", number: true, cell: (job) => (job.priority ? String(job.priority) : "") },
    { name: "Why it waits", words: true, cell: (job) => (jobState(job) === "waiting" ? job.why ?? "" : "") },
  ], (order) => set("sort", parameters.get("sort") === order ? `-${order}` : order));
  const suspended = html("p", { class: "quiet", hidden: true });
  let shown = PAGE;
  let offered = null;

  const state = choice("State", [["", "all"], ["waiting", "waiting"], ["running", "running"], ["done", "done"]], parameters.get("state") ?? "", (value) => set("state", value));
  const element = html("div", {}, html("div", { class: "choices" }, html("label", {}, "Search ", search), state, queueChoice, count), mayAct() && submission(store), suspended, grid.element, more);

  // They have no PodGroup, so the scheduler does not know of them.
  async function askForSuspended() {
    const names = mayAct() ? await suspendedJobs().catch(() => []) : [];
    suspended.hidden = !names.length;
    suspended.replaceChildren("Suspended: ", ...names.flatMap((name) => [html("a", { href: jobAddress(name) }, plain(name)), " "]));
  }

  function set(name, value) {
    remember(parameters, name, value);
    shown = PAGE;
    redraw();
  }

  function draw(dirty) {
    if (dirty.all) askForSuspended();
    const names = [...new Set([...store.jobs.values()].map((job) => job.queue))].sort().join("\n");
    if (offered !== names) {
      offered = names;
      const options = names ? names.split("\n").map((name) => [name || "-", name || "none"]) : [];
      queueChoice.replaceChildren(choice("Queue", [["", "all"], ...options], parameters.get("queue") ?? "", (value) => set("queue", value)));
    }
    if (dirty.all || dirty.jobs.size || Math.floor(store.at) !== drawnAt) redraw();
  }

  let drawnAt = -1;
  function redraw() {
    drawnAt = Math.floor(store.at);
    const found = selected(store, parameters);
    count.textContent = found.length === store.jobs.size ? `${number(found.length)} ${found.length === 1 ? "job" : "jobs"}` : `${number(found.length)} of ${number(store.jobs.size)} jobs`;
    grid.draw(found.slice(0, shown));
    const sort = parameters.get("sort") ?? "";
    grid.mark(sort.replace("-", ""), sort.startsWith("-"));
    more.hidden = found.length <= shown;
  }

  return { title: "Jobs", element, draw };
}

function selected(store, parameters) {
  const [words, state, queue] = ["q", "state", "queue"].map((name) => parameters.get(name) ?? "");
  const sort = parameters.get("sort") ?? "";
  const order = ORDERS[sort.replace("-", "")];
  const sign = sort.startsWith("-") ? -1 : 1;
  const found = [...store.jobs].filter(([key, job]) =>
    (!words || `${key} ${job.owner ?? ""}`.toLowerCase().includes(words.toLowerCase())) && (!state || jobState(job) === state) && (!queue || job.queue === (queue === "-" ? "" : queue)));
  const rank = { waiting: 0, running: 1, done: 2 };
  return found.sort(order ? (a, b) => sign * order(a, b, store.at) : (a, b) => rank[jobState(a[1])] - rank[jobState(b[1])] || a[1].created - b[1].created);
}
