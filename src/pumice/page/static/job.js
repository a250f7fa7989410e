// One job: why it waits, its gang, its pods and their times, and what was decided about it.

import { Acts, eventsOf, findJob, JOB_KIND, jobPath, mayAct, order, podPath, remove } from "./acts.js";
import { gantt } from "./charts.js";
import { html } from "./dom.js";
import { clock, duration } from "./format.js";
import { Rows } from "./rows.js";
import { amount, asks, expectedStart, factsOf, jobAddress, jobKey, jobName, jobState, latestStart, namespaceOf, nodeAddress, plain, podAddress, RESOURCE_NAMES, RESOURCES } from "./words.js";
import { Answer } from "./answer.js";
import { ask } from "./token.js";

const MOST_PODS = 300, MOST_BARS = 60, MOST_EVENTS = 50, ABORTING_MS = 500;

export function job(store, subject) {
  let key = subject;
  const why = html("p", { class: "why" });
  const acts = new Acts();
  const answer = new Answer(tell);
  const condition = html("p", { class: "quiet", hidden: true });
  const facts = html("dl", { class: "facts" });
  const chart = gantt({ title: "Pods over time", empty: true });
  const pods = new Rows("Pods", [
    { name: "Pod", cell: (pod) => [pod.name, podAddress(`${namespaceOf(key)}/${pod.name}`)] },
    { name: "Role", cell: (pod) => pod.role },
    { name: "State", cell: (pod) => pod.status },
    { name: "Node", cell: (pod) => (pod.node ? [pod.node, nodeAddress(pod.node)] : "") },
    { name: "Asks for", cell: asks },
    { name: "Why it waits", words: true, cell: (pod) => pod.why ?? "" },
  ]);
  const decided = new Rows("What was decided about it", [
    { name: "Time", cell: (one) => clock(one.at) },
    { name: "Cycle", number: true, cell: (one) => [one.cycle, `#/decisions/${one.cycle}`] },
    { name: "Decision", words: true, cell: (one) => one.words },
  ]);
  const events = new Rows("Events", [
    { name: "Last", cell: ({ lastTimestamp }) => (lastTimestamp ? clock(Date.parse(lastTimestamp) / 1000) : "") },
    { name: "Times", number: true, cell: ({ count }) => String(count ?? 1) },
    { name: "Reason", cell: ({ reason }) => reason ?? "" },
    { name: "Message", words: true, cell: ({ message }) => message ?? "" },
  ]);
  events.element.hidden = true;
  const element = html("div", {}, why, acts.element, answer.element, condition, facts, pods.element, chart, decided.element, events.element);
  let asking = false, changed = false;

  // Again when it changed meanwhile.
  async function look() {
    changed = true;
    if (asking) return;
    asking = true;
    while (changed) {
      changed = false;
      try {
        const answer = await ask(`api/job?name=${encodeURIComponent(key)}`);
        if (answer.ok) show(await answer.json());
        if (mayAct()) await showEvents();
      } catch {
        // The connection is lost, which the header says.
      }
    }
    asking = false;
  }

  // Those of its PodGroup are the scheduler's, those of what made it its controller's.
  async function showEvents() {
    const namespace = namespaceOf(key), { owner } = store.jobs.get(key) ?? {};
    const found = await eventsOf(namespace, [...new Set([key.split("/").at(-1), owner])].filter(Boolean));
    events.element.hidden = !found.length;
    events.draw(found.slice(0, MOST_EVENTS).map((event) => [event.metadata.uid, event]));
  }

  // Of pods without a PodGroup, the first that waits is asked about.
  function show(found) {
    const first = key.startsWith("pod/") && found.find(({ status }) => status === "Pending");
    if (first) answer.ask(`pod/${namespaceOf(key)}/${first.name}`);
    pods.element.hidden = chart.hidden = !found.length;
    pods.draw(found.slice(0, MOST_PODS).map((pod) => [pod.name, pod]));
    const shown = found.slice(0, MOST_BARS);
    const roles = [...new Set(shown.map((pod) => pod.role || "pods"))];
    const begin = Math.min(...shown.map((pod) => pod.created));
    chart.update({
      title: "Pods over time", description: "The dotted line is a pod's wait.", xLabel: "time since the first pod was created", rows: roles, until: Math.max(1, store.at - begin), empty: !shown.length,
      bars: {
        name: shown.map((pod) => pod.name), queue: shown.map((pod) => roles.indexOf(pod.role || "pods")), submit: shown.map((pod) => pod.created - begin),
        start: shown.map((pod) => (pod.started == null ? null : pod.started - begin)), end: shown.map(() => null),
      },
    });
  }

  function draw(dirty) {
    key = jobKey(store, subject);
    const row = store.jobs.get(key);
    facts.hidden = !row;
    if (!row || store.past) pods.element.hidden = chart.hidden = events.element.hidden = true;
    if (!row) {
      why.textContent = "There is no such job (any more).";
      why.hidden = false;
      condition.hidden = true;
      answer.clear();
      if (dirty.all || dirty.jobs.size) lookForSuspended();
    } else {
      acts.offer(offers(key, row));
      const waits = jobState(row) === "waiting";
      tell();
      describe(row);
      if (!store.past && (dirty.all || dirty.jobs.has(key))) {
        look();
        if (!waits) answer.clear();
        else if (!key.startsWith("pod/")) answer.ask(`podgroup/${key}`);
      }
    }
    if (dirty.all || dirty.cycles) drawDecided();
  }

  // Why it waits in plain words, once they are known; its condition is in those of Volcano or kube-scheduler.
  function tell() {
    const row = store.jobs.get(key);
    if (!row) return;
    const line = !store.past && answer.line;
    why.hidden = jobState(row) !== "waiting";
    why.textContent = line ? `It waits: ${line}` : row.why || "It waits, and no cycle has decided about it yet.";
    condition.hidden = why.hidden || !line || !row.why;
    condition.textContent = `Its condition says: ${row.why}`;
  }

  // A suspended job has no PodGroup, so the scheduler does not know of it.
  async function lookForSuspended() {
    const [namespace, name] = subject.split("/");
    acts.offer([]);
    if (!mayAct() || store.past || !name) return;
    const found = await findJob(namespace, name).catch(() => null);
    const phase = found?.status?.state?.phase;
    if (phase === "Aborting") setTimeout(lookForSuspended, ABORTING_MS);
    if (phase !== "Aborted") return;
    why.textContent = "It is suspended: its pods have ended.";
    acts.offer([["Resume", async () => { await order(namespace, name, "ResumeJob"); }], ["Delete", async () => { await remove(jobPath(namespace, name)); }]]);
  }

  function describe(row) {
    const held = RESOURCES.filter((name) => row.held[name] || row.asked[name]).map((name) => `${amount(name, row.held[name])} of ${amount(name, (row.held[name] ?? 0) + (row.asked[name] ?? 0))} ${RESOURCE_NAMES[name]}`);
    const counts = Object.entries(row.pods).map(([state, count]) => `${count} ${state}`).join(", ");
    const told = [["State", `${jobState(row)}${row.phase && ` (${row.phase})`}`], ["Age", duration(Math.max(0, Math.floor(store.at - row.created)))], ["Queue", row.queue || "none"],
      ["Pods", counts || "none yet"], ["Gang", row.minimum ? `at least ${row.minimum} together` : "none"], ["Holds", held.join(", ") || "nothing"], ["Priority", String(row.priority ?? 0)],
      ...(row.expected ? [["Expected start", `${expectedStart(row, store.at)}; ${latestStart(row, store.at).toLowerCase()}`]] : [])];
    const words = told.flat().join();
    if (facts.dataset.words === words) return;
    facts.dataset.words = words;
    facts.replaceChildren(...factsOf(told));
  }

  function drawDecided() {
    const found = store.cycles.flatMap((cycle) => [
      ...cycle.binds.filter(([, of]) => of === key).map(([pod, , node, action]) => ({ at: cycle.at, cycle: cycle.number, words: `${plain(pod)} to ${node}, by ${action}` })),
      ...cycle.evictions.filter(([, of]) => of === key).map(([pod, , node, whom, action]) => ({ at: cycle.at, cycle: cycle.number, words: `${plain(pod)} evicted from ${node} by ${action}${whom ? ` for ${plain(whom)}` : ""}` })),
    ]);
    decided.element.hidden = !found.length;
    decided.draw(found.slice(-100).map((one) => [`${one.cycle} ${one.words}`, one]));
  }

  return { title: jobName(store, jobKey(store, subject)), element, draw };
}

// What may be done to a Job of Volcano, and to a pod of nobody; other workloads are their controllers'.
function offers(key, { owner, kind }) {
  const [namespace, name] = key.replace(/^pod\//, "").split("/");
  if (key.startsWith("pod/") && !owner) return [["Delete", async () => { await remove(podPath(namespace, name)); }]];
  if (kind !== JOB_KIND) return [];
  const suspend = async () => {
    await order(namespace, owner, "AbortJob");
    location.hash = jobAddress(`${namespace}/${owner}`);
  };
  return [["Suspend", suspend], ["Delete", async () => { await remove(jobPath(namespace, owner)); }]];
}
