// Asks for a bearer token, where the page is shown to those alone who have one.

import { html } from "./dom.js";
import { keepToken } from "./token.js";

export function signIn(why, then) {
  const input = html("input", { type: "password", autocomplete: "off", required: true });
  const form = html("form", { class: "choices", onsubmit: enter }, html("label", {}, "Bearer token ", input), html("button", { class: "strong" }, "Look"));

  function enter(event) {
    event.preventDefault();
    keepToken(input.value.trim());
    then();
  }

  return [html("h1", {}, "Who are you?"), html("p", { role: "alert" }, why), form];
}
