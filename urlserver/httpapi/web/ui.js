// What all parts of the page use: elements, numbers and times for people, calls of the API.

export const $ = (id) => document.getElementById(id);

// make returns an element with properties and children; text children are text, never HTML.
export function make(tag, props = {}, ...children) {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

export function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

// num is the one way in which numbers are written: 2.5, 2,322, 999,999, 1.25 M.
export function num(n) {
  if (n < 9.95) return tenth.format(n);
  if (n < 999999.5) return whole.format(n);
  for (const [unit, size] of [["M", 1e6], ["G", 1e9], ["T", 1e12]]) {
    const v = n / size;
    if (v < 999.5 || unit === "T") return (v < 9.995 ? v.toFixed(2) : v < 99.95 ? v.toFixed(1) : whole.format(v)) + " " + unit;
  }
}

// span is a time in seconds, in the unit that suits it.
export function span(s) {
  if (s === null || s === undefined) return "–";
  if (s === 0) return "0 s";
  if (s < 1e-3) return num(s * 1e6) + " µs";
  if (s < 1) return num(s * 1e3) + " ms";
  if (s < 120) return num(s) + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  if (s < 172800) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " d";
}

// moment is a date of the API in the browser's own time: 2026-11-23 04:56:57.
export function moment(text) {
  if (!text) return "–";
  const t = new Date(text), pad = (n) => String(n).padStart(2, "0");
  return `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
}

// localised writes the dates in a text of the daemon as moment does.
export function localised(text) {
  return text.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, moment);
}

// until is how long it is to a date; "now" where it is past.
export function until(text) {
  if (!text) return "–";
  const left = (new Date(text) - Date.now()) / 1e3;
  return left <= 0 ? "now" : "in " + span(left < 10 ? left : Math.round(left));
}

// levelName is what people call a level of politeness.
export function levelName(level) {
  return level === "network" ? "shared network" : level;
}

// call asks the API. What is refused is an Error with the daemon's own words.
export async function call(path, method = "GET", body, type = "application/json") {
  const init = { method, headers: {} };
  if (body !== undefined) {
    init.body = type === "application/json" ? JSON.stringify(body) : body;
    init.headers["Content-Type"] = type;
  }
  let answer;
  try {
    answer = await fetch(path, init);
  } catch {
    throw new Error("The daemon does not answer.");
  }
  if (answer.status === 401) {
    location.assign("/login");
    throw new Error("The session is over.");
  }
  const what = answer.headers.get("Content-Type") || "";
  if (what.startsWith("application/octet-stream")) return new Uint8Array(await answer.arrayBuffer());
  const value = what.startsWith("application/json") ? await answer.json() : {};
  if (!answer.ok) {
    const err = new Error(value.error || answer.statusText);
    err.status = answer.status;
    err.value = value;
    throw err;
  }
  return value;
}

let toastTimer;
export function toast(text) {
  $("toast").replaceChildren(make("p", {}, text));
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => $("toast").replaceChildren(), 6000);
}

// color is one of the style sheet's colours. It is read once: to ask for it makes the browser bring all styles up to date.
const colors = new Map();
export function color(name) {
  if (!colors.has(name)) colors.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return colors.get(name);
}

const look = matchMedia("(prefers-color-scheme: dark)");
look.addEventListener("change", () => colors.clear()); // before those below

// onLook calls f when colours change, for what is painted with them.
export function onLook(f) {
  look.addEventListener("change", f);
}

// rows makes a table's body have these rows: build makes one, fill fills it anew. Who is in one of them with the keyboard stays
// there when it moves, and is led to the table when it goes.
export function rows(body, list, key, build, none) {
  const focused = body.contains(document.activeElement) ? document.activeElement : null;
  place(body, list, key, build, none);
  if (!focused || document.activeElement === focused) return;
  (focused.isConnected ? focused : body.closest("[tabindex]"))?.focus({ preventScroll: true });
}

function place(body, list, key, build, none) {
  if (list.length === 0) {
    const columns = body.parentElement.tHead.rows[0].cells.length;
    const cell = body.querySelector(".empty td");
    if (cell) say(cell, none);
    else body.replaceChildren(make("tr", { className: "empty" }, make("td", { colSpan: columns }, none)));
    return;
  }
  body.querySelector(".empty")?.remove();
  const old = new Map([...body.rows].map((r) => [r.dataset.key, r]));
  list.forEach((item, i) => {
    const k = String(key(item));
    let row = old.get(k);
    old.delete(k);
    if (!row) {
      row = build(item);
      row.dataset.key = k;
    }
    if (body.rows[i] !== row) body.insertBefore(row, body.rows[i] || null);
    row.fill(item);
  });
  old.forEach((r) => r.remove());
}
