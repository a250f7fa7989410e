// Who had what, beyond the last hour: the hours that queues or users held in a month, as `pumice usage` counts them in recordings.

import { lines } from "./charts.js";
import { html } from "./dom.js";
import { Rows } from "./rows.js";
import { number } from "./format.js";
import { ask } from "./token.js";
import { choice, NO_QUEUE, queueName, queueTone, remember, RESOURCE_NAMES, RESOURCES } from "./words.js";

const MOST_LINES = 8;
const BY = [["queue", "queue"], ["user", "user"], ["queue,user", "queue and user"], ["namespace", "namespace"]];
const PER = [["day", "day"], ["hour", "hour"]];
const LENGTH_S = { day: 86400, hour: 3600 };
const KINDS = { got: "had", deserved: "deserved", lent: "lent", borrowed: "borrowed" };
const UNITS = { cpu: "CPU hours", memory: "GiB hours", gpu: "GPU hours" };

// What is asked for; the options of the command are called the same.
export const usageChoices = (parameters) => ({ by: parameters.get("by") ?? "queue", per: parameters.get("per") ?? "day", month: parameters.get("month") ?? "" });

export function usage(store, _, parameters) {
  const said = html("p", { class: "quiet", "aria-live": "polite" });
  const shown = html("div");
  const month = html("input", { type: "month", placeholder: "YYYY-MM", value: usageChoices(parameters).month, onchange: () => set("month", month.value) });
  const pick = (label, options, name) => choice(label, options, usageChoices(parameters)[name], (value) => set(name, value));
  const of = choice("Of", RESOURCES.map((name) => [name, RESOURCE_NAMES[name]]), parameters.get("resource"), (value) => { remember(parameters, "resource", value); show(); });
  const element = html("div", {}, html("div", { class: "choices" }, html("label", {}, "Month (UTC) ", month), pick("By", BY, "by"), pick("Per", PER, "per"), of), said, shown);
  let told = null, asked = 0;

  function set(name, value) {
    remember(parameters, name, value);
    look();
  }

  async function look() {
    if (!store.recordings) {
      said.textContent = "Nothing is recorded: start `pumice up` or `pumice scheduler` with --record DIR, and there is a past beyond the last hour.";
      return;
    }
    const turn = asked += 1, answer = await ask(`api/usage?${new URLSearchParams(usageChoices(parameters))}`).catch(() => null);
    const found = await answer?.json().catch(() => null);
    if (turn !== asked || !found) return;
    told = found.error ? null : found;
    said.textContent = found.error ?? "";
    show();
  }

  function show() {
    const choices = usageChoices(parameters), sums = told ? summedUp(told, choices.by.split(",").length) : { groups: new Map(), times: [] };
    const there = RESOURCES.filter((name) => told?.head.includes(`${name}_got`));
    const resource = there.includes(parameters.get("resource")) ? parameters.get("resource") : there[0];
    of.hidden = !there.length;
    of.querySelector("select").replaceChildren(...there.map((name) => html("option", { value: name, selected: name === resource }, RESOURCE_NAMES[name])));
    if (told) said.textContent = sums.groups.size ? "" : "Nothing is recorded of this time.";
    shown.replaceChildren(...(sums.groups.size ? [over(store, sums, resource, choices), table(sums, resource, choices.by, told.head)] : []));
  }

  return { title: "Usage", element, draw: (dirty) => dirty.all && look() };
}

// By group: its sums, and its numbers by the begin of each period.
function summedUp({ head, rows }, width) {
  const groups = new Map(), times = [...new Set(rows.map(([from]) => Date.parse(from) / 1000))];
  for (const [from, ...cells] of rows) {
    const name = cells.slice(0, width).join(", "), group = groups.get(name) ?? { sums: {}, then: new Map() };
    const numbers = Object.fromEntries(head.slice(1 + width).map((column, index) => [column, Number(cells[width + index])]));
    for (const [column, value] of Object.entries(numbers)) group.sums[column] = (group.sums[column] ?? 0) + value;
    group.then.set(Date.parse(from) / 1000, numbers);
    groups.set(name, group);
  }
  return { groups, times };
}

const ordered = ({ groups }, resource) => [...groups].sort(([a, one], [b, other]) => (other.sums[`${resource}_got`] ?? 0) - (one.sums[`${resource}_got`] ?? 0) || (a < b ? -1 : 1));
const named = (by, name) => (by === "queue" ? queueName(name) : name === NO_QUEUE ? `no ${by}` : name);

// A step for each period, also for those of which nothing is recorded.
function over(store, sums, resource, { by, per }) {
  const x = [], length = LENGTH_S[per];
  for (let at = sums.times[0]; at <= sums.times.at(-1) + length; at += length) x.push(at);
  const held = (group, at) => group.then.get(at)?.[`${resource}_got`] ?? 0;
  const most = ordered(sums, resource).filter(([, group]) => group.sums[`${resource}_got`]).slice(0, MOST_LINES), present = by === "queue" && most.every(([name]) => store.queues.has(name));
  const series = most.map(([name, group], index) => ({
    name: named(by, name), tone: present ? queueTone(store, name) : `s${index}`, y: x.map((at, place) => held(group, place < x.length - 1 ? at : x[place - 1])) }));
  const more = sums.groups.size > MOST_LINES ? `; the ${MOST_LINES} that had most` : "";
  return lines({ title: `${UNITS[resource]} per ${per}`, description: `By ${by.replace(",", " and ")}${more}`, shape: "stack", xFormat: per, xLabel: "time (UTC)", yLabel: UNITS[resource], x, series });
}

function table(sums, resource, by, head) {
  const numeric = (name, of) => ({ name, number: true, cell: (group) => of(group.sums) });
  const kinds = Object.keys(KINDS).filter((kind) => head.includes(`${resource}_${kind}`));
  const rows = new Rows(`${UNITS[resource]}, in all`, [
    { name: by.replace(",", ", "), cell: (_, name) => named(by, name) }, ...kinds.map((kind) => numeric(KINDS[kind], (all) => number(all[`${resource}_${kind}`]))),
    numeric("Pods", ({ pods }) => number(pods)), numeric("Evicted", ({ evicted }) => number(evicted)), numeric("Pods waited (h)", ({ waited }) => number(waited)),
  ]);
  rows.draw(ordered(sums, resource));
  return rows.element;
}
