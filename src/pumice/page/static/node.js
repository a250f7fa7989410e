// One node: its room, and whose pods are on it.

import { Acts, cordon, fail } from "./acts.js";
import { html } from "./dom.js";
import { number, percent } from "./format.js";
import { Rows } from "./rows.js";
import { amount, jobAddress, jobName, RESOURCE_NAMES, RESOURCES } from "./words.js";

export function node(store, name) {
  const facts = html("p", { class: "figures" });
  const acts = new Acts();
  const held = new Rows("Jobs on this node", [
    { name: "Job", cell: ([key]) => (store.jobs.has(key) ? [jobName(store, key), jobAddress(key)] : jobName(store, key)) },
    { name: "Queue", cell: ([key]) => store.jobs.get(key)?.queue ?? "" },
    { name: "CPUs", number: true, cell: ([, cpu]) => number(cpu) },
    { name: "GPUs", number: true, cell: ([, , gpu]) => number(gpu) },
  ]);

  function draw() {
    const row = store.nodes.get(name);
    held.element.hidden = !row;
    acts.offer(row ? offers(name, row) : []);
    if (!row) {
      facts.textContent = "There is no such node (any more).";
      return;
    }
    const parts = RESOURCES.filter((resource) => row.room[resource]).map((resource) => {
      const used = row.used[resource] ?? 0;
      return `${amount(resource, used)} of ${amount(resource, row.room[resource])} ${RESOURCE_NAMES[resource]} used (${percent(used / row.room[resource])})`;
    });
    facts.textContent = [...parts, ...(row.group ? [row.group] : []), ...(row.cordoned ? ["cordoned: no pod is placed here"] : []), ...(row.failed ? ["failed: its kubelet says nothing"] : [])].join(" · ");
    held.draw(row.held.map((one) => [one[0], one]));
  }

  return { title: `Node ${name}`, element: html("div", {}, facts, acts.element, held.element), draw };
}

const offers = (name, { cordoned, failed }) => [
  [cordoned ? "Uncordon" : "Cordon", async () => { await cordon(name, !cordoned); }],
  [failed ? "Bring it back" : "Let it fail", async () => { await fail(name, !failed); }],
];
