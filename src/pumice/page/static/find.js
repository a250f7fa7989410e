// A box in the header that finds jobs, nodes and queues by a part of their names; Enter opens the first that is found.

import { html } from "./dom.js";
import { jobAddress, jobName, nodeAddress, plain, queueNames } from "./words.js";

const MOST = 12;

export class Finder {
  constructor(store) {
    this.store = store;
    this.list = html("datalist", { id: "found" });
    this.input = html("input", { type: "search", list: "found", placeholder: "Find", "aria-label": "Find anything", oninput: () => this.offer() });
    this.element = html("form", { class: "find", role: "search", onsubmit: (event) => this.go(event) }, this.input, this.list);
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

  offer() {
    const words = this.input.value.trim();
    this.list.replaceChildren(...(words ? this.found(words).map(([shown]) => html("option", { value: shown })) : []));
  }

  go(event) {
    event.preventDefault();
    const words = this.input.value.trim();
    if (!words) return;
    const [first] = this.found(words);
    location.hash = first ? first[1] : `#/jobs?q=${encodeURIComponent(words)}`;
    this.input.value = "";
  }
}
