// A plan that empties nodes by moving pods: what it gains and costs, and the nodes that it changes, before and after. It is made in a process
// of its own when somebody asks; the cluster may have gone on meanwhile.

import { byNumber, DETAILED, paint } from "./cluster.js";
import { html, table } from "./dom.js";
import { duration } from "./format.js";
import { Rows } from "./rows.js";
import { ask } from "./token.js";
import { jobAddress, jobName, nodeAddress } from "./words.js";

const GAINS = [
  ["Empty nodes (could be switched off)", "emptyNodes"],
  ["Largest gang of pods that each take a whole node", "largestGang"],
  ["Idle GPUs in whole nodes", "idleGpusInWholeNodes"],
  ["Fragmentation (FGD), in GPUs", "fragmentation"],
];

export function defrag(store) {
  const found = html("div", { "aria-live": "polite" });
  const button = html("button", { type: "button", onclick: plan }, "Make a plan");
  const element = html("div", { class: "defrag" },
    html("p", { class: "quiet" }, "Which pods would move where, so that nodes become empty? Every pod that moves has a place by all rules. Nothing is done here; ", html("code", {}, "pumice defrag --apply"), " carries a plan out."),
    html("p", {}, button), found);

  async function plan() {
    button.disabled = true;
    found.replaceChildren(html("p", { class: "quiet" }, "Making a plan …"));
    const reply = await ask("api/defrag").catch(() => null); // A lost connection is said in the header.
    found.replaceChildren(...(reply?.ok ? shown(store, await reply.json()) : []));
    button.disabled = false;
  }

  return { title: "Defrag", element, draw: () => {} };
}

function shown(store, { error, steps, before, after, moves }) {
  if (error || !steps.length) return [html("p", { class: "quiet" }, error ?? "No node can be emptied by moves.")];
  const gains = [...GAINS.map(([what, key]) => [what, before[key], after[key]]),
    ...Object.entries(before.fits).map(([size, count]) => [`Pods of ${size} ${size === "1" ? "GPU" : "GPUs"} that find room`, count, after.fits[size] ?? 0])];
  const lost = (key) => duration(steps.reduce((sum, step) => sum + step[key], 0));
  const listed = new Rows("Moves, in their order", [
    { name: "Pod", cell: ({ pod }) => [pod, `#/pod/${pod}`] }, { name: "Job", cell: ({ job }) => [jobName(store, job), jobAddress(job)] },
    { name: "From", cell: (move) => [move.from, nodeAddress(move.from)] }, { name: "To", cell: ({ to }) => [to, nodeAddress(to)] }]);
  listed.draw(moves.map((move) => [move.pod, move]));
  return [
    table(["Measure", "Before", "After"], gains.map(([what, then, now]) => [what, rounded(then), rounded(now)]), "What it gains"),
    html("p", {}, `It costs: ${moves.length} ${moves.length === 1 ? "pod is" : "pods are"} restarted; the work that is lost is ${lost("lostGpuS")} of a GPU, ${lost("lostPodS")} of a pod.`),
    ...nodesOf(store, moves), listed.element];
}

// The nodes that the plan changes, side by side.
function nodesOf(store, moves) {
  const names = [...new Set(moves.flatMap((move) => [move.from, move.to]))].filter((name) => store.nodes.has(name)).sort(byNumber);
  const later = new Map(names.map((name) => [name, structuredClone(store.nodes.get(name))]));
  for (const { from, to, job, share } of moves) {
    hold(later.get(from), job, share, -1);
    hold(later.get(to), job, share, 1);
  }
  const grid = (title, nodes) => {
    const tiles = names.map((name) => {
      const tile = html("a", { class: "node", href: nodeAddress(name) });
      paint({ jobs: store.jobs, queues: store.queues, nodes }, tile, name, "queue", names.length <= DETAILED);
      return tile;
    });
    return html("section", { class: `nodes ${names.length <= DETAILED ? "" : "compact"}`, "aria-label": title }, html("h2", {}, title), html("div", { class: "group" }, tiles));
  };
  return [html("div", { class: "sides" }, grid("Before", store.nodes), grid("After", later))];
}

const rounded = (value) => Number(value.toFixed(2));

function hold(node, job, [cpu, gpu], sign) {
  if (!node) return;
  const entry = node.held.find(([key]) => key === job) ?? node.held[node.held.push([job, 0, 0]) - 1];
  entry[1] += sign * cpu;
  entry[2] += sign * gpu;
  node.held = node.held.filter(([, cpus, gpus]) => cpus > 1e-6 || gpus > 1e-6);
  for (const [unit, amount] of [["cpu", cpu], ["gpu", gpu]]) if (amount) node.used[unit] = Math.max(0, (node.used[unit] ?? 0) + sign * amount);
}
