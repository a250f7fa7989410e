// The page: one store, one connection, and the view that the address names. Views are drawn at most ten times a second.

import { html } from "./dom.js";
import { clock } from "./format.js";
import { Live } from "./live.js";
import { Store } from "./store.js";
import { cluster } from "./cluster.js";
import { node } from "./node.js";
import { queues } from "./queues.js";
import { jobs } from "./jobs.js";
import { job } from "./job.js";
import { pod } from "./pod.js";
import { decisions } from "./decisions.js";
import { policy } from "./policy.js";

const DRAW_MS = 100;
const VIEWS = { cluster, nodes: node, queues, jobs, job, pod, decisions, policy };
const WORDS = { live: "live", lost: "connection lost, trying again", paused: "paused" };

const main = document.getElementById("main");
const connection = document.getElementById("connection");
const store = new Store(() => drawSoon());
const live = new Live(store, (state) => {
  if (state === connection.dataset.state) return;
  const back = state === "live" && connection.dataset.state === "lost";
  connection.dataset.state = state;
  connection.textContent = back ? "live again" : WORDS[state];
});
let view = null;
let waiting = false;

// #/jobs?queue=a and #/job/default/train: a name, the rest of the path, and parameters.
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  return { name: VIEWS[name] ? name : "cluster", subject: rest.join("/"), parameters: new URLSearchParams(query) };
}

function open() {
  if (location.hash === "#main") return;
  const { name, subject, parameters } = address();
  view = VIEWS[name](store, subject, parameters);
  document.title = `${view.title} · Pumice`;
  const heading = html("h1", {}, view.title);
  main.replaceChildren(heading, view.element);
  const section = { nodes: "cluster", job: "jobs", pod: "jobs" }[name] ?? name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${section}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (store.policy) view.draw({ ...store.takeDirty(), all: true });
}

function drawSoon() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => requestAnimationFrame(() => {
    waiting = false;
    document.getElementById("clock").textContent = clock(store.at);
    view.draw(store.takeDirty());
  }), DRAW_MS);
}

document.getElementById("pause").addEventListener("click", (event) => {
  if (live.paused) live.resume();
  else live.pause();
  event.target.textContent = live.paused ? "Go on" : "Pause";
});
addEventListener("hashchange", () => { open(); if (location.hash !== "#main") main.focus({ preventScroll: true }); scrollTo(0, 0); });
open();
live.begin();
