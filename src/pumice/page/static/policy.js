// The configuration as the scheduler understands it.

import { html, table } from "./dom.js";

export function policy(store) {
  const element = html("div");
  let shown = null;

  function draw() {
    const known = store.policy;
    if (!known || known === shown) return;
    shown = known;
    const actions = html("ol", { class: "actions" }, known.actions.map(({ name, text, args }) => html("li", {}, html("h3", {}, name), html("p", {}, text), argument(args))));
    const tiers = known.tiers.map((plugins, index) =>
      table(["Plugin", "What it does", "Arguments", "Switched off"], plugins.map(({ name, text, args, off }) => [name, text, argument(args), off.join(", ")]), `Tier ${index + 1}`));
    const profiles = known.profiles.length ? [html("h2", {}, "kube-scheduler's profiles"), html("p", {}, known.profiles.join(", "))] : [];
    element.replaceChildren(html("h2", {}, "Actions, in this order"), actions, html("h2", {}, "Plugins"), ...tiers, ...profiles);
  }

  return { title: "Policy", element, draw };
}

const argument = (args) => html("span", { class: "args" }, Object.entries(args).map(([name, value]) => `${name}=${value}`).join(", "));
