// A box in the header that finds jobs, nodes, queues and pods by a part of their names; Enter opens the first that is found.

import { html } from "./dom.js";
import { ask } from "./token.js";
import { jobAddress, jobName, nodeAddress, plain, podAddress, queueNames } from "./words.js";

const MOST = 12, FEWEST_LETTERS = 3, SELDOM_MS = 200;

export class Finder {
  constructor(store) {
    this.store = store;
    this.list = html("datalist", { id: "found" });
    this.input = html("input", { type: "search", list: "found", placeholder: "Find", "aria-label": "Find anything", oninput: () => this.offer() });
    this.element = html("form", { class: "find", role: "search", onsubmit: (event) => this.go(event) }, this.input, this.list);
    this.due = 0;
  }

  // [words, address], the most alike first; a queue leads to its jobs.
  found(words) {
    const { store } = this, sought = words.toLowerCase();
    const all = [
      ...[...store.jobs.keys()].map((key) => [`job ${jobName(store, key)}`, jobAddress(key), `${plain(key)} ${jobName(store, key)}`]),
      ...[...store.nodes.keys()].map((name) => [`node ${name}`, nodeAddress(name), name]),
      ...queueNames(store).map((name) => [`queue ${name}`, `#/jobs?queue=${encodeURIComponent(name)}`, name]),
    ];
    const rank = ([shown, , names]) => (shown.toLowerCase() === sought || names.split(" ").includes(sought) ? 0 : names.toLowerCase().startsWith(sought) ? 1 : names.toLowerCase().includes(sought) ? 2 : 3);
    return all.map((one) => [rank(one), one]).filter(([order]) => order < 3).sort(([a], [b]) => a - b).slice(0, MOST).map(([, one]) => one);
  }

  // The same for pods, of which only the server knows the names.
  async pods(words) {
    const sought = words.toLowerCase().replace(/^pod /, "");
    const answer = sought.length >= FEWEST_LETTERS && await ask(`api/pods?letters=${encodeURIComponent(sought)}`).catch(() => null);
    const keys = answer?.ok ? await answer.json() : [];
    return keys.map((key) => [`pod ${plain(key)}`, podAddress(key)]);
  }

  offer() {
    const words = this.input.value.trim();
    const show = (found) => this.list.replaceChildren(...found.map(([shown]) => html("option", { value: shown })));
    const known = words ? this.found(words) : [];
    show(known);
    clearTimeout(this.due);
    this.due = setTimeout(async () => {
      const pods = await this.pods(words);
      if (words === this.input.value.trim()) show([...known, ...pods]);
    }, SELDOM_MS);
  }

  async go(event) {
    event.preventDefault();
    const words = this.input.value.trim();
    if (!words) return;
    const [first] = [...this.found(words), ...(await this.pods(words))];
    location.hash = first ? first[1] : `#/jobs?q=${encodeURIComponent(words)}`;
    this.input.value = "";
  }
}
