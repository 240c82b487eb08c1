// What a daemon shares: hosts with other daemons, by a reservation, and crawl control, over Kafka. Each panel is there only where
// it is in use.

import { $, say, num, rows } from "./ui.js";
import { plainRow } from "./tables.js";

// Each panel: its part of the status, and its rows: name, value; those of counters have a rate as well.
const panels = [
  { id: "reservation", counters: [
    ["got", (r) => r.granted], ["refused: with another daemon, or not yet", (r) => r.denied],
    ["lost: could not be extended", (r) => r.lost], ["asked for without an answer", (r) => r.failures],
  ], now: ["held now", (r) => r.held], health: (r, failing) =>
    r.away ? ["It does not answer: nothing new is leased, and sending ends with the leases; the warnings say why", "bad"]
      : failing((x) => x.lost) ? ["Leases are being lost", "warn"] : ["It answers", "good"] },
  { id: "kafka", counters: [
    ["requests done", (k) => k.requests], ["replies sent", (k) => k.replies],
    ["replies that an application's own topic refused", (k) => k.given_up], ["failures, all tried again", (k) => k.failures],
  ], now: ["requests waiting", (k) => k.lag], health: (k, failing) =>
    !k.connected ? ["No broker is connected; the warnings say why", "bad"]
      : failing((x) => x.failures) ? ["Requests or replies fail; the warnings say why", "bad"]
      : failing((x) => x.given_up) ? ["Replies are refused by applications' own topics", "warn"] : ["No failures now", "good"] },
];

// setStatus takes a status, and what tells how fast a counter of the last statuses grows, null where that is not known yet.
export function setStatus(s, growth) {
  for (const p of panels) {
    const part = s[p.id];
    $(p.id).hidden = !part;
    if (part) show(p, part, (field) => growth((x) => field(x[p.id])));
  }
}

function show(p, part, growth) {
  const [text, look] = p.health(part, (field) => growth(field) > 0);
  say($(p.id + "-state"), text);
  $(p.id + "-state").className = "health " + look;
  const list = [[p.now[0], num(p.now[1](part)), ""]];
  for (const [name, field] of p.counters) {
    const n = growth(field);
    list.push([name, num(field(part)), n === null ? "–" : num(n)]);
  }
  rows($("t-" + p.id).tBodies[0], list, (r) => r[0], () => {
    const row = plainRow(["", "", ""], 1);
    row.fill = row.set;
    return row;
  });
}
