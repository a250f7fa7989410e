// Charts: SVG drawn in the browser from plain columns, for the page and for the simulator's report.
//
//   const figure = lines({ title, description, x: [0, 60], series: [{ name: "held", y: [3, 8] }] });
//   figure.update(data);  // other data in its place
//
// A chart is a function of its data and its width that gives marks, stops and a table. Stops are what the pointer and the arrow keys go
// over: each is a place and a sentence. Colours are classes (s0 to s7) and custom properties (charts.css), so that light, dark and print
// are the style sheet's business. Numbers are shown by formats that data names: number, percent, duration, clock.

import { html, svg, table } from "./dom.js";
import { FORMATS } from "./format.js";

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000, 2592000, 8640000];
const TIMES = ["duration", "clock", "day", "hour"];
const TONES = 8;
const BAR = 18;
const RIGHT = 14; // the margin, in pixels

export const lines = (data) => chart(drawLines, data);
export const bars = (data) => chart(drawBars, data);
export const gantt = (data) => chart(drawGantt, data);
export const bands = (data) => chart(drawBands, data);
export const heat = (data) => chart(drawHeat, data);
export const CHARTS = { lines, bars, gantt, bands, heat };

let numbered = 0;

function chart(draw, data) {
  const id = `chart-${++numbered}`;
  const title = html("strong", { id: `${id}-title` });
  const described = html("span", { id: `${id}-text` });
  const legend = html("ul", { class: "legend" });
  const stage = html("div", { class: "stage" });
  const readout = html("output", { class: "readout" });
  const values = html("details", { ontoggle: () => render() }, html("summary", {}, "Table"));
  const figure = html("figure", { class: "chart" }, html("figcaption", {}, title, described), legend, stage, readout, values);
  let width = 0;
  let at = -1;

  function render() {
    if (!width) return;
    const drawn = data.empty || isEmpty(data) ? { height: 60, marks: [text(width / 2, 34, "Nothing to show yet", "empty")], stops: [] } : draw(data, width);
    const cursor = svg("rect", { class: "cursor", visibility: "hidden" });
    const picture = svg("svg",
      { viewBox: `0 0 ${width} ${drawn.height}`, height: drawn.height, role: "img", tabindex: 0, "aria-labelledby": `${id}-title ${id}-text` },
      svg("title", {}, data.title), svg("desc", {}, data.description ?? ""), drawn.marks, cursor);
    title.textContent = data.title;
    described.textContent = data.description ?? "";
    legend.replaceChildren(...(drawn.legend ?? []).map(([name, tone]) => html("li", {}, html("i", { class: `swatch ${tone}` }), name)));
    const show = (next) => {
      at = Math.max(0, Math.min(drawn.stops.length - 1, next));
      const stop = drawn.stops[at];
      if (!stop) return;
      for (const name of ["x", "y", "width", "height"]) cursor.setAttribute(name, stop[name]);
      cursor.setAttribute("visibility", "visible");
      readout.textContent = stop.text;
    };
    picture.addEventListener("pointermove", (event) => show(nearest(drawn.stops, event.offsetX, event.offsetY)));
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: drawn.down ?? 1, ArrowUp: -(drawn.down ?? 1), Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      show(at + step);
    });
    const focused = document.activeElement === stage.firstChild && stage.firstChild;
    stage.replaceChildren(picture);
    if (focused) picture.focus();
    if (at >= 0 && at < drawn.stops.length) show(at);
    values.hidden = !drawn.table;
    const opened = values.open && drawn.table ? [table(...drawn.table, data.title)] : [];
    values.replaceChildren(values.firstChild, ...opened);
  }

  figure.update = (next) => { data = next; render(); };
  new ResizeObserver(([entry]) => {
    const next = Math.floor(entry.contentRect.width);
    if (next && next !== width) { width = next; render(); }
  }).observe(stage);
  return figure;
}

const isEmpty = (data) => [data.x, data.labels, data.bars?.start, data.rows].every((column) => !column?.length);

