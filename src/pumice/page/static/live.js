// The connection: a snapshot, then changes as they come. A browser that was cut off goes on where it was, or begins anew.

const AGAIN_MS = 1000;

export class Live {
  // `tell` is called with live or lost.
  constructor(store, past, tell) {
    this.store = store;
    this.past = past;
    this.tell = tell;
    this.source = null;
  }

  async begin() {
    this.source?.close();
    try {
      const answer = await fetch("api/snapshot");
      if (!answer.ok) throw new Error(answer.statusText);
      const snapshot = await answer.json();
      this.store.replace(snapshot);
      this.past.begin(this.store);
      this.follow(snapshot.place);
    } catch {
      this.tell("lost");
      setTimeout(() => this.begin(), AGAIN_MS);
    }
  }

  follow(place) {
    const source = this.source = new EventSource(`api/events?after=${place}`);
    source.onopen = () => this.tell("live");
    source.onmessage = ({ data }) => {
      this.store.apply(JSON.parse(data));
      this.past.note(data);
    };
    source.addEventListener("reset", () => this.begin());
    source.onerror = () => {
      this.tell("lost");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.source === source && this.begin(), AGAIN_MS);
    };
  }
}
