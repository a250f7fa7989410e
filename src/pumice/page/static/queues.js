// The queues as a tree, each with a bar: what it holds and asks for, against what it deserves and may hold; and the last hour.

import { lines } from "./charts.js";
import { html, svg } from "./dom.js";
import { lastHour } from "./history.js";
import { ask } from "./token.js";
import { amount, choice, inUnits, NO_QUEUE, queueName, queueTone, remember, RESOURCE_NAMES, RESOURCES, resourcesOf } from "./words.js";

const MOST_LINES = 8, CHART_EVERY_S = 5, LONG_EVERY_MS = 60000;
const SPANS = { hour: "clock", day: "hour", week: "hour", month: "day" }; // and how their instants are written
const NUMBERS = ["Held", "Deserved", "Borrowed", "Asked for", "Guaranteed", "At most", "Weight", "Jobs", "Waiting"];
const COLUMNS = ["Queue", "Held, asked for, deserved", ...NUMBERS];

export function queues(store, _, parameters) {
  const head = html("div", { class: "choices" });
  const body = html("tbody");
  const grid = html("div", { class: "scroll rows", tabindex: 0, role: "region", "aria-label": "Queues" }, html("table", { class: "queues" },
    html("caption", {}, "A filled bar is held, a pale one asked for besides; the line is what the queue deserves. A parent has what its children have. Pods without a PodGroup are in no queue, and no queue's share counts them."),
    html("thead", {}, html("tr", {}, COLUMNS.map((name, index) => html("th", { scope: "col", class: index > 1 && "number" }, name)))), body));
  const chart = lines({ title: "", empty: true });
  const none = html("p", { class: "quiet" }, "There are no queues.");
  const beforeThat = ["Before the last hour: ", html("a", { href: "#/usage" }, "usage by queue and user"), ", as far back as recordings go."];
  const before = html("p", { class: "quiet" });
  const element = html("div", {}, head, none, grid, chart, before);
  let resource = parameters.get("resource");
  let offered = "";
  let chartedAt = -Infinity;
  let span = Object.hasOwn(SPANS, parameters.get("span")) ? parameters.get("span") : "hour", long = null;
  const over = choice("The last", Object.keys(SPANS).map((name) => [name, name]), span, (value) => { span = value; remember(parameters, "span", value); long = null; draw({ all: true }); });
  head.append(over);

  // Longer spans are read anew now and then, while they are shown.
  async function readLong() {
    const asked = { span, at: Date.now(), points: long?.points ?? [], said: long ? "" : "Reading what there is of it…" };
    long = asked;
    const found = await (await ask(`api/history?span=${span}`).catch(() => null))?.json().catch(() => null);
    if (long !== asked) return;
    Object.assign(asked, { points: found?.points ?? [], said: found?.error ?? (found ? "" : "no answer") });
    draw({ history: true, all: false, queues: new Set(), nodes: new Set() });
  }

  function draw(dirty) {
    const isLong = span !== "hour" && Boolean(store.longHistory);
    over.hidden = !store.longHistory;
    if (isLong && !(long && Date.now() - long.at < LONG_EVERY_MS)) readLong();
    before.hidden = isLong && !long.said;
    before.replaceChildren(...(isLong ? [long.said] : beforeThat));
    if (dirty.all || dirty.history || store.at - chartedAt >= CHART_EVERY_S) {
      chartedAt = store.at;
      chart.update(history(store, resource ?? resourcesOf(store)[0] ?? "cpu", isLong ? { span, ...long } : null));
    }
    if (!dirty.all && !dirty.queues.size && !dirty.history && !dirty.nodes.size) return;
    const there = resourcesOf(store);
    if (!there.includes(resource)) resource = there[0] ?? "cpu";
    if (offered !== there.join()) {
      offered = there.join();
      head.replaceChildren(choice("Of", there.map((name) => [name, RESOURCE_NAMES[name]]), resource, (value) => { resource = value; remember(parameters, "resource", value); draw({ all: true }); }), over);
    }
    const rows = tree(store);
    grid.hidden = !rows.length;
    none.hidden = Boolean(rows.length);
    chart.hidden = !rows.length;
    before.hidden ||= !rows.length;
    const most = Math.max(1e-9, ...rows.map(({ queue }) => Math.max((queue.held[resource] ?? 0) + (queue.asked[resource] ?? 0), queue.deserved[resource] ?? 0)));
    body.replaceChildren(...rows.map((row) => line(store, row, resource, most)));
  }

  return { title: "Queues", element, draw };
}

