// What can be done to the cluster from here: requests to its API, as kubectl would send them, with the token of the address that
// `pumice up` printed. The API server decides what the token may do; without one nothing is offered.

import { html } from "./dom.js";
import { ask, token } from "./token.js";

const BATCH = "apis/batch.volcano.sh/v1alpha1", CORE = "api/v1", CLOCK = "api/v1/namespaces/kube-system/configmaps/pumice-clock";
export const JOB_KIND = "batch.volcano.sh/v1alpha1/Job";

let offered = false;

// Whether the server has an API to act on.
export const offerActs = (whether) => { offered = whether; };
export const mayAct = () => offered && token() !== null;

async function request(method, path, body, type = "application/json") {
  const answer = await ask(path, { method, headers: { "Content-Type": type }, body: body && JSON.stringify(body) });
  const told = await answer.json();
  if (answer.ok) return told;
  throw Object.assign(new Error(answer.status === 401 ? "the cluster does not know this page's token; open the address that `pumice up` printed" : told.message), { status: answer.status });
}

const merge = (path, change) => request("PATCH", path, change, "application/merge-patch+json");
const at = (...parts) => parts.map(encodeURIComponent).join("/");

export const create = (path, object) => request("POST", path, object);
export const remove = (path) => request("DELETE", path);
export const JOBS = `${BATCH}/namespaces/default/jobs`, PODS = `${CORE}/namespaces/default/pods`;
export const jobPath = (namespace, name) => `${BATCH}/namespaces/${at(namespace, "jobs", name)}`;
export const podPath = (namespace, name) => `${CORE}/namespaces/${at(namespace, "pods", name)}`;

// In a list, since it may be gone.
export async function findJob(namespace, name) {
  const { items } = await request("GET", `${BATCH}/namespaces/${at(namespace)}/jobs?fieldSelector=metadata.name=${at(name)}`);
  return items[0];
}

export async function suspendedJobs() {
  const { items } = await request("GET", `${BATCH}/jobs`);
  return items.filter(({ status }) => status?.state?.phase === "Aborted").map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
}

// What is told of objects of these names, the newest first.
export async function eventsOf(namespace, names) {
  const path = `${CORE}/namespaces/${at(namespace)}/events?fieldSelector=involvedObject.name=`;
  const found = await Promise.all(names.map((name) => request("GET", path + at(name))));
  return found.flatMap(({ items }) => items).sort((a, b) => (b.lastTimestamp ?? "").localeCompare(a.lastTimestamp ?? ""));
}

// Volcano's orders, AbortJob and ResumeJob, name the job that is there now.
export async function order(namespace, name, action) {
  const { metadata: { uid } } = await request("GET", jobPath(namespace, name));
  const target = { apiVersion: "batch.volcano.sh/v1alpha1", kind: "Job", name, uid, controller: true, blockOwnerDeletion: true };
  const metadata = { generateName: `${name}-${action.toLowerCase()}-`, namespace, ownerReferences: [target] };
  return create(`apis/bus.volcano.sh/v1alpha1/namespaces/${at(namespace)}/commands`, { metadata, target, action });
}

export const simulateFromHere = (configuration, seconds) => request("POST", "api/simulate", { configuration, seconds });
export const cordon = (node, unschedulable) => merge(`${CORE}/nodes/${at(node)}`, { spec: { unschedulable } });
export const fail = (node, failed) => merge(`${CORE}/nodes/${at(node)}`, { metadata: { annotations: { "pumice.io/kubelet": failed ? "stopped" : null } } });

// A job of equal pods: a gang, if more than one must start together.
export function volcanoJob({ name, queue, pods, minimum, gpus, cpus, seconds, priority, spec = {} }) {
  const amounts = { cpu: String(cpus), memory: `${4 * cpus}Gi`, ...(gpus ? { "nvidia.com/gpu": String(gpus) } : {}) };
  const containers = [{ name: "main", image: "train:1", resources: { requests: amounts, limits: gpus ? { "nvidia.com/gpu": String(gpus) } : {} } }];
  const template = { metadata: { annotations: { "pumice.io/run-seconds": String(seconds) } }, spec: { restartPolicy: "Never", containers, ...spec } };
  return { metadata: { name, annotations: { "pumice.io/estimate": `${seconds}s` } }, spec: { schedulerName: "volcano", queue, minAvailable: minimum, ...(priority ? { priorityClassName: priority } : {}), tasks: [{ name: "worker", replicas: pods, template }] } };
}

// Buttons, and what came of the last one. `offers` are [words, act]; what an act gives is said.
export class Acts {
  constructor() {
    this.said = html("output", { class: "said" });
    this.buttons = html("span", { class: "buttons" });
    this.element = html("div", { class: "acts", hidden: !mayAct() }, this.buttons, this.said);
    this.offered = null;
  }

  offer(offers) {
    const words = offers.map(([name]) => name).join();
    if (this.offered === words) return;
    this.offered = words;
    this.buttons.replaceChildren(...offers.map(([name, act]) => html("button", { type: "button", onclick: (event) => this.run(act, event.target) }, name)));
  }

  async run(act, button) {
    button.disabled = true;
    try {
      this.said.textContent = (await act()) ?? "";
    } catch (error) {
      this.said.textContent = error.message;
    }
    button.disabled = false;
  }
}

// How fast the cluster's clock runs: the ConfigMap that kubectl would change.
const SPEEDS = ["0", "1", "10", "60", "600"];

export function speedChoice() {
  const select = html("select", { "aria-label": "Speed of the clock", onchange: () => merge(CLOCK, { data: { speed: select.value } }).catch(read) });
  const words = (value) => (value === "0" ? "clock stopped" : `clock ${value} ×`);
  const offer = ({ data: { speed } }) => select.replaceChildren(...[...new Set([...SPEEDS, speed])].sort((a, b) => a - b).map((value) =>
    html("option", { value, selected: value === speed }, words(value))));
  const read = () => request("GET", CLOCK).then(offer, () => { select.hidden = true; });
  read();
  return select;
}
