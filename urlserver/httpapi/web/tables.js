// The lists: blocked hosts, spiders, outcomes, warnings, settings; and the totals of the index.

import { $, make, say, num, span, moment, rows } from "./ui.js";

const body = (id) => $(id).tBodies[0];

// setTop takes /api/top: of it, who is blocked.
export function setTop(top, explain, unblock) {
  const hidden = top.blocked_all > top.blocked.length || top.more_by_rule;
  const shown = top.blocked.length + top.blocked_by_rule.length;
  say($("n-blocked"), !hidden ? shown ? num(shown) : "none" : top.more_by_rule ? `the first ${num(shown)}` : `${num(shown)} of ${num(top.blocked_all + top.blocked_by_rule.length)}`);
  rows(body("t-blocked"), [...top.blocked, ...top.blocked_by_rule], (b) => b.by + " " + b.host, (b) => {
    const when = make("td");
    const row = make("tr", {},
      make("td", {}, make("button", { type: "button", className: "link", onclick: () => explain(b.host) }, b.host)),
      make("td", {}, b.by === "rule" ? "a rule of the settings" : "the operator"), when,
      make("td", {}, b.by === "rule" ? "change the settings" : make("button", { type: "button", className: "link", onclick: () => unblock(b.host), ariaLabel: "Unblock " + b.host }, "Unblock")));
    row.fill = (now) => say(when, now.until ? moment(now.until) : "the settings change");
    return row;
  }, "None.");
}

// setTotals shows how many documents of the index are in which state, and how long the rest takes at a rate of ends, null
// where that is not known. Nothing is shown where the index is elsewhere.
export function setTotals(index, rate) {
  $("progress").hidden = !index.embedded;
  if (index.scheduled === undefined) return;
  const all = index.scheduled + index.in_transit + index.completed;
  for (const [id, n] of [["completed", index.completed], ["transit", index.in_transit], ["scheduled", index.scheduled]]) {
    $("p-" + id).style.width = all ? 100 * n / all + "%" : "0";
  }
  const open = index.scheduled + index.in_transit;
  const left = open && rate > 0 ? `; about ${span(open / rate)} at this rate` : "";
  say($("p-text"), all ? `${num(all)} URLs: ${num(index.completed)} completed, ${num(index.in_transit)} in transit, ${num(index.scheduled)} scheduled${left}` : "No URL has been put yet.");
}

// plainRow is a row of texts; from numbersFrom on they are numbers.
export function plainRow(texts, numbersFrom) {
  const tds = texts.map((_, i) => make("td", { className: i >= numbersFrom ? "n" : "" }));
  const row = make("tr", {}, ...tds);
  row.set = (values) => values.forEach((v, i) => say(tds[i], v));
  return row;
}

// classes are how documents end, and what that means.
const classes = [["2xx", "2xx: fetched"], ["3xx", "3xx: redirect"], ["4xx", "4xx: not there, or not allowed"], ["5xx", "5xx: the host failed"],
  ["none", "none: no answer"], ["timeout", "timeout: no status in time"], ["dns", "dns: no address"], ["robots", "robots: forbidden by robots.txt"],
  ["invalid", "invalid URL"], ["out_of_scope", "out of scope"], ["stopped", "crawl stopped"], ["expired", "crawl expired"]];

// setStatus takes what the status has of lists.
export function setStatus(s) {
  rows(body("t-spiders"), s.spiders, (sp) => sp.addr, () => {
    const row = plainRow(["", "", "", ""], 1);
    row.fill = (sp) => row.set([sp.note ? `${sp.addr}: ${sp.note}` : sp.addr, num(sp.in_flight), num(sp.sent), num(sp.done)]);
    return row;
  }, "None is connected.");
  const all = Object.values(s.statuses).reduce((a, b) => a + b, 0);
  const share = (n) => all ? num(100 * n / all) + " %" : "";
  const list = [...classes.map(([c, text]) => [text, num(s.statuses[c]), share(s.statuses[c])]),
    ["not delivered to the index yet", num(s.outcomes_waiting), ""]];
  rows(body("t-outcomes"), list, (o) => o[0], () => {
    const row = plainRow(["", "", ""], 1);
    row.fill = row.set;
    return row;
  }, "None.");
}

// addWarnings takes warnings, of which some may be there already. The newest stands first.
export function addWarnings(list) {
  const ol = $("l-warnings");
  if (list.length) ol.querySelector(".none")?.remove();
  for (const w of list) {
    const older = [...ol.children].find((li) => Number(li.dataset.number) <= w.number);
    if (older && Number(older.dataset.number) === w.number) continue;
    const li = make("li", {}, make("time", { dateTime: w.at }, moment(w.at)), ` ${w.level} `, make("b", {}, w.text), w.more ? " " + w.more : "");
    li.dataset.number = w.number;
    ol.insertBefore(li, older || null);
  }
  while (ol.children.length > 100) ol.lastChild.remove();
  if (!ol.children.length) ol.append(make("li", { className: "none dim" }, "None since the start."));
  const n = ol.querySelectorAll("li:not(.none)").length;
  say($("n-warnings"), n === 100 ? "the last 100" : n ? num(n) : "none");
}

// newWarnings forgets them: their numbers begin anew with the daemon.
export function newWarnings() {
  $("l-warnings").replaceChildren();
}

export function setSettings(list) {
  const rowsOf = list.map((s) => make("tr", {}, make("td", {}, s.name), make("td", { className: "value" }, s.value),
    make("td", {}, s.source), make("td", {}, s.live ? "running (SIGHUP)" : "at a restart")));
  body("t-settings").replaceChildren(...rowsOf);
  siftSettings();
}

// siftSettings hides the settings that are not asked for.
function siftSettings() {
  const text = $("setting").value.trim().toLowerCase(), own = $("set-only").checked;
  for (const r of body("t-settings").rows) {
    r.hidden = !r.cells[0].textContent.toLowerCase().includes(text) || own && r.cells[2].textContent === "default";
  }
}

export function start() {
  $("setting").addEventListener("input", siftSettings);
  $("set-only").addEventListener("change", siftSettings);
  $("pick-settings").addEventListener("submit", (e) => e.preventDefault());
}
