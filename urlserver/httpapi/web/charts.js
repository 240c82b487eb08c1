// The charts of the last hour. Lines differ in their dashes, too, for those who see no colours.

import { $, make, say, num, span, color, onLook } from "./ui.js";

const hour = 3600;

const rest = (s) => s.statuses.slice(5).reduce((a, b) => a + b, 0);

// Each chart: where, how to write a value, and its lines: name, colour, dashes, value of a sample. The lines of one that is
// stacked stand on each other, the first at the bottom.
const charts = [
  { id: "statuses", write: num, stacked: true, lines: [
    ["2xx", "c2", [], (s) => s.statuses[0]],
    ["3xx", "c3", [], (s) => s.statuses[1]],
    ["4xx", "c4", [], (s) => s.statuses[2]],
    ["5xx", "c5", [], (s) => s.statuses[3]],
    ["none", "c0", [], (s) => s.statuses[4]],
    ["not fetched", "c9", [], rest],
  ] },
  { id: "rates", write: num, lines: [
    ["sent", "s1", [], (s) => s.sent],
    ["done", "s2", [6, 3], (s) => s.outcomes[0]],
  ] },
  { id: "latency", write: span, lines: [
    ["fetch", "s1", [], (s) => s.fetch],
    ["doc index", "s2", [6, 3], (s) => s.index],
    ["DNS", "s4", [2, 2], (s) => s.dns],
  ] },
];

let samples = [], every = 10;

const svg = (tag, attributes) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
};

function key(c) {
  return c.lines.map(([name, ink, dash], i) => {
    const s = svg("svg", { width: 22, height: 8, "aria-hidden": "true" });
    if (c.stacked) s.append(svg("rect", { width: 22, height: 8, fill: color(ink) }));
    else s.append(svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: color(ink), "stroke-width": 2, "stroke-dasharray": dash.join(" ") }));
    return make("li", {}, s, `${name} `, make("span", { id: `v-${c.id}-${i}` }, "–"));
  });
}

// read takes the samples into a chart: c.shown has the sample of each point, null where some are missing. It returns the
// data as uPlot wants them; those of a stacked chart are sums, the highest first, so that lower ones are painted over it.
function read(c) {
  c.shown = [];
  const x = [];
  let last = 0;
  for (const s of samples) {
    if (last && s.at - last > 2.5 * every) {
      x.push(last + every);
      c.shown.push(null);
    }
    last = s.at;
    x.push(s.at);
    c.shown.push(s);
  }
  let below = x.map(() => 0);
  const ys = c.lines.map(([, , , value]) => {
    const y = c.shown.map((s, i) => (s === null ? null : c.stacked ? below[i] + value(s) : value(s)));
    below = y;
    return y;
  });
  return [x, ...(c.stacked ? ys.reverse() : ys)];
}

function values(c, index) {
  const s = index === null || index === undefined ? samples[samples.length - 1] : c.shown[index];
  c.lines.forEach(([, , , value], i) => {
    const v = s ? value(s) : null;
    say($(`v-${c.id}-${i}`), v === null || v === undefined ? "–" : c.write(v));
  });
}

// range is the last hour, or as much of it as there is, but ten minutes at least.
function range() {
  const end = samples.length ? samples[samples.length - 1].at : Date.now() / 1e3;
  const begin = samples.length ? samples[0].at : end;
  return [Math.max(end - hour, Math.min(begin, end - 600)), end];
}

function options(c) {
  const ink = color("dim"), line = color("line");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
  return {
    width: $("plot-" + c.id).clientWidth || 300, height: 150, padding: [8, 18, 0, 0],
    legend: { show: false }, cursor: { points: { size: 5 }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range },
      y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 24, values: (_, all) => all.map((t) => new Date(t * 1e3).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })) },
      { ...axis, size: 52, space: 28, values: (_, all) => all.map((v) => c.write(v)) },
    ],
    series: [{}, ...(c.stacked ? c.lines.toReversed() : c.lines).map(([label, stroke, dash]) => ({
      label, stroke: color(stroke), dash, width: c.stacked ? 1 : 1.5, fill: c.stacked ? color(stroke) : undefined,
      points: { show: () => !c.stacked && samples.length < 20, size: 4 }, spanGaps: false,
    }))],
    hooks: { setCursor: [(u) => values(c, u.cursor.idx)] },
  };
}

function build() {
  for (const c of charts) {
    c.plot?.destroy();
    $("legend-" + c.id).replaceChildren(...key(c));
    c.plot = new uPlot(options(c), read(c), $("plot-" + c.id));
    values(c);
  }
}

function update() {
  for (const c of charts) {
    c.plot.setData(read(c));
    values(c, c.plot.cursor.left >= 0 ? c.plot.cursor.idx : null);
  }
}

// setHistory takes the answer of /api/history.
export function setHistory(h) {
  samples = h.samples;
  every = h.every_s;
  build();
}

export function addSample(s) {
  if (samples.length && s.at <= samples[samples.length - 1].at) return;
  samples = samples.filter((o) => o.at > s.at - hour - 60);
  samples.push(s);
  if (charts[0].plot) update();
}

export function start() {
  new ResizeObserver(() => {
    for (const c of charts) {
      const width = $("plot-" + c.id).clientWidth;
      if (c.plot && width && width !== c.plot.width) c.plot.setSize({ width, height: 150 });
    }
  }).observe($("charts"));
  onLook(() => { if (charts[0].plot) build(); });
}
