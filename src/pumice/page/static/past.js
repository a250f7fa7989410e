// The last minutes, to go back over: the state as it was then, and what the server sent since, as it came. Bounded in time and in bytes;
// what is too old becomes part of the state.

const KEPT_MS = 600_000, KEPT_BYTES = 24 * 2 ** 20;

export class Past {
  // From this state on.
  begin(store) {
    this.first = store.copy();
    this.sent = [];
    this.size = 0;
  }

  note(text) {
    const now = performance.now();
    this.sent.push({ at: now, text });
    this.size += text.length;
    while (this.sent.length && (this.size > KEPT_BYTES || this.sent[0].at < now - KEPT_MS)) this.fold();
  }

  fold() {
    const { text } = this.sent.shift();
    this.size -= text.length;
    this.first.apply(JSON.parse(text));
  }

  // As it is now, whatever comes.
  frozen() {
    return Object.assign(new Past(), { first: this.first.copy(), sent: [...this.sent] });
  }

  // The state after so many of the changes.
  state(count) {
    const store = this.first.copy();
    for (const { text } of this.sent.slice(0, count)) store.apply(JSON.parse(text));
    store.past = true;
    return store;
  }
}
