// The cycles that decided something over time: a bar up for what was bound, one down for what was evicted. A click opens the cycle; the
// table below has the same for those who do not see it.

import { svg } from "./dom.js";
import { clock } from "./format.js";

const HEIGHT = 40, DOWN = 20, WORDS = 14, LEAST = 2;

export class Timeline {
  constructor() {
    this.element = svg("svg", { class: "timeline", "aria-hidden": "true", width: "100%", height: HEIGHT + DOWN + WORDS });
  }

  draw(cycles) {
    const [first, last] = [cycles[0]?.at, cycles.at(-1)?.at];
    const most = Math.max(1, ...cycles.map(({ bound, evicted }) => Math.max(bound, evicted)));
    const size = (count, room) => (count ? Math.max(LEAST, (room * count) / most) : 0);
    const time = (at, x, anchor) => svg("text", { x, y: HEIGHT + DOWN + WORDS - 2, "text-anchor": anchor }, clock(at));
    const ends = [cycles.length && time(first, 0, "start"), last > first && time(last, "100%", "end")];
    this.element.replaceChildren(svg("line", { x1: 0, x2: "100%", y1: HEIGHT, y2: HEIGHT }), ...ends.filter(Boolean), ...cycles.map((cycle) => {
      const x = `${last > first ? (99 * (cycle.at - first)) / (last - first) : 0}%`;
      const up = size(cycle.bound, HEIGHT), down = size(cycle.evicted, DOWN);
      return svg("a", { href: `#/decisions/${cycle.number}`, tabindex: -1 },
        svg("title", {}, `Cycle ${cycle.number}: ${cycle.bound} bound, ${cycle.evicted} evicted`),
        svg("rect", { class: "bound", x, y: HEIGHT - up, width: 6, height: up }), svg("rect", { class: "evicted", x, y: HEIGHT, width: 6, height: down }));
    }));
  }
}