// Parents before their children, with their depth; what children have is their parents', too. Jobs whose pods nobody has made yet ask for
// what they need at least. A queue whose parent is not there stands at the top.
function tree(store) {
  const children = new Map();
  for (const [name, queue] of store.queues) {
    const parent = store.queues.has(queue.parent) ? queue.parent : "";
    children.set(parent, [...(children.get(parent) ?? []), name]);
  }
  const found = [], promised = new Map();
  for (const job of store.jobs.values()) if (job.queue && !Object.keys(job.pods).length) promised.set(job.queue, [...(promised.get(job.queue) ?? []), { held: {}, asked: job.asked, jobs: 0, waiting: 0 }]);
  const whole = (name) => [...(promised.get(name) ?? []), ...(children.get(name) ?? []).map(whole)].reduce(sum, store.queues.get(name));
  const visit = (name, depth) => {
    found.push({ name, depth, queue: whole(name) });
    for (const child of (children.get(name) ?? []).sort()) visit(child, depth + 1);
  };
  for (const name of (children.get("") ?? []).sort()) visit(name, 0);
  return [...found.filter(({ name }) => name !== NO_QUEUE), ...found.filter(({ name }) => name === NO_QUEUE)];
}

function sum(one, other) {
  const added = (name) => Object.fromEntries(RESOURCES.map((resource) => [resource, (one[name][resource] ?? 0) + (other[name][resource] ?? 0)]));
  return { ...one, held: added("held"), asked: added("asked"), jobs: one.jobs + other.jobs, waiting: one.waiting + other.waiting };
}

function line(store, { name, depth, queue }, resource, most) {
  const held = queue.held[resource] ?? 0, asked = queue.asked[resource] ?? 0, deserved = queue.deserved[resource];
  const state = queue.state && queue.state !== "Open" ? ` (${queue.state})` : "";
  const label = html("th", { scope: "row" }, queueName(name) + state);
  label.style.paddingLeft = `${depth * 1.2}rem`;
  const weight = name === NO_QUEUE ? "" : queue.weight;
  const borrowed = deserved != null && held > deserved ? held - deserved : null;
  const numbers = [held, deserved, borrowed, asked, queue.guarantee[resource], queue.limit[resource]].map((value) => (value == null ? "" : amount(resource, value)));
  numbers.push(weight, queue.jobs, queue.waiting);
  return html("tr", {}, label, html("td", { class: "bar" }, bar(queueTone(store, name), held / most, asked / most, deserved == null ? null : deserved / most, `${queueName(name)} holds ${amount(resource, held)}, asks for ${amount(resource, asked)} more`)),
    numbers.map((cell, index) => html("td", { class: "number", "data-name": NUMBERS[index] }, String(cell))));
}

function bar(tone, held, asked, deserved, words) {
  const at = (share) => `${(100 * share).toFixed(2)}%`;
  return svg("svg", { class: tone, role: "img", "aria-label": words, height: 16, width: "100%" },
    svg("rect", { class: "held", width: at(held), height: 16 }),
    svg("rect", { class: "asked", x: at(held), width: at(asked), height: 16 }),
    deserved != null && svg("line", { class: "deserved", x1: at(deserved), x2: at(deserved), y1: 0, y2: 16 }));
}

// What was noted, and the present; of a longer span, what the server has of it.
function history(store, resource, long) {
  const held = Object.fromEntries([...store.queues].map(([name, queue]) => [name, queue.held]));
  const points = long ? [...long.points, { at: store.at, held }] : lastHour(store.history, store.at, held);
  const names = [...new Set([...store.queues.keys(), ...points.flatMap(({ held }) => Object.keys(held))])].filter((name) => name !== "root" && points.some(({ held }) => held[name]?.[resource])).sort((a, b) => (a === NO_QUEUE) - (b === NO_QUEUE) || (a < b ? -1 : 1)).slice(0, MOST_LINES);
  const yLabel = resource === "memory" ? "memory in Gi" : RESOURCE_NAMES[resource];
  return {
    title: `The last ${long?.span ?? "hour"}`, description: `${RESOURCE_NAMES[resource]} that queues hold${long ? `, from ${store.longHistory}` : ""}`, shape: "stack", xFormat: SPANS[long?.span ?? "hour"], xLabel: long ? "time (UTC)" : "time", yLabel,
    x: points.map(({ at }) => at), series: names.map((name) => ({ name: queueName(name), tone: queueTone(store, name), y: points.map(({ held }) => inUnits(resource, held[name]?.[resource])) })), empty: points[0].at >= store.at || !names.length,
  };
}
