// The connection: a snapshot, then changes as they come. A browser that was cut off goes on where it was, or begins anew.

const AGAIN_MS = 1000;

export class Live {
  // `tell` is called with live, lost or paused.
  constructor(store, tell) {
    this.store = store;
    this.tell = tell;
    this.source = null;
    this.paused = false;
  }

  async begin() {
    this.source?.close();
    try {
      const answer = await fetch("api/snapshot");
      if (!answer.ok) throw new Error(answer.statusText);
      const snapshot = await answer.json();
      if (this.paused) return;
      this.store.replace(snapshot);
      this.follow(snapshot.place);
    } catch {
      this.tell("lost");
      setTimeout(() => this.paused || this.begin(), AGAIN_MS);
    }
  }

  follow(place) {
    const source = this.source = new EventSource(`api/events?after=${place}`);
    source.onopen = () => this.tell("live");
    source.onmessage = (event) => this.store.apply(JSON.parse(event.data));
    source.addEventListener("reset", () => this.begin());
    source.onerror = () => {
      this.tell("lost");
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.source === source && this.begin(), AGAIN_MS);
    };
  }

  pause() {
    this.paused = true;
    this.source?.close();
    this.tell("paused");
  }

  resume() {
    this.paused = false;
    this.begin();
  }
}
