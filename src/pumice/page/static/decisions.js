// The last cycles that decided something; one of them action by action.

import { bars } from "./charts.js";
import { html } from "./dom.js";
import { clock, number } from "./format.js";
import { Rows } from "./rows.js";
import { jobAddress, jobName, nodeAddress, plain } from "./words.js";

const MOST_ROWS = 60;

export function decisions(store, subject) {
  const said = html("p", { class: "figures" });
  const cycles = new Rows("Cycles that decided something, the newest first", [
    { name: "Cycle", number: true, cell: (cycle) => [cycle.number, `#/decisions/${cycle.number}`] },
    { name: "Time", cell: (cycle) => clock(cycle.at) },
    { name: "Took", number: true, cell: (cycle) => `${number(cycle.took_ms)} ms` },
    { name: "Bound", number: true, cell: (cycle) => number(cycle.bound) },
    { name: "Evicted", number: true, cell: (cycle) => number(cycle.evicted) },
    { name: "Waiting", number: true, cell: (cycle) => number(cycle.waiting) },
    { name: "For whom", cell: (cycle) => [...new Set(cycle.binds.map(([, of]) => jobName(store, of)))].slice(0, 4).join(", ") },
  ]);
  const detail = html("section", { class: "cycle", hidden: true });
  const element = html("div", {}, said, detail, cycles.element);
  let shown = null;

  function draw(dirty) {
    const idle = store.count - store.cycles.length;
    said.textContent = store.cycles.length ? `${number(store.count)} cycles so far, of which ${number(store.cycles.length)} are shown; ${number(idle)} decided nothing or are too long ago.` : `${number(store.count)} cycles so far; none has decided anything yet.`;
    cycles.element.hidden = !store.cycles.length;
    if (dirty.all || dirty.cycles) cycles.draw(store.cycles.slice(-MOST_ROWS).reverse().map((cycle) => [cycle.number, cycle]));
    if (subject) drawOne();
  }

  function drawOne() {
    const at = store.cycles.findIndex((cycle) => String(cycle.number) === subject);
    const steps = [store.cycles[at - 1], store.cycles[at + 1]].map((cycle) => (at < 0 ? undefined : cycle?.number)).join();
    const drawn = `${at < 0} ${steps}`;
    detail.hidden = false;
    if (drawn === shown) return;
    shown = drawn;
    detail.replaceChildren(...(at < 0 ? [html("p", { class: "quiet" }, `Cycle ${subject} is not among those that are kept.`)] : oneCycle(store, at)));
  }

  return { title: subject ? `Cycle ${subject}` : "Decisions", element, draw };
}

function oneCycle(store, at) {
  const { cycles } = store;
  const cycle = cycles[at];
  const step = (other, words) => (other ? html("a", { href: `#/decisions/${other.number}` }, words) : html("span", { class: "quiet" }, words));
  const actions = html("ol", { class: "actions" }, cycle.actions.map((action) => html("li", {},
    html("h2", {}, `${action.name} `, html("small", {}, `${number(action.took_ms)} ms, ${number(action.bound)} bound, ${number(action.evicted)} evicted`)), ...didBy(store, cycle, action.name))));
  const times = bars({ title: "Where the time went", description: "Milliseconds of each action", labels: cycle.actions.map(({ name }) => name), series: [{ name: "ms", y: cycle.actions.map(({ took_ms }) => took_ms) }] });
  return [html("nav", { class: "steps", "aria-label": "Cycles" }, step(cycles[at - 1], "← earlier"), ` ${clock(cycle.at)}, ${number(cycle.took_ms)} ms `, step(cycles[at + 1], "later →")), actions, times];
}

function didBy(store, cycle, name) {
  const job = { name: "Job", cell: ([, key]) => [jobName(store, key), jobAddress(key)] };
  const pod = { name: "Pod", cell: ([key]) => plain(key) };
  const node = { name: "Node", cell: ([, , key]) => [key, nodeAddress(key)] };
  const bound = cycle.binds.filter((bind) => bind[3] === name), evicted = cycle.evictions.filter((eviction) => eviction[4] === name);
  const found = [];
  if (bound.length) found.push(filled(new Rows(`Bound by ${name}`, [pod, job, node]), bound));
  if (evicted.length) found.push(filled(new Rows(`Evicted by ${name}`, [pod, job, node, { name: "For", cell: (eviction) => plain(eviction[3]) }]), evicted));
  return found;
}

function filled(rows, entries) {
  rows.draw(entries.map((entry) => [entry[0], entry]));
  return rows.element;
}
