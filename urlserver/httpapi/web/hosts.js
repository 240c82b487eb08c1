// The table of hosts: sorted and filtered by the server, which also says how many are not shown.

import { $, make, say, num, span, moment, localised, until, call, rows } from "./ui.js";

const few = 5, some = 10, more = 25, most = 100; // rows: on a phone, elsewhere, then, at most

// Each column: the server's word for its order, the heading, what it means, its text in a row, and where it is left out.
const columns = [
  { sort: "host", head: "host", about: "host name" },
  { sort: "waiting", head: "waiting", about: "URLs that have not ended and are at no spider", text: (h) => num(h.waiting) },
  { sort: "done", head: "done", about: "fetched, well or not, since the daemon has known the host", text: (h) => num(h.done) },
  { sort: "2xx", head: "2xx", about: "status 200 to 299", text: (h) => num(h.fetched["2xx"]), wide: true },
  { sort: "3xx", head: "3xx", about: "status 300 to 399: redirects", text: (h) => num(h.fetched["3xx"]), wide: true },
  { sort: "4xx", head: "4xx", about: "status 400 to 499: not there, or not allowed", text: (h) => num(h.fetched["4xx"]), ill: (h) => h.fetched["4xx"] },
  { sort: "5xx", head: "5xx", about: "status 500 to 599: the host fails", text: (h) => num(h.fetched["5xx"]), ill: (h) => h.fetched["5xx"] },
  { sort: "none", head: "none", about: "no answer", text: (h) => num(h.fetched.none), ill: (h) => h.fetched.none, wide: true },
  { sort: "robots", head: "robots", about: "forbidden by robots.txt", text: (h) => num(h.fetched.robots), wide: true },
  { sort: "fetch", head: "mean fetch", about: "mean time from sending to DONE", text: (h) => span(h.fetched.mean_fetch_s), wide: true },
  { sort: "error", head: "last failure", about: "how the last document ended that failed", left: true, text: (h) => h.fetched.last_error || "–", wide: true },
  { sort: "next", head: "next", about: "the host may be asked again; site, address or network: which of them holds it back; over its budget: its domain waits for others", text: next },
];

let sort = "waiting", reverse = false, limit = some;
let asking = 0, seen = true, explain;

function next(h) {
  if (h.blocked_by === "rule") return "blocked by rule";
  if (h.blocked_by) return "blocked";
  if (h.budget && !h.held) return "over its budget";
  return until(h.next_send) + (h.held_by ? ` (${h.held_by})` : "");
}

// setStatus takes a status, which counts the hosts that wait by what they wait for.
export function setStatus({ levels: { site, address, network } }) {
  const back = address.backing_off;
  say($("hosts-levels"), `Waiting: ${num(site.waiting)} for their site, ${num(address.waiting)} for their turn on their address, ` +
    `${num(network.waiting)} for their shared network. ${num(back)} ${back === 1 ? "address backs" : "addresses back"} off.`);
}

function query() {
  const q = new URLSearchParams({ sort, limit: String(limit), text: $("host-text").value.trim(), only: $("host-only").value });
  if (reverse) q.set("order", "last");
  return q;
}

// refresh shows the hosts as they are now, while the table is in sight.
export async function refresh() {
  if (!seen) return;
  const turn = ++asking;
  let list, fault = null;
  try {
    list = await call("/api/hosts?" + query());
  } catch (err) {
    list = { hosts: [], matched: 0, all: 0 };
    fault = err;
  }
  if (turn !== asking) return; // another list was asked for meanwhile
  const sifted = $("host-text").value.trim() || $("host-only").value;
  const none = fault ? (fault.status ? "No list of hosts." : "No connection.") : sifted ? "No host is like this." : "No host is known yet.";
  rows($("t-hosts").tBodies[0], list.hosts, (h) => h.host, row, none);
  $("hosts").classList.toggle("short", list.hosts.length === 0);
  say($("hosts-note"), fault?.status ? fault.message : "");
  say($("n-hosts"), fault ? "" : list.matched === list.all ? num(list.all) : `${num(list.matched)} of ${num(list.all)}`);
  const left = list.matched - list.hosts.length;
  say($("hosts-hidden"), left ? `${num(left)} more ${left === 1 ? "is" : "are"} not shown.` : list.hosts.length ? "All are shown." : "");
  $("more-hosts").hidden = !left || limit === most;
}

function row(h) {
  const name = make("button", { type: "button", className: "link", onclick: () => explain(h.host) }, h.host);
  const cells = columns.slice(1).map((c) => make("td", { className: (c.left ? "text" : "n") + (c.wide ? " wide-only" : "") }));
  const tr = make("tr", {}, make("th", { scope: "row", className: "name", title: h.host }, name), ...cells);
  tr.fill = (now) => columns.slice(1).forEach((c, i) => {
    say(cells[i], c.text(now));
    cells[i].classList.toggle("none", cells[i].textContent === "0");
    if (c.ill) cells[i].classList.toggle("bad", c.ill(now) > 0);
    if (c.sort === "next") cells[i].title = now.rule || (now.blocked_until ? "until " + moment(now.blocked_until) : localised([now.why, now.budget].filter(Boolean).join("; ")));
    if (c.sort === "error") cells[i].title = now.fetched.last_error_at ? moment(now.fetched.last_error_at) : "";
  });
  return tr;
}

function heading(c) {
  const button = make("button", { type: "button", className: "sort", title: c.about }, c.head);
  button.addEventListener("click", () => {
    reverse = sort === c.sort && !reverse;
    sort = c.sort;
    mark();
    refresh();
  });
  return make("th", { scope: "col", className: (c.left ? "text" : c.text ? "n" : "") + (c.wide ? " wide-only" : "") }, button);
}

// mark shows which column the hosts are sorted by. The largest number comes first, and the first name.
function mark() {
  columns.forEach((c, i) => {
    const th = $("t-hosts").tHead.rows[0].cells[i];
    if (c.sort === sort) th.ariaSort = (c.sort === "host") !== reverse ? "ascending" : "descending";
    else th.removeAttribute("aria-sort");
  });
}

// start wires the table; look is called with the name of a host to be explained.
export function start(look) {
  explain = look;
  if (matchMedia("(max-width: 700px)").matches) limit = few;
  $("t-hosts").tHead.rows[0].append(...columns.map(heading));
  $("hosts").style.setProperty("--rows", limit);
  mark();
  let typing;
  $("host-text").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(refresh, 300);
  });
  $("sift").addEventListener("submit", (e) => {
    e.preventDefault();
    refresh();
  });
  $("host-only").addEventListener("change", refresh);
  $("more-hosts").addEventListener("click", () => {
    limit = limit < more ? more : most;
    refresh();
  });
  new IntersectionObserver((entries) => {
    const now = entries[entries.length - 1].isIntersecting;
    if (now && !seen) setTimeout(refresh);
    seen = now;
  }).observe($("hosts"));
}
