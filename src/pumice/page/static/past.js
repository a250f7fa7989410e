// The last minutes, as the server keeps them: the state as it was then, and what it told since.

import { Store } from "./store.js";
import { ask } from "./token.js";

export class Past {
  // Of what is known now; later instants are left out. Until the server has answered, there is only the present.
  constructor(store) {
    this.now = store.copy();
    this.first = this.now;
    this.changes = [];
  }

  async read() {
    const answer = await ask("api/past").catch(() => null);
    if (!answer?.ok) return;
    const { first, changes } = await answer.json();
    this.first = new Store();
    this.first.replace({ ...first, history: this.now.history.filter(({ at }) => at <= first.at), policy: this.now.policy });
    this.changes = changes.filter(({ number }) => number <= this.now.number);
  }

  // The state after so many of the changes.
  state(count) {
    const store = this.first.copy();
    for (const change of this.changes.slice(0, count)) store.apply(change);
    store.past = true;
    return store;
  }
}
