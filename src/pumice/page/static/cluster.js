// The nodes as a grid: a cell for each GPU, or each eighth of the CPUs; of very many nodes one cell each. Beside it who waits, and why.

import { mayAct } from "./acts.js";
import { html } from "./dom.js";
import { clock, duration, number } from "./format.js";
import { amount, choice, expectedStart, jobAddress, jobName, jobState, jobTone, nodeAddress, NO_QUEUE, queueName, queueNames, queueTone, remember, RESOURCE_NAMES, resourcesOf } from "./words.js";

export const DETAILED = 400;
const MOST_CELLS = 16;
const FEW = 40, TINY = 12;
const MOST_NAMED = 8; // queues, each of another colour
const MOST_WAITING = 6, MOST_DECISIONS = 5;

export function cluster(store, _, parameters) {
  const figures = html("p", { class: "figures" });
  const grid = html("div", { class: "nodes", role: "group", "aria-label": "Nodes" });
  const readout = html("output", { class: "readout" });
  const waits = html("ol", { class: "waits" });
  const waiting = html("section", { "aria-label": "Waiting jobs" }, html("h2", {}, "Waiting"), waits);
  const last = html("ol", { class: "waits" });
  const decided = html("section", { "aria-label": "Last decisions" }, html("h2", {}, "Last decisions"), last);
  const legend = html("ul", { class: "legend" });
  const square = html("p", { class: "quiet square" });
  let colour = parameters.get("colour") ?? "queue";
  let grouped = parameters.get("group") === "yes";
  let tiles = new Map();

  const choices = html("div", { class: "choices" },
    choice("Colour by", [["queue", "queue"], ["job", "job"], ["use", "utilisation"]], colour, (value) => { colour = value; remember(parameters, "colour", value); draw({ all: true }); }),
    choice("Group", [["", "none"], ["yes", "HyperNode, rack or pool"]], grouped ? "yes" : "", (value) => { grouped = value === "yes"; remember(parameters, "group", value); draw({ all: true }); }));
  const element = html("div", { class: "cluster" },
    html("section", { "aria-label": "Nodes" }, figures, choices, legend, square, grid, readout), html("div", {}, waiting, decided));

  const tell = (event) => {
    const tile = event.target.closest?.("a.node");
    if (tile) readout.textContent = tile.getAttribute("aria-label");
  };
  grid.addEventListener("pointerover", tell);
  grid.addEventListener("focusin", tell);
  grid.addEventListener("keydown", (event) => walk(event, grid));

  function draw(dirty) {
    figures.textContent = headline(store);
    choices.hidden = square.hidden = !store.nodes.size;
    if (dirty.all || membersChanged()) build();
    else {
      const changed = dirty.jobs.size && colour === "queue" ? nodesOf(store, dirty.jobs, dirty.nodes) : dirty.nodes;
      for (const name of changed) if (tiles.has(name)) paint(store, tiles.get(name), name, colour, detailed());
    }
    if (dirty.all || dirty.queues?.size) drawLegend();
    drawWaiting(store, waits, waiting);
    if (dirty.all || dirty.cycles) drawDecided(store, last);
  }

  const detailed = () => store.nodes.size <= DETAILED;
  const membersChanged = () => tiles.size !== store.nodes.size || [...tiles.keys()].some((name) => !store.nodes.has(name));

  function build() {
    tiles = new Map([...store.nodes.keys()].sort(byNumber).map((name) => [name, html("a", { class: "node", href: nodeAddress(name), tabindex: -1 })]));
    for (const [name, tile] of tiles) paint(store, tile, name, colour, detailed());
    tiles.values().next().value?.setAttribute("tabindex", 0);
    grid.classList.toggle("compact", !detailed());
    grid.classList.toggle("few", store.nodes.size <= FEW);
    grid.classList.toggle("tiny", store.nodes.size <= TINY);
    grid.replaceChildren(...(grouped ? groups() : [html("div", { class: "group" }, ...tiles.values())]));
    if (!tiles.size) grid.replaceChildren(html("p", { class: "quiet" }, "There are no nodes."));
  }

  function groups() {
    const found = new Map();
    for (const [name, tile] of tiles) {
      const group = store.nodes.get(name).group || "others";
      found.set(group, [...(found.get(group) ?? []), tile]);
    }
    return [...found].sort(([a], [b]) => byNumber(a, b)).map(([group, members]) =>
      html("section", {}, html("h2", {}, `${group} (${members.length})`), html("div", { class: "group" }, ...members)));
  }

  function drawLegend() {
    const names = queueNames(store), shown = [...names.slice(0, MOST_NAMED), ...(store.queues.has(NO_QUEUE) ? [NO_QUEUE] : [])];
    const others = names.length > MOST_NAMED && html("li", {}, `and ${names.length - MOST_NAMED} more, in the same colours`);
    legend.hidden = colour !== "queue" || !store.nodes.size;
    square.textContent = squares(store, colour, detailed());
    legend.replaceChildren(...shown.map((name) => html("li", {}, html("i", { class: `swatch ${queueTone(store, name)}` }), queueName(name))), ...(others ? [others] : []));
  }

  return { title: "Cluster", element, draw };
}

