// One host: why nothing is sent to it now, and what an operator can do about it.

import { $, make, say, num, span, moment, localised, call, toast } from "./ui.js";

let shown = ""; // the host that is explained
let asking = 0;

const path = (host) => "/api/hosts/" + encodeURIComponent(host);

// explain looks a host up and shows it.
export async function explain(host, scroll = true) {
  shown = host.trim();
  shown = URL.parse?.(shown.includes("://") ? shown : "http://" + shown)?.hostname || shown; // as URLs have it: of a URL, its host
  if (!shown) return;
  $("name").value = shown;
  await refresh();
  $("host").hidden = false;
  if (scroll) $("host").scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth" });
}

// refresh shows the host as it is now, where one is shown.
export async function refresh() {
  if (!shown) return;
  const turn = ++asking, host = shown;
  let parts;
  try {
    const x = await call(path(host));
    parts = [make("p", { className: "why" }, localised(x.why)), facts(x)];
  } catch (err) {
    parts = [make("p", { className: err.status === 404 ? "why" : "bad" }, err.message)];
  }
  if (turn !== asking) return; // another one was asked for meanwhile
  $("act").hidden = false;
  say($("h-host"), "Host " + host);
  if ($("explained").textContent !== parts.map((p) => p.textContent).join("")) $("explained").replaceChildren(...parts);
}

function facts(x) {
  const state = x.robots.state === "unavailable" ? "the server has none, all is allowed" : x.robots.state;
  const robots = state + (x.robots.fetched_at ? ", fetched " + moment(x.robots.fetched_at) : "") +
    (x.robots.crawl_delay_s ? ", Crawl-delay " + span(x.robots.crawl_delay_s) : "");
  const list = [
    ["group", x.group || "not looked up"], ["slot", x.slot === null ? "none" : num(x.slot)],
    ["documents", `${num(x.queued)} queued, ${num(x.in_flight)} in flight`],
    ["came back", cameBack(x.fetched)],
    ["mean fetch", span(x.fetched.mean_fetch_s)],
    ["last failure", x.fetched.last_error ? `${x.fetched.last_error}, ${moment(x.fetched.last_error_at)}` : "none"],
    ["last send", moment(x.last_send)], ["next send", new Date(x.next_send) > Date.now() ? "not before " + moment(x.next_send) : "any time"],
    ["gap", span(x.gap_s)], ["site", level(x.site)], ["address", level(x.address)], ["robots.txt", robots], ["blocked", blocked(x)],
  ];
  return make("dl", {}, ...list.flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)]));
}

// level is the pace of a site, or of its address or shared network: what holds it back, until when, and because of whom.
function level(l) {
  if (!l.name) return "not looked up";
  return `${l.name}: gap ${span(l.gap_s)}, ${num(l.open)} of ${num(l.most_open)} requests open` +
    (l.backoff_s ? `, backs off by ${span(l.backoff_s)}` : "") + (l.why ? `; ${localised(l.why)}` : "; nothing holds it back");
}

// blocked says who blocks a host; who does so by a rule is in the reason.
function blocked(x) {
  if (x.blocked_by === "rule") return `by ${x.rule || "a rule"}, until the settings change`;
  return x.blocked_until ? "by the operator, until " + moment(x.blocked_until) : "no";
}

function cameBack(f) {
  const some = ["2xx", "3xx", "4xx", "5xx", "none", "robots", "dns", "timeout"].filter((c) => f[c] > 0);
  return some.length ? some.map((c) => `${num(f[c])} ${c}`).join(", ") : "nothing yet";
}

async function change(what, done) {
  try {
    await what();
    toast(done);
  } catch (err) {
    toast(err.message);
  }
  await refresh();
}

export function unblock(host) {
  return change(() => call(path(host) + "/block", "POST", { until: "1970-01-01T00:00:00Z" }), `${host} is not blocked any more.`);
}

export function start() {
  $("find").addEventListener("submit", (e) => {
    e.preventDefault();
    explain($("name").value);
  });
  $("close-host").addEventListener("click", () => {
    shown = "";
    $("host").hidden = true;
    $("name").value = "";
    $("name").focus();
  });
  $("block").addEventListener("click", () => {
    const date = new Date(Date.now() + Number($("block-for").value) * 1e3).toISOString();
    change(() => call(path(shown) + "/block", "POST", { until: date }), `${shown} is blocked until ${moment(date)}.`);
  });
  $("unblock").addEventListener("click", () => unblock(shown));
  $("set-delay").addEventListener("click", () => {
    const seconds = Number($("delay").value);
    if ($("delay").value === "" || !$("delay").checkValidity()) return toast("Whole seconds are wanted, 0 to 2592000.");
    change(() => call(path(shown) + "/delay", "POST", { delay_s: seconds }), `The index gives ${shown} out every ${seconds} s at most.`);
  });
  $("put-form").addEventListener("submit", put);
}

async function put(e) {
  e.preventDefault();
  const text = $("urls").value;
  if (!text.trim()) return toast("There is no URL to put.");
  try {
    const a = await call("/docindex/urls", "POST", text, "text/plain");
    const parts = [make("p", {}, `${num(a.new)} new, ${num(a.known)} known, ${num(a.invalid)} invalid`)];
    if (a.errors.length) parts.push(make("ul", { className: "bad" }, ...a.errors.map((t) => make("li", {}, t))));
    else $("urls").value = "";
    $("put-answer").replaceChildren(...parts);
  } catch (err) {
    $("put-answer").replaceChildren(make("p", { className: "bad" }, err.message));
  }
}

// setEmbedded says whether the index lives with the daemon.
export function setEmbedded(is) {
  $("put").hidden = !is;
  $("set-delay").closest(".pair").hidden = !is;
}
