// Crawls: which there are, what is pending of one, and its end.

import { $, make, say, num, moment, call, toast, rows } from "./ui.js";

const shownDomains = 50;

let asking = 0, seen = false, info = null; // info: the crawl that is told of

const nameOf = (c) => `${c.crawlid} of ${c.appid}`;
const keyOf = (c) => JSON.stringify([c.appid, c.crawlid, c.spiderid]);
const text = () => $("crawl").value.trim();

// action asks crawl control. The uuid comes back with the reply, which tells us nothing here.
const action = (verb, c) => call("/api/actions", "POST", { action: verb, appid: c.appid, spiderid: c.spiderid, crawlid: c.crawlid, uuid: "dashboard" });

// refresh shows the crawls as they are now, while the panel is in sight.
export async function refresh() {
  if (!seen) return;
  const turn = ++asking;
  let list;
  try {
    list = await call("/api/crawls?text=" + encodeURIComponent(text()));
  } catch (err) {
    list = { crawls: [], all: 0, note: err.message };
  }
  if (turn !== asking) return; // another list was asked for meanwhile
  const some = list.crawls.length < list.all ? `${num(list.all)}, the ${list.crawls.length} with most to do` : num(list.all);
  say($("n-crawls"), list.note ? "" : some);
  say($("crawls-note"), list.note || "");
  rows($("t-crawls").tBodies[0], list.crawls, keyOf, row, list.note ? "None is shown." : text() ? "None has this in its name." : "None.");
}

function row(c) {
  const about = make("button", { type: "button", className: "link", onclick: () => tell(c), ariaLabel: "About crawl " + nameOf(c) }, c.crawlid);
  const halt = make("button", { type: "button", onclick: () => ask(c), ariaLabel: "Stop crawl " + nameOf(c) }, "Stop");
  const state = make("td"), numbers = Array.from({ length: 6 }, () => make("td", { className: "n" })), expires = make("td");
  const tr = make("tr", {}, make("td", {}, about), make("td", {}, c.appid), make("td", {}, c.spiderid), state, ...numbers, expires, make("td", {}, halt));
  tr.fill = (now) => {
    say(state, now.state);
    [now.scheduled, now.at_slots, now.at_clients, now.done, now.purged, now.dropped].forEach((n, i) => say(numbers[i], num(n)));
    say(expires, now.expires ? moment(now.expires) : "never");
    halt.hidden = now.state === "stopped" || now.state === "expired";
  };
  return tr;
}

// tell shows what is pending of a crawl, by domain and priority.
async function tell(c) {
  info = c;
  let parts;
  try {
    const i = await action("info", c);
    const span = i.total_pending ? `, priorities ${i.low_priority} to ${i.high_priority}` : "";
    parts = [make("h3", {}, "Crawl " + nameOf(c)), make("p", {}, `${num(i.total_pending)} pending, without what is at spiders now; ${num(i.total_domains)} domains${span}.`)];
    const list = Object.entries(i.domains).sort((a, b) => b[1].total - a[1].total || (a[0] < b[0] ? -1 : 1));
    if (list.length) parts.push(domains(list.slice(0, shownDomains)));
    if (i.total_domains > shownDomains) parts.push(make("p", { className: "dim" }, `The ${shownDomains} with most of it; all: urlserver crawl info.`));
  } catch (err) {
    parts = [make("p", { className: "bad" }, err.message)];
  }
  if (info === c) $("crawl-info").replaceChildren(...parts);
}

function domains(list) {
  const head = ["domain", "pending", "lowest priority", "highest"].map((t, i) => make("th", { scope: "col", className: i ? "n" : "" }, t));
  const body = list.map(([name, d]) => make("tr", {}, make("td", {}, name),
    ...[d.total, d.low_priority, d.high_priority].map((n) => make("td", { className: "n" }, num(n)))));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
  return make("div", { className: "scroll tall", tabIndex: 0, role: "region", ariaLabel: "Domains of the crawl" }, table);
}

// ask has the operator say again that a crawl is to end.
function ask(c) {
  const box = $("stop-crawl");
  say($("stop-what"), `What is pending of crawl ${nameOf(c)} (spider ${c.spiderid}) ends now, and what is put for it later is dropped. This cannot be undone. What spiders already have goes on.`);
  box.returnValue = "";
  box.onclose = () => { if (box.returnValue === "stop") stop(c); };
  box.showModal();
}

async function stop(c) {
  try {
    const a = await action("stop", c);
    toast(`Crawl ${nameOf(c)} is stopped, ${num(a.total_purged)} documents of it have ended.`);
  } catch (err) {
    toast(err.message);
  }
  await refresh();
  if (info && keyOf(info) === keyOf(c)) await tell(c);
}

export function start() {
  let typing;
  $("seek").addEventListener("submit", (e) => {
    e.preventDefault();
    refresh();
  });
  $("crawl").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(refresh, 300);
  });
  new IntersectionObserver((entries) => {
    const now = entries[entries.length - 1].isIntersecting;
    if (now && !seen) setTimeout(refresh);
    seen = now;
  }).observe($("crawls"));
}