function nearest(stops, x, y) {
  const off = (place, start, size) => Math.max(start - place, 0, place - start - size);
  let best = 0, least = Infinity;
  stops.forEach((stop, index) => {
    const distance = off(x, stop.x, stop.width) + off(y, stop.y, stop.height);
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

// Scales and axes

function scale([low, high], [from, to], kind) {
  const bend = kind === "log" ? Math.log1p : (value) => value;
  const [a, b] = [bend(low), bend(high === low ? low + 1 : high)];
  return (value) => from + ((bend(value) - a) / (b - a)) * (to - from);
}

const extent = (values) => values.reduce(([low, high], value) => (value == null ? [low, high] : [Math.min(low, value), Math.max(high, value)]), [Infinity, -Infinity]);

function ticks([low, high], most, format, kind) {
  if (kind === "log") return [0, 10, 60, 600, 3600, 21600, 86400, 864000, 8640000].filter((value) => value >= low && value <= high);
  const rough = (high - low) / Math.max(1, most) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const round = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const step = TIMES.includes(format) ? TIME_STEPS.find((size) => size >= rough) ?? round : round;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, index) => (first + index) * step);
}

const text = (x, y, words, kind = "", anchor = "middle") => svg("text", { x, y, class: kind, "text-anchor": anchor }, String(words));

const LETTER = 6.6; // pixels, at most

function clipped(words, width) {
  const most = Math.max(3, Math.floor(width / LETTER));
  return words.length > most ? `${words.slice(0, most - 1)}…` : words;
}

// A tick whose words would stand out at a side ends there; the name of the axis stands below the ticks.
function xAxis(data, range, place, top, bottom) {
  const format = FORMATS[data.xFormat ?? "number"], [begin, right] = [place(range[0]), place(range[1])];
  const label = (value) => {
    const words = String(format(value)), half = (words.length * LETTER) / 2, at = place(value);
    if (at - half < 0) return text(0, bottom + 16, words, "", "start");
    return at + half > right + RIGHT ? text(right + RIGHT, bottom + 16, words, "", "end") : text(at, bottom + 16, words, "", "middle");
  };
  const marks = ticks(range, (right - begin) / 90, data.xFormat ?? "number", data.xScale).map((value) =>
    svg("g", {}, svg("line", { class: "grid", x1: place(value), x2: place(value), y1: top, y2: bottom }), label(value)));
  return data.xLabel ? [...marks, text(right + RIGHT, bottom + 32, data.xLabel, "axis", "end")] : marks;
}

// The room that ticks and the name of the axis need.
const below = (data) => (data.xLabel ? 40 : 24);

const yTicks = (data, range) => ticks(range, 4).map((value) => [value, FORMATS[data.yFormat ?? "number"](value)]);

function yAxis(labels, name, place, left, right) {
  const marks = labels.map(([value, words]) =>
    svg("g", {}, svg("line", { class: "grid", x1: left, x2: right, y1: place(value), y2: place(value) }), text(left - 6, place(value) + 4, words, "", "end")));
  return name ? [text(0, 11, name, "axis", "start"), ...marks] : marks;
}

// Lines, steps and areas over x: series of { name, y, dashed }. `shape` is line, step, area or stack; `xScale` "log" bends x.

function drawLines(data, width) {
  const { x, series, shape = "line" } = data;
  const [right, top, height] = [width - RIGHT, data.yLabel ? 22 : 8, data.height ?? 200 + (data.yLabel ? 14 : 0) + (data.xLabel ? 16 : 0)];
  const bottom = height - below(data);
  const shown = shape === "stack" ? stacked(series) : series.map((one) => ({ ...one, base: null }));
  const highest = Math.max(data.yMax ?? 0, ...shown.map(({ y }) => extent(y)[1])) || 1;
  const range = [Math.min(0, ...series.map(({ y }) => extent(y)[0])), highest];
  const labels = yTicks(data, range), left = Math.max(40, 10 + LETTER * Math.max(0, ...labels.map(([, words]) => words.length)));
  const across = scale(extent(x), [left, right], data.xScale), up = scale(range, [bottom, top]);
  const path = (y) => trace(x, y, across, up, shape !== "line");
  const marks = shown.map(({ y, base, dashed }, index) => {
    const filled = shape === "area" || shape === "stack";
    const floor = base ? ` L${trace(x, base, across, up, true, true)} Z` : ` V${up(0)} H${across(x[0])} Z`;
    return svg("g", { class: series[index].tone ?? tone(index) },
      filled && svg("path", { class: "area", d: `M${path(y)}${floor}` }),
      svg("path", { class: dashed ? "line dashed" : "line", d: `M${path(y)}` }));
  });
  const xs = FORMATS[data.xFormat ?? "number"], ys = FORMATS[data.yFormat ?? "number"];
  const stops = x.map((value, index) => ({
    x: across(value), y: top, width: 0.5, height: bottom - top,
    text: `${xs(value)}: ${series.map(({ name, y }) => `${name} ${ys(y[index])}`).join(", ")}`,
  }));
  return {
    height, stops,
    marks: [yAxis(labels, data.yLabel, up, left, right), xAxis(data, extent(x), across, top, bottom), marks].flat(),
    legend: series.length > 1 ? series.map(({ name, dashed, tone: own }, index) => [name, `${own ?? tone(index)}${dashed ? " hollow" : ""}`]) : [],
    table: [[data.xLabel ?? "", ...series.map(({ name }) => name)], x.map((value, index) => [xs(value), ...series.map(({ y }) => ys(y[index]))])],
  };
}

const tone = (index) => `s${index % TONES}`;

function stacked(series) {
  let base = series[0].y.map(() => 0);
  return series.map((one) => {
    const floor = base;
    base = floor.map((value, index) => value + (one.y[index] ?? 0));
    return { ...one, y: base, base: floor };
  });
}

function trace(x, y, across, up, stepped, backwards = false) {
  const points = [];
  y.forEach((value, index) => {
    if (value == null) return;
    const place = [across(x[index]).toFixed(1), up(value).toFixed(1)];
    if (stepped && points.length) points.push([place[0], points.at(-1)[1]]);
    points.push(place);
  });
  return (backwards ? points.reverse() : points).map((point) => point.join(" ")).join(" L");
}

// Horizontal bars: a label each, and for it a bar of every series.

function drawBars(data, width) {
  const { labels, series } = data;
  const format = FORMATS[data.yFormat ?? "number"];
  const longest = Math.max(...series.flatMap(({ y }) => y.map((value) => String(format(value)).length)));
  const left = Math.min(180, width * 0.36), right = width - Math.max(40, 10 + LETTER * longest);
  const highest = Math.max(data.yMax ?? 0, ...series.flatMap(({ y }) => y)) || 1;
  const across = scale([0, highest], [left, right]);
  const thick = series.length > 1 ? 11 : BAR, group = thick * series.length + 8;
  const stops = [], marks = [];
  labels.forEach((label, row) => {
    marks.push(text(left - 8, row * group + group / 2 + 4, clipped(label, left), "", "end"));
    series.forEach(({ name, y }, index) => {
      const top = row * group + 4 + index * thick, size = Math.max(0, across(y[row]) - left);
      marks.push(svg("rect", { class: `mark ${tone(index)}`, x: left, y: top, width: size, height: thick - 2 }));
      if (thick === BAR || y[row]) marks.push(text(left + size + 5, top + thick / 2 + 3, format(y[row]), "", "start"));
      stops.push({ x: left, y: top, width: Math.max(size, 2), height: thick - 2, text: `${label}: ${name} ${format(y[row])}` });
    });
  });
  return {
    marks, stops, height: labels.length * group + 6,
    legend: series.length > 1 ? series.map(({ name }, index) => [name, tone(index)]) : [],
    table: [["", ...series.map(({ name }) => name)], labels.map((label, row) => [label, ...series.map(({ y }) => format(y[row]))])],
  };
}

// Bars over time, a row of lanes for each queue: columns name, queue (an index into `rows`), submit, start, end (null: still so).

function drawGantt(data, width) {
  const { bars: { name, queue, submit, start, end, note = [] }, rows, until } = data;
  const left = Math.min(150, width * 0.28), right = width - RIGHT;
  const format = FORMATS[data.xFormat ?? "duration"];
  const range = [Math.min(...submit), until];
  const across = scale(range, [left, right]);
  const order = name.map((_, index) => index).sort((a, b) => submit[a] - submit[b] || a - b);
  const stops = [], marks = [];
  let top = 6;
  rows.forEach((label, row) => {
    const members = order.filter((index) => queue[index] === row);
    const lanes = packed(members, submit, (index) => end[index] ?? until);
    const thick = lanes.count > 12 ? 9 : BAR;
    marks.push(text(left - 8, top + 13, clipped(label, left), "", "end"));
    members.forEach((index, place) => {
      const y = top + lanes.of[place] * thick, stop = end[index] ?? until, begin = start[index] ?? stop;
      const waits = svg("line", { class: "waits", x1: across(submit[index]), x2: across(begin), y1: y + thick / 2, y2: y + thick / 2 });
      const size = Math.max(1, across(stop) - across(begin));
      const runs = svg("rect", { class: `mark ${tone(row)}`, x: across(begin), y: y + 1, width: size, height: thick - 2, rx: 2 });
      marks.push(waits, start[index] != null && runs);
      if (thick === BAR && size > name[index].length * 6.6 + 8) marks.push(text(across(begin) + 4, y + 13, name[index], "inside", "start"));
      const told = start[index] == null ? `waits since ${format(submit[index])}` : `waited ${FORMATS.duration(begin - submit[index])}, ran ${format(begin)} to ${format(stop)}`;
      stops.push({ x: across(submit[index]), y, width: Math.max(2, across(stop) - across(submit[index])), height: thick,
        text: `${name[index]} (${label}): ${told}${note[index] ? `; ${note[index]}` : ""}` });
    });
    top += Math.max(1, lanes.count) * thick + 8;
    marks.push(svg("line", { class: "grid", x1: 0, x2: right, y1: top - 4, y2: top - 4 }));
  });
  return {
    stops, marks: [xAxis({ xFormat: "duration", ...data }, range, across, 0, top), marks].flat().filter(Boolean), height: top + below(data),
    table: [["job", "queue", "submitted", "started", "ended"], order.map((index) => [name[index], rows[queue[index]], format(submit[index]), start[index] == null ? "" : format(start[index]), end[index] == null ? "" : format(end[index])])],
  };
}

function packed(members, submit, ends) {
  const free = [], of = [];
  for (const index of members) {
    let lane = free.findIndex((until) => until <= submit[index]);
    if (lane < 0) lane = free.length;
    free[lane] = ends(index);
    of.push(lane);
  }
  return { of, count: free.length };
}

// The same for many jobs: for each queue a band of what it holds over time, and a line of what its jobs ask for beside that, which is
// cut off where it would make the band flat.

function drawBands(data, width) {
  const { x, rows, yFormat = "number" } = data;
  const left = Math.min(150, width * 0.28), right = width - RIGHT, tall = rows.length > 8 ? 34 : 52;
  const xs = FORMATS[data.xFormat ?? "duration"], ys = FORMATS[yFormat];
  const across = scale(extent(x), [left, right]);
  const stops = [], marks = [];
  rows.forEach(({ name, held, wanted }, row) => {
    const bottom = (row + 1) * tall, peak = Math.min(Math.max(...wanted), 2 * Math.max(...held)) || Math.max(...wanted) || 1;
    const up = scale([0, peak], [bottom - 2, bottom - tall + 8]);
    marks.push(text(left - 8, bottom - tall / 2 + 2, clipped(name, left), "", "end"), text(left - 8, bottom - tall / 2 + 16, `to ${ys(peak)}`, "faint", "end"));
    marks.push(svg("g", { class: tone(row) },
      svg("path", { class: "area strong", d: `M${trace(x, held, across, up, true)} V${bottom - 2} H${left} Z` }),
      svg("path", { class: "line dashed", d: `M${trace(x, wanted.map((value) => Math.min(value, peak)), across, up, true)}` })));
    marks.push(svg("line", { class: "grid", x1: 0, x2: right, y1: bottom, y2: bottom }));
    x.forEach((value, index) => stops.push({ x: across(value), y: bottom - tall, width: 0.5, height: tall,
      text: `${name}, ${xs(value)}: holds ${ys(held[index])} of ${ys(wanted[index])} asked for` }));
  });
  const height = rows.length * tall;
  return {
    stops, down: x.length, height: height + below(data), marks: [xAxis({ xFormat: "duration", ...data }, extent(x), across, 0, height), marks].flat(),
    legend: [["held", "s0"], ["held and asked for", "s0 hollow"]],
    table: [[data.xLabel ?? "", ...rows.map(({ name }) => name)], x.map((value, index) => [xs(value), ...rows.map(({ held }) => ys(held[index]))])],
  };
}

// A grid of cells, of a fuller colour where more: rows of { name, values } over the columns `x`, which are names.

function drawHeat(data, width) {
  const { x, rows } = data;
  const format = FORMATS[data.yFormat ?? "number"];
  const left = Math.min(150, width * 0.28), side = (width - RIGHT - left) / x.length, tall = 26;
  const highest = Math.max(...rows.flatMap(({ values }) => values.map((value) => value ?? 0))) || 1;
  const depth = scale([0, highest], [0.06, 1]);
  const stops = [], marks = [];
  rows.forEach(({ name, values }, row) => {
    const y = 22 + row * tall;
    marks.push(text(left - 8, y + 17, clipped(name, left), "", "end"));
    values.forEach((value, column) => {
      const cell = { x: left + column * side, y, width: Math.max(1, side - 2), height: tall - 2 };
      if (value != null) marks.push(svg("rect", { class: "mark s0", "fill-opacity": depth(value).toFixed(2), ...cell }));
      if (value != null && side > 62) marks.push(text(cell.x + side / 2, y + 16, format(value), depth(value) > 0.5 ? "inside" : ""));
      stops.push({ ...cell, text: `${name}, ${x[column]}: ${value == null ? "none" : format(value)}` });
    });
  });
  const labels = x.map((label, column) => text(left + (column + 0.5) * side, 14, clipped(label, side)));
  return {
    stops, down: x.length, height: 22 + rows.length * tall, marks: [...labels, ...marks],
    table: [["", ...x], rows.map(({ name, values }) => [name, ...values.map((value) => (value == null ? "" : format(value)))])],
  };
}
