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

const whole = new Intl.NumberFormat("en");
export const count = (n) => whole.format(n);

// short is a number in at most four digits.
export function short(n) {
  if (n < 9.95) return String(Math.round(n * 10) / 10);
  if (n < 9999.5) return String(Math.round(n));
  for (const [unit, size] of [["k", 1e3], ["M", 1e6], ["G", 1e9], ["T", 1e12]]) {
    const v = n / size;
    if (v < 999.5 || unit === "T") return (v < 9.95 ? v.toFixed(1) : Math.round(v)) + unit;
  }
}

// span is a time in seconds, in the unit that suits it.
export function span(s) {
  if (s === null || s === undefined) return "–";
  if (s === 0) return "0 s";
  if (s < 1e-3) return short(s * 1e6) + " µs";
  if (s < 1) return short(s * 1e3) + " ms";
  if (s < 120) return short(s) + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  if (s < 172800) return Math.round(s / 3600) + " h";
  return Math.round(s / 86400) + " d";
}

// moment is a date of the API in the browser's own time, without the day where it is today.
export function moment(text) {
  if (!text) return "–";
  const t = new Date(text);
  const clock = t.toLocaleTimeString("en-GB");
  if (t.toDateString() === new Date().toDateString()) return clock;
  const pad = (n) => String(n).padStart(2, "0");
  return `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ${clock}`;
}

// until is how long it is to a date; "now" where it is past.
export function until(text) {
  if (!text) return "–";
  const left = (new Date(text) - Date.now()) / 1e3;
  return left <= 0 ? "now" : "in " + span(left < 10 ? left : Math.round(left));
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
    if (!body.querySelector(".empty")) {
      const columns = body.parentElement.tHead.rows[0].cells.length;
      body.replaceChildren(make("tr", { className: "empty" }, make("td", { colSpan: columns }, none)));
    }
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
