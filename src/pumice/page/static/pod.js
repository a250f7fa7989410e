// One pod: whose it is, its state, and why it waits, or why it stands where it does, with the scores of the nodes that were compared.

import { Answer } from "./answer.js";
import { html } from "./dom.js";
import { duration } from "./format.js";
import { ask } from "./token.js";
import { asks, factsOf, jobAddress, jobName, nodeAddress, plain } from "./words.js";

export function pod(store, key) {
  const facts = html("dl", { class: "facts" });
  const answer = new Answer();
  const again = html("button", { type: "button", onclick: () => look() }, "Ask again");

  async function look() {
    answer.ask(`pod/${key}`);
    const reply = await ask(`api/pod?name=${encodeURIComponent(key)}`).catch(() => null);
    const row = reply?.ok ? await reply.json() : null;
    facts.replaceChildren(...(row ? factsOf(told(row)) : []));
    if (reply?.ok && !row) facts.replaceChildren(html("p", { class: "quiet" }, "There is no such pod (any more)."));
  }

  const told = (row) => [["State", row.status], ["Job", html("a", { href: jobAddress(row.job) }, jobName(store, row.job))], ...(row.role ? [["Role", row.role]] : []),
    ["Node", row.node ? html("a", { href: nodeAddress(row.node) }, row.node) : "none yet"], ["Asks for", asks(row) || "nothing"],
    ["Age", duration(Math.max(0, Math.floor(store.at - row.created)))], ...(row.started ? [["Runs for", duration(Math.max(0, Math.floor(store.at - row.started)))]] : [])];

  look();
  return { title: `Pod ${plain(key)}`, element: html("div", {}, facts, answer.element, again), draw: () => {} };
}