// What a square of the grid is.
function squares(store, colour, detailed) {
  if (!detailed) return `A square is a node${colour === "use" ? "" : `, in the colour of the ${colour} that has most of it`}; the paler, the less of it is used.`;
  const gpus = [...store.nodes.values()].filter(({ room }) => room.gpu).length;
  const each = gpus && "a GPU", eighth = gpus < store.nodes.size && `an eighth of the CPUs of a node${gpus ? " without GPUs" : ""}`;
  return `A square is ${[each, eighth].filter(Boolean).join(", or ")}; an empty one is free.`;
}

export const byNumber = new Intl.Collator("en", { numeric: true }).compare;

function headline(store) {
  const states = { waiting: 0, running: 0, done: 0 };
  for (const job of store.jobs.values()) states[jobState(job)] += 1;
  const parts = resourcesOf(store).map((resource) => {
    let used = 0, room = 0;
    for (const node of store.nodes.values()) { used += node.used[resource] ?? 0; room += node.room[resource] ?? 0; }
    return `${amount(resource, used)} of ${amount(resource, room)} ${RESOURCE_NAMES[resource]} used`;
  });
  return [`${number(store.nodes.size)} ${store.nodes.size === 1 ? "node" : "nodes"}`, ...parts, `jobs: ${number(states.running)} running, ${number(states.waiting)} waiting`].join(" · ");
}

function nodesOf(store, jobs, others) {
  const found = new Set(others);
  for (const [name, node] of store.nodes) if (node.held.some(([key]) => jobs.has(key))) found.add(name);
  return found;
}

// One node's cells. Nothing is written that is there already.
export function paint(store, tile, name, colour, detailed) {
  const node = store.nodes.get(name);
  if (!node) return;
  const [unit, size] = node.room.gpu ? ["gpu", node.room.gpu] : ["cpu", node.room.cpu ?? 0];
  const used = node.used[unit] ?? 0;
  const share = size ? used / size : 0;
  const state = `${node.cordoned ? ", cordoned" : ""}${node.failed ? ", failed" : ""}`;
  tile.setAttribute("aria-label", `${name}: ${amount(unit, used)} of ${amount(unit, size)} ${RESOURCE_NAMES[unit]} used${state}${node.held.length ? `, by ${who(store, node)}` : ""}`);
  for (const word of ["cordoned", "failed"]) tile.classList.toggle(word, Boolean(node[word]));
  const tones = node.held.map(([key, cpu, gpu]) => [tone(store, colour, key), unit === "gpu" ? gpu : cpu]);
  if (!detailed) {
    const [most] = tones.sort((a, b) => b[1] - a[1])[0] ?? ["none"];
    tile.className = `node ${most}${node.cordoned ? " cordoned" : ""}${node.failed ? " failed" : ""}`;
    tile.style.setProperty("--use", `${Math.round(100 * Math.min(1, share))}%`);
    return;
  }
  const count = unit === "gpu" ? Math.max(1, Math.min(MOST_CELLS, Math.round(size))) : 8;
  const cells = cellsOf(tones, count, size || 1);
  const words = html("span", { class: "name" }, html("b", {}, name), ` ${amount(unit, used)}/${amount(unit, size)}`);
  tile.replaceChildren(html("span", { class: "cells" }, cells.map((cell) => html("i", { class: cell ?? "idle" }))), words);
}

