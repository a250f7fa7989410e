// The configuration as the scheduler understands it, and what it does otherwise than most would think, on the objects of this cluster.

import { html, table } from "./dom.js";
import { ask } from "./token.js";

export function policy(store) {
  const findings = html("section", { "aria-live": "polite" });
  const understood = html("div");
  const element = html("div", {}, findings, understood);
  let shown = null;

  function draw() {
    const known = store.policy;
    if (!known || known === shown) return;
    shown = known;
    if (!store.past) lint(findings);
    const actions = html("ol", { class: "actions" }, known.actions.map(({ name, text, args }) => html("li", {}, html("h3", {}, name), html("p", {}, text), argument(args))));
    const tiers = known.tiers.map((plugins, index) => {
      const columns = plugins.some(({ off }) => off.length) ? 4 : 3;
      const rows = plugins.map(({ name, text, args, off }) => [name, text, argument(args), off.join(", ")].slice(0, columns));
      return table(["Plugin", "What it does", "Arguments", "Switched off"].slice(0, columns), rows, `Tier ${index + 1}`);
    });
    const profiles = known.profiles.length ? [html("h2", {}, "kube-scheduler's profiles"), html("p", {}, known.profiles.join(", "))] : [];
    understood.replaceChildren(html("h2", {}, "Actions, in this order"), actions, html("h2", {}, "Plugins"), ...tiers, ...profiles);
  }

  return { title: "Policy", element, draw };
}

async function lint(findings) {
  const reply = await ask("api/lint").catch(() => null);
  if (!reply?.ok) return;
  const found = await reply.json();
  const told = found.map(({ level, subject, consequence, example, fix }) => html("li", { class: level },
    html("strong", {}, `${level}: ${subject} `), consequence, html("p", {}, [example && `${example}.`, fix && `${fix}.`].filter(Boolean).join(" "))));
  findings.replaceChildren(html("h2", {}, "What lint finds"), told.length ? html("ul", { class: "findings" }, told) : html("p", { class: "quiet" }, "Nothing."));
}

const argument = (args) => html("span", { class: "args" }, Object.entries(args).map(([name, value]) => `${name}=${value}`).join(", "));
