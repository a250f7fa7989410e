// The connection: a snapshot, then changes as they come. A browser that was cut off goes on where it was, or begins anew. Who is not let in
// is told why.

import { ask } from "./token.js";

const AGAIN_MS = 1000, AT_ONCE_MS = 100;
const REFUSALS = [401, 403];

class Refused extends Error {}

export class Live {
  // `tell` is called with live, lost, or refused and why.
  constructor(store, tell) {
    this.store = store;
    this.tell = tell;
  }

  // As long as one is let in.
  async begin() {
    let place = null;
    for (;;) {
      try {
        place = await this.follow(place ?? await this.read());
        await pause(AT_ONCE_MS);
      } catch (error) {
        if (error instanceof Refused) return this.tell("refused", error.message);
        place = error.place;
        this.tell("lost");
        await pause(AGAIN_MS);
      }
    }
  }

  async read() {
    const snapshot = await (await opened("api/snapshot")).json();
    this.store.replace(snapshot);
    return snapshot.place;
  }

  // The place where the server ended; null to begin anew.
  async follow(place) {
    try {
      const answer = await opened(`api/events?after=${place}`);
      this.tell("live");
      for await (const { id, event, data } of messages(answer.body)) {
        if (event === "reset") return null;
        place = id;
        this.store.apply(JSON.parse(data));
      }
      return place;
    } catch (error) {
      throw Object.assign(error, { place });
    }
  }
}

async function opened(path) {
  const answer = await ask(path);
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({}));
  throw REFUSALS.includes(answer.status) ? new Refused(error) : new Error(error);
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const whole = (rest + value).split("\n\n");
    rest = whole.pop();
    for (const message of whole) {
      const fields = Object.fromEntries(message.split("\n").map((line) => line.split(/: (.*)/, 2)));
      if (fields.data) yield fields;
    }
  }
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
