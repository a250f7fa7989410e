// Runs of the simulator from the cluster's present, under the configuration as it is or with other weights, side by side.

import { Acts, mayAct, simulateFromHere } from "./acts.js";
import { html } from "./dom.js";
import { clock, duration, number, percent } from "./format.js";
import { Rows } from "./rows.js";
import { ask } from "./token.js";

const AGAIN_MS = 500;

export function simulate(store) {
  const text = html("textarea", { rows: 18, spellcheck: "false", "aria-label": "Configuration" });
  const seconds = html("input", { type: "number", min: 1, value: 600 });
  const acts = new Acts();
  acts.offer([["Run it from here", async () => { await simulateFromHere(text.value, Number(seconds.value)); await look(); }]]);
  const form = html("section", { hidden: !mayAct() }, html("h2", {}, "The configuration to try"),
    html("p", { class: "quiet" }, "It is the one that decides now, with every argument: change weights, plugins, actions. The cluster goes on undisturbed."),
    text, html("p", {}, html("label", {}, "Pods that do not say how long they run take (s) ", seconds)), acts.element);
  const none = html("p", { class: "quiet" });
  const runs = new Rows("Runs, the newest first", [
    { name: "Run", number: true, cell: ({ number }) => String(number) },
    { name: "From", cell: ({ at }) => clock(at) },
    { name: "Changed", words: true, cell: (run) => changed(run.configuration, store.policy?.text ?? "") },
    { name: "Mean wait", number: true, cell: ({ measures }) => duration(measures.wait?.mean) },
    { name: "Longest wait", number: true, cell: ({ measures }) => duration(measures.wait?.max) },
    { name: "All over after", number: true, cell: ({ measures }) => duration(measures.makespan) },
    { name: "Evictions", number: true, cell: ({ measures }) => number(measures.evictions) },
    { name: "GPUs used", number: true, cell: ({ measures }) => percent(measures.utilisation?.gpu) },
    { name: "Report", words: true, cell: (run) => (run.state === "ended" ? ["report", `api/report?number=${run.number}`] : run.state === "failed" ? run.error : "runs …") },
  ]);
  const element = html("div", {}, none, runs.element, form);
  let offered = false;

  async function look() {
    const reply = store.acts && (await ask("api/simulations").catch(() => null));
    const found = reply?.ok ? await reply.json() : [];
    runs.element.hidden = !found.length;
    none.hidden = Boolean(found.length);
    none.textContent = store.acts && mayAct() ? "No run has been made yet."
      : store.acts ? "Who only reads begins no run here: open the address that `pumice up` printed." : "Runs begin at the page of `pumice up`; elsewhere there is `pumice simulate`.";
    runs.draw(found.reverse().map((run) => [run.number, run]));
    if (found.some(({ state }) => state === "runs") && element.isConnected) setTimeout(look, AGAIN_MS);
  }

  function draw() {
    if (offered || !store.policy) return;
    offered = true;
    text.value = store.policy.text;
    look();
  }

  return { title: "Simulate", element, draw };
}

// The lines that are other than in the configuration that decides now.
function changed(configuration, now) {
  const known = new Set(now.split("\n"));
  const other = configuration.split("\n").filter((line) => line.trim() && !known.has(line)).map((line) => line.trim());
  return other.length ? other.slice(0, 3).join("; ") : "nothing";
}
