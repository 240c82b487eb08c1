// The dashboard: joins the live stream of the daemon with the parts of the page.

import { $, make, say, num, span, moment, until, levelName, localised, call, toast } from "./ui.js";
import * as map from "./map.js";
import * as charts from "./charts.js";
import * as tables from "./tables.js";
import * as hosts from "./hosts.js";
import * as host from "./host.js";
import * as crawls from "./crawls.js";
import * as page from "./page.js";
import * as shared from "./shared.js";

let stream = null; // null: the page is hidden
let recent = []; // statuses of the last seconds, for rates
let paused = false, heard = 0, total = 0;

// growth is a counter's increase a second over the last statuses; null while there is only one.
function growth(field) {
  const first = recent[0], last = recent[recent.length - 1];
  const took = last.uptime_s - first.uptime_s;
  return took > 0 ? (field(last) - field(first)) / took : null;
}

function rate(field) {
  const n = growth(field);
  return n === null ? "–" : num(n);
}

function setStatus(s) {
  heard = Date.now();
  document.body.classList.remove("stale");
  $("pause").disabled = false;
  recent = [...recent.slice(-5), s];
  paused = s.paused;
  figures(s);
  state(s);
  tables.setStatus(s);
  hosts.setStatus(s);
  shared.setStatus(s, growth);
  tables.setTotals(s.index, growth((x) => Object.values(x.outcomes).reduce((a, b) => a + b)));
  host.setEmbedded(s.index.embedded);
  say($("f-notes"), (s.notes || []).join("; "));
  say($("h-spiders"), s.more_spiders ? `Spiders, and ${num(s.more_spiders)} more` : "Spiders");
}

const failed = (s) => ["4xx", "5xx", "none", "dns", "timeout"].reduce((n, c) => n + s.statuses[c], 0);

function figures(s) {
  const ended = Object.values(s.statuses).reduce((a, b) => a + b);
  const all = {
    "f-sent": rate((x) => x.sent), "f-sent-all": `${num(s.sent)} in all`,
    "f-done": rate((x) => x.done), "f-done-all": `${num(s.done)} in all`,
    "f-failed": ended ? num(100 * failed(s) / ended) + " %" : "–", "f-failed-all": `${num(failed(s))} of ${num(ended)}`,
    "f-flight": num(s.in_flight), "f-retried": `${num(s.retried)} sent again`,
    "f-held": num(s.held), "f-leftover": `${num(s.leftover)} in no slot`,
    "f-slots": `${num(s.slots.used)} / ${num(s.slots.total)}`, "f-full": `${num(s.slots.full)} full, ${num(s.slots.waiting)} wait`,
    "f-spiders": num(s.spiders.length + s.more_spiders), "f-lines": `${num(s.stale)} stale, ${num(s.bad_lines)} bad lines`,
    "f-index": s.index.last_error ? "failing" : "answers", "f-index-more": `${num(s.index.candidates)} candidates`,
  };
  for (const [id, text] of Object.entries(all)) say($(id), text);
}

// waits reports whether a spider is all that the daemon lacks.
const waits = (s) => s.not_ready.length > 0 && s.not_ready.every((r) => r === "no spider is connected");

function state(s) {
  const [text, look] = paused ? ["Paused by the operator", "warn"] : waits(s) ? ["Waiting for a spider", "wait"] : s.not_ready.length ? ["Not ready", "bad"] : ["Ready", "good"];
  show(text, look);
  say($("up"), "up " + span(Math.floor(s.uptime_s)));
  $("pause").hidden = false;
  say($("pause"), paused ? "Resume sending" : "Pause sending");
  $("begin").hidden = s.spiders.length > 0;
  $("begin-url").hidden = !s.index.embedded || s.held > 0 || s.index.scheduled > 0 || s.index.completed > 0;
  const list = waits(s) ? [] : s.not_ready, reasons = list.join("\n");
  if ($("reasons").dataset.text !== reasons) {
    $("reasons").dataset.text = reasons;
    $("reasons").replaceChildren(...list.map((r) => make("li", {}, localised(r))));
    $("reasons").hidden = !reasons;
  }
  document.title = (text === "Ready" ? "" : text + " · ") + "URL server";
}

// stale dims the page and says since when nothing has come.
function stale(text) {
  show(heard ? `${text} Last news: ${moment(heard)}.` : text, "bad");
  document.body.classList.add("stale");
  $("pause").disabled = true;
}

function show(text, look) {
  say($("state"), text);
  $("state").className = look;
}

