// A guided tour in five clicks: a gang starts whole, another waits and why, an important pod makes room, a queue takes back what it
// deserves, and all of it is taken away again. It has nodes of its own, which are tainted: nobody else's pods come there.

import { create, JOBS, mayAct, PODS, remove, volcanoJob } from "./acts.js";
import { html } from "./dom.js";
import { jobAddress } from "./words.js";

const KEPT = "pumice-tour", SEEN = "pumice-tour-seen";
const PATIENCE_MS = 15000, PAUSE_MS = 200;
const LABELS = { "pumice.io/pool": "tour" };
const PLACE = { nodeSelector: LABELS, tolerations: [{ key: "pumice.io/tour", operator: "Exists" }] };
const NODES = "api/v1/nodes", QUEUES = "apis/scheduling.volcano.sh/v1beta1/queues", CLASSES = "apis/scheduling.k8s.io/v1/priorityclasses";

const make = (path, name, object) => create(path, { ...object, metadata: { ...object.metadata, name, labels: LABELS } });
const submit = (name, queue, pods, minimum, gpus, priority) => make(JOBS, name, volcanoJob({ name, queue, pods, minimum, gpus, cpus: gpus, seconds: 1800, priority, spec: PLACE }));

async function start() {
  await takeAway(); // what is left of a tour that was not ended
  const room = { cpu: "32", memory: "256Gi", "nvidia.com/gpu": "8", pods: "110" }, deserved = { cpu: "4", memory: "16Gi", "nvidia.com/gpu": "4" };
  const taints = [{ key: "pumice.io/tour", value: "here", effect: "NoSchedule" }];
  for (const name of ["tour-1", "tour-2"]) await make(NODES, name, { spec: { taints }, status: { capacity: room, allocatable: room } });
  for (const [name, value] of [["tour-spare", -10], ["tour-urgent", 1000]]) await make(CLASSES, name, { value });
  for (const name of ["tour-research", "tour-prod"]) await make(QUEUES, name, { spec: { weight: 1, deserved } });
  await submit("tour-train", "tour-research", 2, 2, 4);
  await submit("tour-sweep", "tour-research", 4, 1, 2, "tour-spare");
}

function important() {
  const amounts = { cpu: "4", memory: "4Gi", "nvidia.com/gpu": "4" };
  const containers = [{ name: "main", image: "serve:1", resources: { requests: amounts, limits: { "nvidia.com/gpu": "4" } } }];
  return make(PODS, "tour-urgent", { spec: { priorityClassName: "tour-urgent", containers, ...PLACE } });
}

async function takeAway() {
  for (const path of [JOBS, PODS, NODES, CLASSES, QUEUES]) await remove(`${path}?labelSelector=pumice.io/pool=tour`);
}

const evictedFor = (name) => (store) => store.cycles.findLast(({ evictions }) => evictions.some(([, , , whom]) => whom.includes(name)));
const cycleOf = (cycle) => `#/decisions/${cycle.number}`;
const named = (name) => (store) => [...store.jobs].some(([, { owner }]) => owner === name);

// What a click does, what is waited for, where it leads, and what is told there.
const STEPS = [
  { click: "Start a gang", act: start, seen: named("tour-train"), leads: () => "#/cluster?group=yes",
    told: "Two nodes came, and two jobs. tour-train is a gang: both of its pods start at the same moment, or none. tour-sweep is elastic: one pod is enough for it, and it borrows what is left." },
  { click: "Ask for more", act: () => submit("tour-big", "tour-research", 2, 2, 8), seen: named("tour-big"), leads: () => jobAddress("default/tour-big"),
    told: "tour-big needs both nodes whole, so it waits. This is its page: what keeps it waiting, in numbers. Ask what would help, below." },
  { click: "Send an important pod", act: important, seen: evictedFor("tour-urgent"), leads: cycleOf,
    told: "Preemption: tour-urgent is more important. Pods of the least important job went, and no more than were needed; the gang was left whole. This is the cycle that decided it." },
  { click: "Let another queue claim its share", act: () => submit("tour-serve", "tour-prod", 1, 1, 2), seen: evictedFor("tour-serve"), leads: cycleOf,
    possible: (store) => store.policy?.actions.some(({ name }) => name === "reclaim"),
    told: "Reclaim: tour-prod deserves four GPUs and had none, tour-research held twelve where it deserves four. So one pod on borrowed GPUs went, which is what tour-serve needs: not the gang’s, and not the last one of tour-sweep." },
  { click: "Take it all away", act: takeAway, leads: () => "#/cluster", told: "" },
];

export class Tour {
  constructor(store) {
    this.store = store;
    this.element = html("aside", { class: "tour", "aria-label": "Guided tour", hidden: true });
    this.told = html("p", { "aria-live": "polite" });
    this.button = html("button", { type: "button", class: "strong", onclick: () => this.click() });
    this.element.append(this.told, html("div", { class: "buttons" }, this.button,
      html("button", { type: "button", onclick: () => this.show(null) }, "Close")));
    this.at = sessionStorage.getItem(KEPT);
  }

  // `at` is the number of the last step that was made, -1 before the first; null: there is no tour.
  show(at) {
    this.at = at;
    if (at === null) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, at);
    this.draw();
  }

  // To whom has never seen it.
  showOnce() {
    if (!localStorage.getItem(SEEN)) this.show(-1);
  }

  get next() {
    return STEPS.findIndex(({ possible }, index) => index > Number(this.at) && (possible?.(this.store) ?? true));
  }

  draw() {
    this.element.hidden = this.at === null || !mayAct();
    if (this.element.hidden) return;
    localStorage.setItem(SEEN, "yes");
    this.told.textContent = STEPS[this.at]?.told ?? "Five clicks, a minute. The tour brings two nodes, jobs and queues of its own, and takes them away at the end.";
    this.button.textContent = STEPS[this.next].click;
  }

  async click() {
    const at = this.next, { act, seen, leads } = STEPS[at];
    this.button.disabled = true;
    try {
      await act();
      const found = await this.until(seen);
      location.hash = leads(found);
      this.show(at === STEPS.length - 1 ? null : at);
    } catch (error) {
      this.told.textContent = `${error.message}. Take it all away, and begin again.`;
      this.at = STEPS.length - 2;
      this.button.textContent = STEPS.at(-1).click;
    }
    this.button.disabled = false;
  }

  async until(seen = () => true) {
    for (const until = performance.now() + PATIENCE_MS; performance.now() < until;) {
      const found = seen(this.store);
      if (found) return found;
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
    throw new Error("It has not happened yet: is the clock paused, or the scheduler's configuration another one?");
  }
}
