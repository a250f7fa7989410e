// What jobs, nodes and queues are called and coloured, the same in all views.

import { html } from "./dom.js";
import { duration, number } from "./format.js";

const TONES = 8;
const DONE = ["Succeeded", "Failed"];

export const jobAddress = (key) => `#/job/${key.split("/").map(encodeURIComponent).join("/")}`;
export const podAddress = (key) => `#/pod/${key.split("/").map(encodeURIComponent).join("/")}`;
export const nodeAddress = (name) => `#/nodes/${encodeURIComponent(name)}`;
export const plain = (key) => key.replace(/^pod\//, "").replace(/^default\//, "");
export const namespaceOf = (key) => key.replace(/^pod\//, "").split("/")[0];

// Pods without a PodGroup are in no queue; what they have is in a row of this name.
export const NO_QUEUE = "-";
export const queueName = (name) => (name === NO_QUEUE ? "no queue" : name);
export const queueNames = (store) => [...store.queues.keys()].filter((name) => name !== "root" && name !== NO_QUEUE).sort();


// As its user called it: the name of what made its PodGroup or its pods.
export function jobName(store, key) {
  const owner = store.jobs.get(key)?.owner;
  return plain(owner ? `${namespaceOf(key)}/${owner}` : key);
}

// What a link to a job leads to: a PodGroup's key, or the name of what made it.
export function jobKey(store, subject) {
  if (store.jobs.has(subject)) return subject;
  return [...store.jobs.keys()].find((key) => store.jobs.get(key).owner && `${namespaceOf(key)}/${store.jobs.get(key).owner}` === subject) ?? subject;
}

// waiting, running or done: pods that wait make a job wait, whatever else runs.
export function jobState(job) {
  const counts = job.pods;
  if (counts.Pending || counts.Pipelined) return "waiting";
  if (Object.keys(counts).some((name) => !DONE.includes(name))) return "running";
  return job.phase === "Completed" || DONE.some((name) => counts[name]) ? "done" : "waiting";
}

// When a job is expected to start: as likely as not, and with a chance of 90 %.
export const expectedStart = (job, at) => (job.expected ? until(job.expected[0], at) : "–");
export const latestStart = (job, at) => (job.expected ? `With a chance of 90 %: ${until(job.expected[1], at)}` : "");
const until = (instant, at) => (instant === null ? "not within a week" : instant - at < 1 ? "any moment" : `in ${duration(Math.ceil(instant - at))}`);

// From its making to the start of its first pod, or until now.
export const waited = (job, at) => Math.max(0, Math.floor((job.started ?? at) - job.created));

export const asked = (job, resource) => (job.held[resource] ?? 0) + (job.asked[resource] ?? 0);

// Queues have colours in the order of their names; jobs by their names.
export function queueTone(store, name) {
  const at = queueNames(store).indexOf(name);
  return at < 0 ? "none" : `s${at % TONES}`;
}

export function jobTone(key) {
  let sum = 7;
  for (const letter of key) sum = (sum * 31 + letter.codePointAt(0)) % 9973;
  return `s${sum % TONES}`;
}

const GI = 2 ** 30;
const MANY_GI = 10240;
export const inUnits = (resource, value = 0) => (resource === "memory" ? value / GI : value);
export const amount = (resource, value = 0) => (resource !== "memory" ? number(value) : value < MANY_GI * GI ? `${number(value / GI)} Gi` : `${number(value / GI / 1024)} Ti`);
export const RESOURCES = ["gpu", "cpu", "memory"];
export const RESOURCE_NAMES = { gpu: "GPUs", cpu: "CPUs", memory: "memory" };

// Those of which the cluster has any.
export function resourcesOf(store) {
  const there = new Set([...store.nodes.values()].flatMap((node) => Object.keys(node.room)));
  return RESOURCES.filter((name) => there.has(name));
}

// What a pod asks for, in words.
export const asks = (pod) => RESOURCES.filter((name) => pod.asks[name]).map((name) => `${amount(name, pod.asks[name])} ${RESOURCE_NAMES[name]}`).join(", ");

// Names and values, as the children of a dl.
export const factsOf = (told) => told.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value)));

export function choice(label, options, chosen, change) {
  const select = html("select", { onchange: (event) => change(event.target.value) },
    options.map(([value, text]) => html("option", { value, selected: value === chosen }, text)));
  return html("label", {}, `${label} `, select);
}

// The address with other parameters: views can be shared as they are.
export function remember(parameters, name, value) {
  if (value) parameters.set(name, value);
  else parameters.delete(name);
  const [path] = location.hash.split("?");
  history.replaceState(null, "", `${path || "#/cluster"}${parameters.size ? `?${parameters}` : ""}`);
}
