// Pausing, and going back over the last minutes: while it is on, views show the state of the chosen instant. The connection goes on.

import { html } from "./dom.js";
import { clock } from "./format.js";
import { Past } from "./past.js";

export class Replay {
  // `show` is called with the state to show, or null for the present.
  constructor(store, show) {
    this.store = store;
    this.show = show;
    this.slider = html("input", { type: "range", min: 0, "aria-label": "Instant", oninput: () => this.go(0) });
    this.time = html("output");
    this.element = html("section", { class: "replay", "aria-label": "The last minutes", hidden: true },
      html("button", { type: "button", onclick: () => this.go(-1) }, "← earlier"), this.slider,
      html("button", { type: "button", onclick: () => this.go(1) }, "later →"), this.time);
    this.button = document.getElementById("pause");
  }

  async toggle() {
    const on = this.element.hidden && this.store.policy;
    this.element.hidden = !on;
    this.button.textContent = on ? "Go on" : "Pause";
    if (!on) return this.show(null);
    const past = this.past = new Past(this.store);
    this.reach();
    await past.read();
    return this.past === past && !this.element.hidden && this.reach();
  }

  // From its first instant to its last, which is shown.
  reach() {
    this.slider.max = this.past.changes.length;
    this.slider.value = this.slider.max;
    this.go(0);
  }

  go(step) {
    this.slider.value = Number(this.slider.value) + step;
    const state = this.past.state(Number(this.slider.value));
    this.time.textContent = `${clock(state.at)}, shown as it was`;
    this.slider.setAttribute("aria-valuetext", clock(state.at));
    this.show(state);
  }
}
