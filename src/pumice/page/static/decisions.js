// The last cycles that decided something, over time and as a list; one of them action by action, all actions or one at a time.

import { bars } from "./charts.js";
import { html } from "./dom.js";
import { clock, number } from "./format.js";
import { Rows } from "./rows.js";
import { Timeline } from "./timeline.js";
import { jobAddress, jobName, nodeAddress, plain, podAddress } from "./words.js";

const MOST_ROWS = 60;

export function decisions(store, subject) {
  const said = html("p", { class: "figures" });
  const cycles = new Rows("Cycles that decided something, the newest first", [
    { name: "Cycle", number: true, cell: (cycle) => [cycle.number, `#/decisions/${cycle.number}`] },
    { name: "Time", cell: (cycle) => clock(cycle.at) },
    { name: "Took", number: true, cell: (cycle) => `${number(cycle.took_ms)} ms` },
    { name: "Bound", number: true, cell: (cycle) => number(cycle.bound) },
    { name: "Evicted", number: true, cell: (cycle) => number(cycle.evicted) },
    { name: "Pods refused", number: true, cell: (cycle) => number(cycle.waiting) },
    { name: "For whom", words: true, cell: (cycle) => [...new Set([...cycle.binds.map(([, of]) => jobName(store, of)), ...cycle.evictions.map((eviction) => plain(eviction[3]))])].slice(0, 4).join(", ") },
  ]);
  const detail = html("section", { class: "cycle", hidden: true });
  const timeline = new Timeline();
  const element = html("div", {}, said, timeline.element, detail, cycles.element);
  const [chosen_, step] = subject.split("/");
  let shown = null;

  function draw(dirty) {
    timeline.element.toggleAttribute("hidden", !store.cycles.length);
    said.textContent = `Cycles so far: ${number(store.count)}. ${store.cycles.length ? "Those that decided something are kept, 200 at most." : "None has decided anything yet."}`;
    cycles.element.hidden = !store.cycles.length;
    if (dirty.all || dirty.cycles) timeline.draw(store.cycles);
    if (dirty.all || dirty.cycles) cycles.draw(store.cycles.slice(-MOST_ROWS).reverse().map((cycle) => [cycle.number, cycle]));
    if (subject) drawOne();
  }

  function drawOne() {
    const at = store.cycles.findIndex((cycle) => String(cycle.number) === chosen_);
    const steps = [store.cycles[at - 1], store.cycles[at + 1]].map((cycle) => (at < 0 ? undefined : cycle?.number)).join();
    const drawn = `${at < 0} ${steps}`;
    detail.hidden = false;
    if (drawn === shown) return;
    shown = drawn;
    detail.replaceChildren(...(at < 0 ? [html("p", { class: "quiet" }, `Cycle ${chosen_} is not among those that are kept.`)] : oneCycle(store, at, step)));
  }

  return { title: subject ? `Cycle ${chosen_}` : "Decisions", element, draw };
}

// Of one action, or of all.
function oneCycle(store, at, only) {
  const { cycles } = store;
  const cycle = cycles[at];
  const step = (other, words) => (other ? html("a", { href: `#/decisions/${other.number}` }, words) : html("span", { class: "quiet" }, words));
  const address = (name) => `#/decisions/${cycle.number}${name && `/${name}`}`;
  const chosen = (name) => (name === (only ?? "") ? "step" : null);
  const choice = html("nav", { class: "steps", "aria-label": "Actions" },
    ["", ...cycle.actions.map(({ name }) => name)].map((name) => html("a", { href: address(name), "aria-current": chosen(name) }, name || "all actions")));
  const actions = html("ol", { class: "actions" }, cycle.actions.map((action, index) => (!only || action.name === only) && html("li", { value: index + 1 },
    html("h2", {}, `${action.name} `, html("small", {}, `${number(action.took_ms)} ms, ${number(action.bound)} bound, ${number(action.evicted)} evicted`)), ...didBy(store, cycle, action.name))));
  const times = bars({ title: "Where the time went", description: "Milliseconds of each action", labels: cycle.actions.map(({ name }) => name), series: [{ name: "ms", y: cycle.actions.map(({ took_ms }) => took_ms) }] });
  return [html("nav", { class: "steps", "aria-label": "Cycles" }, step(cycles[at - 1], "← earlier"), ` ${clock(cycle.at)}, ${number(cycle.took_ms)} ms `, step(cycles[at + 1], "later →")), choice, actions, times];
}

function didBy(store, cycle, name) {
  const job = { name: "Job", cell: ([, key]) => [jobName(store, key), jobAddress(key)] };
  const pod = { name: "Pod", cell: ([key]) => [plain(key), podAddress(key)] };
  const node = { name: "Node", cell: ([, , key]) => [key, nodeAddress(key)] };
  const bound = cycle.binds.filter((bind) => bind[3] === name), evicted = cycle.evictions.filter((eviction) => eviction[4] === name);
  const did = cycle.actions.find((action) => action.name === name);
  const all = (shown, count) => (shown.length < count ? `, the first ${number(shown.length)} of ${number(count)}` : "");
  const found = [];
  if (bound.length) found.push(filled(new Rows(`Bound by ${name}${all(bound, did.bound)}`, [pod, job, node]), bound));
  if (evicted.length) found.push(filled(new Rows(`Evicted by ${name}${all(evicted, did.evicted)}`, [pod, job, node, { name: "For", cell: (eviction) => plain(eviction[3]) }]), evicted));
  return found;
}

function filled(rows, entries) {
  rows.draw(entries.map((entry) => [entry[0], entry]));
  return rows.element;
}