const on = (name, take) => stream.addEventListener(name, (e) => take(JSON.parse(e.data)));

// watch opens the stream, whose events change what load has fetched.
function watch() {
  map.expectMap();
  stream = new EventSource("/api/live");
  on("status", setStatus);
  on("top", (t) => tables.setTop(t, host.explain, (name) => host.unblock(name)));
  on("sample", charts.addSample);
  on("warnings", tables.addWarnings);
  stream.addEventListener("slots", (e) => map.addChunk(e.data));
  stream.addEventListener("open", () => {
    recent = []; // the daemon may have started anew since the last connection
    tables.newWarnings();
    map.expectMap();
    hosts.refresh();
    load();
  });
  stream.addEventListener("error", () => {
    stale("No connection; trying again.");
    if (stream && stream.readyState === EventSource.CLOSED) again();
  });
}

// again reconnects where the browser does not: after an error status, such as that of a session that is over.
async function again() {
  stop();
  try {
    await call("/api/status");
  } catch (err) {
    stale(err.message);
  }
  setTimeout(() => { if (!stream && !document.hidden) watch(); }, 3000);
}

function stop() {
  stream?.close();
  stream = null;
}

// load fetches the state that the stream's events change. It tries again while the same stream is open.
async function load() {
  const of = stream;
  try {
    const [cells, history, warnings, settings] = await Promise.all([
      call("/api/slots/map"), call("/api/history"), call("/api/warnings"), call("/api/settings"),
    ]);
    total = Number(settings.settings.find((s) => s.name === "Queue_Count").value);
    tables.setSettings(settings.settings);
    beginWith(settings.settings);
    map.setMap(cells, total);
    charts.setHistory(history);
    tables.addWarnings(warnings.warnings);
    performance.mark("loaded");
  } catch (err) {
    toast(err.message);
    setTimeout(() => { if (of === stream) load(); }, 3000);
  }
}

// beginWith says how to start a spider for a daemon with these settings.
function beginWith(settings) {
  const value = (name) => settings.find((s) => s.name === name)?.value.replaceAll('"', "") || "";
  const listen = value("spider.listen"), at = listen.replace(/^(0\.0\.0\.0|\[::\])?:/, location.hostname + ":");
  const more = (value("spider.token") ? " --token TOKEN" : "") + (value("spider.tls_cert") ? " --tls-ca FILE" : "");
  say($("begin-spider"), listen ? `spider serve --dial ${at}${more}` : "spider serve --listen 127.0.0.1:4102");
}

async function lookAt(n) {
  let text;
  try {
    const s = await call("/api/slots/" + n);
    say($("picked"), "");
    $("picked").append(`Slot ${n}: ${s.group}, ${num(s.active)} at a spider, ${num(s.queued)} queued, gap ${span(s.gap_s)}, ` +
      (s.held_by ? `its ${levelName(s.held_by)} holds it back: next ${until(s.next_send)}. ` : "nothing holds it back. "));
    for (const name of s.hosts) $("picked").append(make("button", { type: "button", className: "link", onclick: () => host.explain(name) }, name), " ");
    return;
  } catch (err) {
    text = err.message;
  }
  say($("picked"), text);
}

async function pause(is) {
  try {
    await call(is ? "/api/pause" : "/api/resume", "POST");
  } catch (err) {
    toast(err.message);
  }
}

function start() {
  if (matchMedia("(max-width: 700px)").matches) document.querySelectorAll("main details").forEach((d) => { d.open = false; });
  document.body.classList.remove("begins"); // nothing is seen before it is in its place
  map.start(lookAt);
  charts.start();
  host.start();
  crawls.start();
  page.start();
  hosts.start(host.explain);
  tables.start();
  $("pause").addEventListener("click", () => {
    if (paused) return pause(false);
    $("ask-pause").returnValue = "";
    $("ask-pause").showModal();
  });
  $("ask-pause").addEventListener("close", () => { if ($("ask-pause").returnValue === "pause") pause(true); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else if (!stream) watch();
  });
  setInterval(() => {
    if (!stream) return;
    host.refresh();
    if (heard && Date.now() - heard > 5000) stale("No news from the daemon.");
  }, 2000);
  setInterval(() => { if (stream) crawls.refresh(); }, 5000);
  setInterval(() => { if (stream) hosts.refresh(); }, 3000);
  setInterval(async () => { // what SIGHUP changes
    if (!stream) return;
    try {
      tables.setSettings((await call("/api/settings")).settings);
    } catch { /* the stream tells */ }
  }, 30000);
  watch();
}

start();
