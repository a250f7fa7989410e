// One pod: why it waits, or why it stands where it does, with the scores of the nodes that were compared.

import { Answer } from "./answer.js";
import { html } from "./dom.js";
import { plain } from "./words.js";

export function pod(store, key) {
  const answer = new Answer();
  const again = html("button", { type: "button", onclick: () => answer.ask(`pod/${key}`) }, "Ask again");
  answer.ask(`pod/${key}`);
  return { title: `Pod ${plain(key)}`, element: html("div", {}, answer.element, again), draw: () => {} };
}
