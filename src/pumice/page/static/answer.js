// Why something waits, or stands where it does, as the scheduler answers it: the binding constraint with its numbers, what would help, the
// chain of questions, the nearest nodes, and how the nodes score. It is rehearsed for whoever asks, so it is asked seldom, and once more
// after the last change; what would let it start now, and when it will, only when somebody wants to know.

import { html } from "./dom.js";
import { duration, number } from "./format.js";
import { Rows } from "./rows.js";
import { nodeAddress } from "./words.js";
import { ask } from "./token.js";

const SELDOM_MS = 3000;

export class Answer {
  // `said` is called when there is another line; without it the line is shown here.
  constructor(said) {
    this.said = said;
    this.line = "";
    this.told = html("div", { "aria-live": "polite" });
    this.options = html("div", { "aria-live": "polite" });
    this.expected = html("p", { "aria-live": "polite", hidden: true });
    this.buttons = html("div", { class: "buttons", hidden: true },
      html("button", { type: "button", onclick: ({ target }) => this.more(target, "whatif", (found) => this.options.replaceChildren(...changes(found))) }, "What would let it start now?"),
      html("button", { type: "button", onclick: ({ target }) => this.more(target, "eta", (found) => this.expect(found)) }, "When will it start?"));
    this.element = html("div", { class: "answer" }, this.told, this.buttons, this.expected, this.options);
    this.subject = "";
    this.askedAt = -Infinity;
    this.due = 0;
  }

  clear() {
    clearTimeout(this.due);
    this.due = 0;
    this.line = this.subject = "";
    this.told.replaceChildren();
    this.options.replaceChildren();
    this.buttons.hidden = this.expected.hidden = true;
  }

  ask(subject) {
    this.subject = subject;
    this.due ||= setTimeout(() => this.askNow(), Math.max(0, this.askedAt + SELDOM_MS - performance.now()));
  }

  async askNow() {
    const { subject } = this;
    this.due = 0;
    this.askedAt = performance.now();
    const reply = await ask(`api/why?subject=${encodeURIComponent(subject)}`).catch(() => null); // A lost connection is said in the header.
    if (reply?.ok && subject === this.subject) this.show(await reply.json());
  }

  // Questions that take longer, for who wants to know.
  async more(button, question, show) {
    button.disabled = true;
    const reply = await ask(`api/${question}?subject=${encodeURIComponent(this.subject)}`).catch(() => null);
    if (reply) show(await reply.json());
    button.disabled = false;
  }

  expect({ error, state, p50, p90, runTimes }) {
    const later = p90 == null ? "a week may pass" : `within ${duration(p90)} with a chance of 90 %`;
    const words = p50 == null ? "it does not start within a week" : `it starts within ${duration(p50)} as likely as not, ${later}`;
    const from = Object.entries(runTimes ?? {}).map(([source, jobs]) => `${source} (${jobs})`).join(", ");
    this.expected.hidden = false;
    this.expected.textContent = error ?? (state === "runs" ? "It does not wait any more." : `As things go, ${words}. Run times are taken from: ${from}.`);
  }

  show({ line, remedy, evictions, answer }) {
    this.buttons.hidden = answer.state !== "waits";
    this.line = line;
    this.said?.();
    this.told.replaceChildren(...[
      !this.said && html("p", {}, answer.headline && html("strong", {}, `It ${answer.state}: `), line),
      answer.never && html("p", {}, html("strong", {}, "It can never run here: "), answer.never),
      remedy.length && html("p", {}, html("strong", {}, "What would help: "), remedy.join("; ")),
      answer.chain && html("ol", { class: "chain" }, answer.chain.map(({ question, fine, answer: words }) =>
        html("li", { class: fine ? "fine" : "refused" }, html("span", { class: "question" }, question), ` ${words}`))),
      answer.nearest && filled("The nearest nodes", [
        { name: "Node", cell: ({ node }) => [node, nodeAddress(node)] }, { name: "Lacks", words: true, cell: ({ lacks }) => lacks.join("; ") || "nothing" }], answer.nearest),
      answer.alternatives && scores(answer.alternatives),
      answer.evictions && html("p", {}, html("strong", {}, "Evicted: "), evictions.join("; ")),
    ].filter(Boolean));
  }
}

function changes({ error, options = [], whole, told }) {
  if (error) return [html("p", { class: "quiet" }, error)];
  const rows = new Rows("Changes that were each tried in a rehearsed cycle", [
    { name: "With", words: true, cell: ({ change }) => change }, { name: "It", words: true, cell: ({ then }) => then }, { name: "And the others", words: true, cell: ({ others }) => others }]);
  rows.draw(options.map((option) => [option.change, option]));
  const unfinished = !whole && "The search took too long here and was ended; `pumice whatif` tries everything.";
  const words = options.length ? unfinished : unfinished || told;
  return [options.length && rows.element, words && html("p", { class: "quiet" }, words)].filter(Boolean);
}

// Nodes by plugin; a click on a heading orders them.
function scores(nodes) {
  const plugins = Object.keys(nodes[0].scores ?? {});
  let sort = "total", falling = true;
  const of = (one, name) => (name === "total" ? one.total : name === "node" ? one.node : one.scores[name]);
  const column = (name, more) => ({ name, sort: name, number: name !== "node", cell: (one) => number(of(one, name)), ...more });
  const rows = new Rows("How the nodes score for it now", [
    column("node", { cell: ({ node }) => [node, nodeAddress(node)] }), column("total"), ...plugins.map((name) => column(name))], (name) => {
    falling = sort === name ? !falling : name !== "node";
    sort = name;
    draw();
  });
  const compare = (a, b) => (sort === "node" ? a.node.localeCompare(b.node, "en", { numeric: true }) : of(a, sort) - of(b, sort));
  const draw = () => {
    rows.draw([...nodes].sort((a, b) => (falling ? -1 : 1) * compare(a, b)).map((one) => [one.node, one]));
    rows.mark(sort, falling);
  };
  draw();
  return rows.element;
}

function filled(caption, columns, entries) {
  const rows = new Rows(caption, columns);
  rows.draw(entries.map((entry) => [entry.node, entry]));
  return rows.element;
}
