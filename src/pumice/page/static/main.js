// The page: one store, one connection, and the view that the address names. Views are drawn at most ten times a second.

import { mayAct, offerActs, speedChoice } from "./acts.js";
import { html } from "./dom.js";
import { clock } from "./format.js";
import { Finder } from "./find.js";
import { Live } from "./live.js";
import { commandFor } from "./shell.js";
import { Replay } from "./replay.js";
import { signIn } from "./signin.js";
import { Store } from "./store.js";
import { takeToken } from "./token.js";
import { Tour } from "./tour.js";
import { cluster } from "./cluster.js";
import { node } from "./node.js";
import { queues } from "./queues.js";
import { jobs } from "./jobs.js";
import { job } from "./job.js";
import { pod } from "./pod.js";
import { decisions } from "./decisions.js";
import { policy } from "./policy.js";
import { simulate } from "./simulate.js";
import { defrag } from "./defrag.js";
import { usage } from "./usage.js";

const DRAW_MS = 100;
const VIEWS = { cluster, nodes: node, queues, jobs, job, pod, usage, decisions, policy, defrag, simulate };
const WORDS = { live: "live", lost: "connection lost, trying again", refused: "not let in" };

const isNew = takeToken();
const main = document.getElementById("main");
const connection = document.getElementById("connection");
const store = new Store(() => drawSoon());
const tour = new Tour(store);
const replay = new Replay(store, (then) => { shown = then ?? store; sayState(); open(); });
const live = new Live(store, (state, why) => {
  refused = state === "refused";
  if (refused) {
    view = null;
    main.replaceChildren(...signIn(why, () => live.begin()));
  }
  if (state === connection.dataset.state) return;
  isBack = state === "live" && connection.dataset.state === "lost";
  connection.dataset.state = state;
  sayState();
});
let shown = store; // or a state of the past
let view = null;
let waiting = false;
let refused = false;
let isBack = false; // live again
let sayCommand = () => {};

function sayState() {
  const { state } = connection.dataset;
  document.body.classList.toggle("paused", shown !== store);
  connection.textContent = shown !== store && state === "live" ? "paused" : isBack ? "live again" : WORDS[state];
}

// #/jobs?queue=a and #/job/default/train: a name, the rest of the path, and parameters.
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map(decodeURIComponent);
  return { name: Object.hasOwn(VIEWS, name) ? name : "cluster", subject: rest.join("/"), parameters: new URLSearchParams(query) };
}

function open() {
  if (refused || !store.policy) return;
  const { name, subject, parameters } = address();
  view = VIEWS[name](shown, subject, parameters);
  document.title = `${view.title} · Pumice`;
  const heading = html("h1", {}, view.title);
  const command = html("code");
  const shell = html("p", { class: "quiet shell" }, "The same in the shell: ", command);
  sayCommand = () => { command.textContent = commandFor(name, store, subject, parameters); };
  main.replaceChildren(heading, view.element, shell);
  const section = { nodes: "cluster", job: "jobs", pod: "jobs" }[name] ?? name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#/${section}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view.draw({ ...shown.takeDirty(), all: true });
  sayCommand();
}

function drawSoon() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => requestAnimationFrame(() => {
    waiting = false;
    if (refused) return;
    if (!view) begin();
    document.getElementById("clock").textContent = clock(store.at);
    tour.draw();
    if (shown === store) view.draw(store.takeDirty());
  }), DRAW_MS);
}

// Something is known.
function begin() {
  const acting = document.getElementById("acting");
  acting.hidden = !store.acts;
  offerActs(store.acts);
  if (mayAct()) acting.replaceChildren(speedChoice(), html("button", { type: "button", onclick: () => tour.show(-1) }, "Tour"));
  open();
}

document.getElementById("pause").addEventListener("click", () => replay.toggle());
if (isNew) tour.showOnce();
main.before(tour.element);
document.querySelector("header nav").after(new Finder(store).element);
document.body.append(replay.element);
addEventListener("hashchange", () => {
  if (takeToken()) return location.reload();
  if (location.hash === "#main") return null;
  open();
  main.focus({ preventScroll: true });
  return scrollTo(0, 0);
});
main.addEventListener("change", () => sayCommand()); // of what is chosen
live.begin();
