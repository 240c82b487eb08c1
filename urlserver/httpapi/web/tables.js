// The lists: busiest and slowest slots, blocked hosts, spiders, outcomes, warnings, settings.

import { $, make, say, count, span, moment, until, rows } from "./ui.js";

const body = (id) => $(id).tBodies[0];

let queueLen = 64;
export function setQueueLen(n) { queueLen = n; }

const mostCells = 64; // of a slot that are told apart

// cells is a slot as a row of cells: at a spider, queued, free. The style sheet paints it, which costs less than a canvas each.
function cells() {
  const active = make("i", { className: "active" }), queued = make("i", { className: "queued" });
  const bar = make("div", { className: "bar" }, active, queued);
  bar.setAttribute("aria-hidden", "true"); // the figures stand beside it
  bar.fill = (slot) => {
    bar.style.setProperty("--cells", Math.min(queueLen, mostCells));
    active.style.width = 100 * slot.active / queueLen + "%";
    queued.style.width = 100 * slot.queued / queueLen + "%";
  };
  return bar;
}

function number(value) { return make("td", { className: "n" }, value); }

// hosts is a slot's group and some of its hosts, each to be looked at.
function hosts(slot, explain) {
  const td = make("td", {}, slot.group);
  for (const name of slot.hosts) {
    if (name !== slot.group) td.append(" ", make("button", { type: "button", className: "link", onclick: () => explain(name) }, name));
  }
  if (slot.hosts.includes(slot.group)) td.replaceChildren(make("button", { type: "button", className: "link", onclick: () => explain(slot.group) }, slot.group), ...[...td.childNodes].slice(1));
  return td;
}

function slotRow(slot, explain, wide) {
  const n = Array.from({ length: wide ? 5 : 3 }, () => number(""));
  const bar = wide ? cells() : null;
  const row = make("tr", {}, number(String(slot.slot)), hosts(slot, explain), wide ? make("td", { className: "cells" }, bar) : null, ...n);
  row.fill = (s) => {
    const list = [count(s.held), span(s.gap_s), until(s.next_send)];
    (wide ? [count(s.active), count(s.queued), ...list] : list).forEach((text, i) => say(n[i], text));
    bar?.fill(s);
  };
  return row;
}

const slotKey = (s) => `${s.slot} ${s.group} ${s.hosts.join(" ")}`;

// setTop takes /api/top.
export function setTop(top, explain, unblock) {
  rows(body("t-busiest"), top.busiest, slotKey, (s) => slotRow(s, explain, true), "No slot is in use.");
  rows(body("t-slowest"), top.slowest.slice(0, 10), slotKey, (s) => slotRow(s, explain, false), "No slot is in use.");
  say($("n-blocked"), top.blocked_all > top.blocked.length ? `${count(top.blocked_all)}, the first ${top.blocked.length}` : "");
  rows(body("t-blocked"), top.blocked, (b) => b.host, (b) => {
    const when = make("td");
    const row = make("tr", {},
      make("td", {}, make("button", { type: "button", className: "link", onclick: () => explain(b.host) }, b.host)), when,
      make("td", {}, make("button", { type: "button", className: "link", onclick: () => unblock(b.host), ariaLabel: "Unblock " + b.host }, "Unblock")));
    row.fill = (now) => say(when, moment(now.until));
    return row;
  }, "None.");
}

// plainRow is a row of texts; from numbersFrom on they are numbers.
export function plainRow(texts, numbersFrom) {
  const tds = texts.map((_, i) => make("td", { className: i >= numbersFrom ? "n" : "" }));
  const row = make("tr", {}, ...tds);
  row.set = (values) => values.forEach((v, i) => say(tds[i], v));
  return row;
}

// setStatus takes what the status has of lists.
export function setStatus(s) {
  rows(body("t-spiders"), s.spiders, (sp) => sp.addr, () => {
    const row = plainRow(["", "", "", ""], 1);
    row.fill = (sp) => row.set([sp.note ? `${sp.addr}: ${sp.note}` : sp.addr, count(sp.in_flight), count(sp.sent), count(sp.done)]);
    return row;
  }, "None is connected.");
  const list = Object.entries(s.outcomes);
  list.push(["not delivered yet", s.outcomes_waiting]);
  rows(body("t-outcomes"), list, (o) => o[0], () => {
    const row = plainRow(["", ""], 1);
    row.fill = (o) => row.set([o[0], count(o[1])]);
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
}

// newWarnings forgets them: their numbers begin anew with the daemon.
export function newWarnings() {
  $("l-warnings").replaceChildren();
}

export function setSettings(list) {
  const rowsOf = list.map((s) => make("tr", {}, make("td", {}, s.name), make("td", { className: "value" }, s.value),
    make("td", {}, s.source), make("td", {}, s.live ? "running (SIGHUP)" : "at a restart")));
  body("t-settings").replaceChildren(...rowsOf);
  const length = list.find((s) => s.name === "Queue_Len");
  if (length) setQueueLen(Number(length.value));
}
