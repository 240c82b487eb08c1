// The dashboard: joins the live stream of the daemon with the parts of the page.

import { $, make, say, count, short, span, call, toast } from "./ui.js";
import * as map from "./map.js";
import * as charts from "./charts.js";
import * as tables from "./tables.js";
import * as host from "./host.js";
import * as crawls from "./crawls.js";
import * as shared from "./shared.js";

let stream = null; // null: nobody looks
let recent = []; // statuses of the last seconds, for rates
let paused = false, heard = 0, total = 0;

// growth is a counter's increase a second over the last statuses; null where there is one only.
function growth(field) {
  const first = recent[0], last = recent[recent.length - 1];
  const took = last.uptime_s - first.uptime_s;
  return took > 0 ? (field(last) - field(first)) / took : null;
}

function rate(field) {
  const n = growth(field);
  return n === null ? "–" : short(n);
}

function setStatus(s) {
  heard = Date.now();
  recent = [...recent.slice(-5), s];
  paused = s.paused;
  figures(s);
  state(s);
  tables.setStatus(s);
  shared.setStatus(s, growth);
  host.setEmbedded(s.index.embedded);
  say($("f-notes"), (s.notes || []).join("; "));
  say($("h-spiders"), s.more_spiders ? `Spiders, and ${count(s.more_spiders)} more` : "Spiders");
}

function figures(s) {
  const all = {
    "f-sent": rate((x) => x.sent), "f-sent-all": `${short(s.sent)} in all`,
    "f-done": rate((x) => x.done), "f-done-all": `${short(s.done)} in all`,
    "f-flight": count(s.in_flight), "f-retried": `${short(s.retried)} sent again`,
    "f-held": count(s.held), "f-unresolved": `${short(s.unresolved)} without address`,
    "f-leftover": count(s.leftover), "f-waiting": `${short(s.slots.waiting)} groups wait`,
    "f-slots": `${short(s.slots.used)} / ${short(s.slots.total)}`, "f-full": `${short(s.slots.full)} full`,
    "f-spiders": count(s.spiders.length + s.more_spiders), "f-lines": `${short(s.stale)} stale, ${short(s.bad_lines)} bad lines`,
    "f-index": s.index.last_error ? "failing" : "answers", "f-index-more": `${short(s.index.candidates)} candidates`,
  };
  for (const [id, text] of Object.entries(all)) say($(id), text);
}

function state(s) {
  const [text, look] = paused ? ["Paused by the operator", "warn"] : s.not_ready.length ? ["Not ready", "bad"] : ["Ready", "good"];
  show(text, look);
  say($("up"), "up " + span(Math.floor(s.uptime_s)));
  $("pause").hidden = false;
  say($("pause"), paused ? "Resume sending" : "Pause sending");
  const reasons = s.not_ready.join("\n");
  if ($("reasons").dataset.text !== reasons) {
    $("reasons").dataset.text = reasons;
    $("reasons").replaceChildren(...s.not_ready.map((r) => make("li", {}, r)));
    $("reasons").hidden = !reasons;
  }
  document.title = (text === "Ready" ? "" : text + " · ") + "URL server";
}

function show(text, look) {
  say($("state"), text);
  $("state").className = look;
}

const on = (name, take) => stream.addEventListener(name, (e) => take(JSON.parse(e.data)));

// watch opens the stream. What comes in it goes on from what load has fetched.
function watch() {
  map.expectMap();
  stream = new EventSource("/api/live");
  on("status", setStatus);
  on("top", (t) => tables.setTop(t, host.explain, (name) => host.unblock(name)));
  on("sample", charts.addSample);
  on("warnings", tables.addWarnings);
  stream.addEventListener("slots", (e) => map.addStripe(e.data));
  stream.addEventListener("open", () => {
    recent = []; // the daemon may have started anew since the last connection
    tables.newWarnings();
    map.expectMap();
    load();
  });
  stream.addEventListener("error", () => {
    show("No connection; trying again", "bad");
    if (stream && stream.readyState === EventSource.CLOSED) again();
  });
}

// again tries anew where the browser does not: a refusal, such as a session that is over.
async function again() {
  stop();
  try {
    await call("/api/status");
  } catch (err) {
    show(err.message, "bad");
  }
  setTimeout(() => { if (!stream && !document.hidden) watch(); }, 3000);
}

function stop() {
  stream?.close();
  stream = null;
}

// load fetches what the stream only brings up to date, and tries again while that stream lasts.
async function load() {
  const of = stream;
  try {
    const [cells, history, warnings, settings] = await Promise.all([
      call("/api/slots/map"), call("/api/history"), call("/api/warnings"), call("/api/settings"),
    ]);
    total = Number(settings.settings.find((s) => s.name === "Queue_Count").value);
    tables.setSettings(settings.settings);
    map.setMap(cells, total);
    charts.setHistory(history);
    tables.addWarnings(warnings.warnings);
    performance.mark("loaded");
  } catch (err) {
    toast(err.message);
    setTimeout(() => { if (of === stream) load(); }, 3000);
  }
}

async function lookAt(n) {
  let text;
  try {
    const s = await call("/api/slots/" + n);
    say($("picked"), "");
    $("picked").append(`Slot ${n}: ${s.group}, ${count(s.active)} at a spider, ${count(s.queued)} queued, gap ${span(s.gap_s)}. `);
    for (const name of s.hosts) $("picked").append(make("button", { type: "button", className: "link", onclick: () => host.explain(name) }, name), " ");
    return;
  } catch (err) {
    text = err.message;
  }
  say($("picked"), text);
}

function start() {
  map.start(lookAt);
  charts.start();
  host.start();
  crawls.start();
  $("pause").addEventListener("click", async () => {
    try {
      await call(paused ? "/api/resume" : "/api/pause", "POST");
    } catch (err) {
      toast(err.message);
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else if (!stream) watch();
  });
  setInterval(() => {
    if (!stream) return;
    host.refresh();
    if (heard && Date.now() - heard > 5000) show("No news from the daemon", "bad");
  }, 2000);
  setInterval(() => { if (stream) crawls.refresh(); }, 5000);
  setInterval(async () => { // what SIGHUP changes
    if (!stream) return;
    try {
      tables.setSettings((await call("/api/settings")).settings);
    } catch { /* the stream tells */ }
  }, 30000);
  watch();
}

start();