const who = (store, node) => [...new Set(node.held.map(([key]) => jobName(store, key)))].slice(0, 4).join(", ");

const tone = (store, colour, key) => (colour === "use" ? "s0" : colour === "job" ? jobTone(key) : queueTone(store, store.jobs.get(key)?.queue ?? ""));

function cellsOf(tones, count, size) {
  const cells = [];
  for (const [tone, amount] of tones) for (let left = (amount / size) * count; left > 0.01 && cells.length < count; left -= 1) cells.push(tone);
  return Array.from({ length: count }, (_, index) => cells[index]);
}

function drawWaiting(store, list, section) {
  const found = [...store.jobs].filter(([, job]) => jobState(job) === "waiting").sort(([, a], [, b]) => a.created - b.created);
  const shown = found.slice(0, MOST_WAITING).map(([key, job]) => html("li", {},
    html("a", { href: jobAddress(key) }, jobName(store, key)), html("span", { class: "since" }, ` waits ${duration(Math.max(0, Math.floor(store.at - job.created)))}${job.expected ? `, expected to start ${expectedStart(job, store.at)}` : ""}`),
    html("p", {}, job.why || "not decided yet")));
  if (found.length > MOST_WAITING) shown.push(html("li", {}, html("a", { href: "#/jobs?state=waiting" }, `and ${found.length - MOST_WAITING} more`)));
  const words = shown.map((item) => item.textContent).join();
  if (section.dataset.words === words) return;
  section.dataset.words = words;
  list.replaceChildren(...(shown.length ? shown : [html("li", { class: "quiet" }, store.jobs.size ? "Nobody waits." : `There are no jobs yet. Submit one${mayAct() ? " under Jobs, or" : ""} by kubectl.`)]));
}

function drawDecided(store, list) {
  const found = store.cycles.slice(-MOST_DECISIONS).reverse().map((cycle) => {
    const jobs = [...new Set([...cycle.binds, ...cycle.evictions].map(([, key]) => jobName(store, key)))];
    const words = [cycle.bound && `${number(cycle.bound)} bound`, cycle.evicted && `${number(cycle.evicted)} evicted`].filter(Boolean).join(", ");
    return html("li", {}, html("a", { href: `#/decisions/${cycle.number}` }, clock(cycle.at)), html("span", { class: "since" }, ` ${words}`),
      html("p", {}, `${jobs.slice(0, 3).join(", ")}${cycle.jobs > 3 ? ` and ${number(cycle.jobs - 3)} more ${cycle.jobs === 4 ? "job" : "jobs"}` : ""}`));
  });
  list.replaceChildren(...(found.length ? found : [html("li", { class: "quiet" }, "Nothing has been decided yet.")]));
}

// The arrow keys go from node to node; only one of them is in the order of the Tab key.
function walk(event, grid) {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
  const all = step ? [...grid.querySelectorAll("a.node")] : [];
  const at = all.indexOf(document.activeElement);
  if (at < 0) return;
  event.preventDefault();
  const here = all[at].getBoundingClientRect();
  const sideways = event.key === "ArrowRight" || event.key === "ArrowLeft";
  const other = sideways ? all[at + step] : below(all, at, step, here);
  if (!other) return;
  all[at].setAttribute("tabindex", -1);
  other.setAttribute("tabindex", 0);
  other.focus();
}

function below(all, at, step, here) {
  for (let index = at + step; all[index]; index += step) {
    const place = all[index].getBoundingClientRect();
    if (place.top !== here.top && Math.abs(place.left - here.left) < 2) return all[index];
  }
  return undefined;
}
