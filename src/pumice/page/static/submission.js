// A form that submits a job of equal pods, as `pumice job run` would.

import { create, JOBS, volcanoJob } from "./acts.js";
import { html } from "./dom.js";
import { jobAddress, queueNames } from "./words.js";

const NUMBERS = { pods: ["Pods", 2, 1], minimum: ["Start together", 2, 1], gpus: ["GPUs each", 8, 0], cpus: ["CPUs each", 8, 1], seconds: ["Run for (s)", 600, 1] };

export function submission(store) {
  const said = html("output", { class: "said" });
  const queue = html("select", { name: "queue" });
  const numbers = Object.entries(NUMBERS).map(([name, [words, value, min]]) => html("label", {}, `${words} `, html("input", { type: "number", name, value, min, required: true })));
  const form = html("form", { class: "choices", onsubmit: submit },
    html("label", {}, "Name ", html("input", { name: "name", required: true, pattern: "[a-z0-9]([a-z0-9\\-]*[a-z0-9])?", value: "train-2", title: "small letters, digits and hyphens" })),
    ...numbers, html("label", {}, "Queue ", queue), html("button", { class: "strong" }, "Submit"), said);
  const element = html("details", { ontoggle: offer }, html("summary", {}, "Submit a job"), form);

  function offer() {
    const names = queueNames(store);
    queue.replaceChildren(...names.map((name) => html("option", { selected: name === "default" }, name)));
  }

  async function submit(event) {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    for (const name of Object.keys(NUMBERS)) given[name] = Number(given[name]);
    try {
      await create(JOBS, volcanoJob(given));
      location.hash = jobAddress(`default/${given.name}`);
    } catch (error) {
      said.textContent = error.message;
    }
  }

  return element;
}
