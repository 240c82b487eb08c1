// The map of all host slots: a cell each, painted pixel by pixel so that a hundred thousand
// take a few milliseconds. States differ in lightness and, where there is room, in shape.

import { $, make, say, num, color, onLook } from "./ui.js";

export const states = ["empty", "ready", "active", "cooling", "held"];
const words = {
  empty: "empty", ready: "ready to go", active: "at a spider", cooling: "cooling", held: "held back",
};
const fills = 3;
const chunk = 4096;

let slots = 0; // how many there are
let cells = new Uint8Array(0); // by slot: what the server says, unpacked
let shown = new Uint8Array(0); // what is painted
let size = 0, across = 0; // of a cell in device pixels, of the map in cells
let image, tiles, context;
let waiting = []; // chunks that came before the map

// rgb is a colour of the style sheet as a pixel; part is how much of it there is over the panel.
function pixel(name, part) {
  const parse = (text) => {
    const n = parseInt(text.length === 4 ? text.replace(/[^#]/g, "$&$&").slice(1) : text.slice(1), 16);
    return [n >> 16 & 255, n >> 8 & 255, n & 255];
  };
  const c = parse(color(name)), back = parse(color("panel"));
  const [r, g, b] = c.map((v, i) => Math.round(v * part + back[i] * (1 - part)));
  return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
}

// tile is a cell's pixels.
function tile(value, side) {
  const t = new Uint32Array(side * side).fill(pixel("panel", 1));
  const state = value === 0 ? 0 : 1 + Math.floor((value - 1) / fills);
  const fill = value === 0 ? fills - 1 : (value - 1) % fills;
  const inner = side >= 4 ? side - 1 : side; // a gap between cells where there is room
  const ink = pixel(states[state], (inner >= 5 ? [0.6, 0.8, 1] : [0.85, 0.93, 1])[fill]); // small cells: lightness tells the state
  for (let y = 0; y < inner; y++) {
    for (let x = 0; x < inner; x++) {
      let on = true;
      if (inner >= 5) {
        if (states[state] === "empty") on = x === 0 || y === 0 || x === inner - 1 || y === inner - 1;
        if (states[state] === "cooling") on = (x + y) % 3 !== 0;
        if (states[state] === "ready") on = y >= Math.floor(inner / 3);
        if (states[state] === "held") on = Math.abs(x - y) < 1.5 || Math.abs(x + y - inner + 1) < 1.5;
      }
      if (on) t[y * side + x] = ink;
    }
  }
  return t;
}

const makeTiles = (side) => Array.from({ length: 1 + (states.length - 1) * fills }, (_, v) => tile(v, side));

// layout chooses the size of a cell so that all slots fit.
function layout() {
  const canvas = $("map");
  const scale = Math.min(devicePixelRatio || 1, 2);
  const width = Math.max(100, Math.floor(canvas.clientWidth * scale));
  const high = 360 * scale;
  size = Math.floor(20 * scale);
  const fits = (side) => Math.ceil(slots / Math.max(1, Math.floor(width / side))) * side <= high;
  while (size > 1 && !fits(size)) size--;
  across = Math.max(1, Math.floor(width / size));
  if (across > slots) across = Math.max(slots, 1);
  const rows = Math.max(1, Math.ceil(slots / across));
  canvas.width = Math.max(width, across * size);
  canvas.height = rows * size;
  canvas.style.height = canvas.height / scale + "px";
  context = canvas.getContext("2d", { alpha: false });
  const data = context.createImageData(canvas.width, canvas.height);
  image = { data, pixels: new Uint32Array(data.data.buffer), width: canvas.width };
  image.pixels.fill(pixel("panel", 1));
  tiles = makeTiles(size);
  shown = new Uint8Array(slots).fill(255);
  paint();
}

// paint paints the cells that have changed.
function paint() {
  if (!image) return;
  const { pixels, width, data } = image;
  let top = -1, bottom = 0;
  for (let i = 0; i < slots; i++) {
    const v = cells[i];
    if (v === shown[i]) continue;
    shown[i] = v;
    const row = Math.floor(i / across);
    if (top < 0) top = row;
    bottom = row;
    const t = tiles[v];
    let at = row * size * width + (i % across) * size;
    for (let y = 0, from = 0; y < size; y++, at += width) {
      for (let x = 0; x < size; x++) pixels[at + x] = t[from++];
    }
  }
  if (top >= 0) context.putImageData(data, 0, 0, 0, top * size, width, (bottom - top + 1) * size);
}

function unpack(from, packed) {
  const n = Math.min(packed.length * 2, slots - from);
  for (let i = 0; i < n; i++) cells[from + i] = packed[i >> 1] >> (i & 1) * 4 & 15;
}

let due = 0;
function refresh() {
  if (due) return;
  due = requestAnimationFrame(() => {
    due = 0;
    performance.mark("map");
    paint();
    legend();
    performance.measure("map refresh", "map");
  });
}

function legend() {
  const n = new Array(states.length).fill(0);
  for (let i = 0; i < slots; i++) n[cells[i] === 0 ? 0 : 1 + Math.floor((cells[i] - 1) / fills)]++;
  states.forEach((s, i) => say($("n-" + s), `${words[s]} ${num(n[i])}`));
}

function makeLegend() {
  const side = 13;
  const list = states.map((s, i) => {
    const c = make("canvas", { width: side, height: side });
    c.setAttribute("aria-hidden", "true");
    const g = c.getContext("2d"), data = g.createImageData(side, side);
    new Uint32Array(data.data.buffer).set(tile(i === 0 ? 0 : i * fills, side));
    g.putImageData(data, 0, 0);
    return make("li", {}, c, make("span", { id: "n-" + s }, words[s]));
  });
  $("legend").replaceChildren(...list, make("li", { className: "dim" }, "paler: less full"));
}

// setMap takes the whole map, and then what came meanwhile.
export function setMap(packed, total) {
  const fresh = total !== slots || !image;
  if (fresh) {
    slots = total;
    cells = new Uint8Array(slots);
    $("slot").max = slots - 1;
  }
  unpack(0, packed);
  const late = waiting;
  waiting = null;
  late?.forEach(([from, p]) => unpack(from, p));
  if (fresh) layout();
  refresh();
}

// expectMap keeps chunks back until the map itself has come.
export function expectMap() { waiting = []; }

// addChunk takes an event's data: the first slot, and the cells in base64.
export function addChunk(text) {
  const [from, packed] = text.split(" ");
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  if (waiting) {
    if (waiting.length > 2 * Math.ceil(slots / chunk) + 64) waiting.shift();
    waiting.push([Number(from), bytes]);
    return;
  }
  unpack(Number(from), bytes);
  refresh();
}

// slotAt is the slot under a click, or -1.
function slotAt(event) {
  const box = $("map").getBoundingClientRect();
  const x = Math.floor((event.clientX - box.left) / box.width * $("map").width / size);
  const y = Math.floor((event.clientY - box.top) / box.height * $("map").height / size);
  const n = y * across + x;
  return x < across && n < slots ? n : -1;
}

// start wires the map; look is called with the number of a slot to be shown.
export function start(look) {
  makeLegend();
  $("map").addEventListener("click", (e) => {
    const n = slotAt(e);
    if (n < 0) return;
    $("slot").value = n;
    look(n);
  });
  $("pick").addEventListener("submit", (e) => {
    e.preventDefault();
    look(Number($("slot").value));
  });
  let width = 0;
  new ResizeObserver(() => {
    if ($("map").clientWidth !== width && slots > 0) {
      width = $("map").clientWidth;
      layout();
    }
  }).observe($("map"));
  onLook(() => {
    makeLegend();
    if (slots > 0) {
      layout();
      legend();
    }
  });
}
