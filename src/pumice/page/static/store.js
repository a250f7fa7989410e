// What is known of the cluster: one state, changed by what the server sends and by nothing else.
//
// A message holds maps of rows by name, where null is gone; a snapshot is the message that begins anew. `dirty` names what changed since
// views last drew, so that they draw no more than that.

import { noted } from "./history.js";

const KINDS = ["nodes", "jobs", "queues"];
const MOST_CYCLES = 200;

export class Store {
  constructor(changed = () => {}) {
    this.changed = changed;
    this.at = 0;
    this.count = 0;
    this.number = 0; // of the last message
    this.policy = null;
    this.past = false;
    this.clear();
  }

  // Rows are never changed, so they are shared.
  copy() {
    const { at, count, number, policy, cycles, history, version } = this;
    const maps = Object.fromEntries(KINDS.map((kind) => [kind, new Map(this[kind])]));
    return Object.assign(new Store(), { at, count, number, policy, cycles, history, version, ...maps });
  }

  clear() {
    for (const kind of KINDS) this[kind] = new Map();
    this.cycles = [];
    this.history = [];
    this.dirty = clean();
    this.dirty.all = true;
  }

  replace(snapshot) {
    this.clear();
    this.version = snapshot.version;
    this.acts = snapshot.acts;
    this.recordings = snapshot.recordings; // their folder
    this.longHistory = snapshot.longHistory; // where the past beyond the last hour comes from
    this.history = snapshot.history;
    this.apply(snapshot);
  }

  apply(message) {
    for (const kind of KINDS) {
      for (const [name, row] of Object.entries(message[kind] ?? {})) {
        if (row === null) this[kind].delete(name);
        else this[kind].set(name, row);
        this.dirty[kind].add(name);
      }
    }
    if (message.cycles) {
      this.cycles = [...this.cycles, ...message.cycles].slice(-MOST_CYCLES);
      this.dirty.cycles = true;
    }
    if (message.policy) this.policy = message.policy;
    this.at = message.at;
    this.count = message.count;
    this.number = message.number;
    if (message.queues) this.remember();
    this.changed();
  }

  remember() {
    const before = this.history;
    this.history = noted(before, this.at, Object.fromEntries([...this.queues].map(([name, { held }]) => [name, held])));
    this.dirty.history ||= this.history !== before;
  }

  // What changed since this was last called.
  takeDirty() {
    const taken = this.dirty;
    this.dirty = clean();
    return taken;
  }
}

const clean = () => ({ nodes: new Set(), jobs: new Set(), queues: new Set(), cycles: false, history: false, all: false });
