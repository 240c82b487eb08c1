// One URL of the embedded index: what is known of it, and to fetch it again now.

import { $, make, moment, call, toast } from "./ui.js";

let found = null; // the document that is shown

async function show() {
  const query = new URLSearchParams({ url: $("page-url").value.trim() });
  if ($("page-crawl").value.trim()) query.set("crawl", $("page-crawl").value.trim());
  try {
    found = await call("/docindex/urls?" + query);
    const ended = found.outcome ? `; last ended as ${found.outcome}${found.status === null ? "" : " " + found.status}, ${moment(found.at)}` : "";
    $("page-facts").replaceChildren(make("p", {}, `${found.state}${found.due ? ", due " + moment(found.due) : ""}${ended}`));
  } catch (err) {
    found = null;
    $("page-facts").replaceChildren(make("p", { className: "bad" }, err.message));
  }
  $("page-now").hidden = found === null;
}

// fetchNow puts the document with due, as what it is: of its crawl, queue and owner.
async function fetchNow() {
  if (found === null) return;
  const { url, crawl, key, unique, priority, metadata } = found;
  const owner = Object.fromEntries(["appid", "spiderid"].filter((k) => metadata[k]).map((k) => [k, metadata[k]]));
  const members = { url, crawl, key, unique, priority, metadata: owner, due: "now" };
  try {
    const a = await call("/docindex/urls", "POST", JSON.stringify(members), "application/x-ndjson");
    toast(a.known === 1 ? "It is due now." : a.errors[0] || "The index did not take it: its crawl has ended, or it is out of scope.");
  } catch (err) {
    toast(err.message);
  }
  await show();
}

export function start() {
  $("page-form").addEventListener("submit", (e) => {
    e.preventDefault();
    show();
  });
  $("page-now").addEventListener("click", fetchNow);
  for (const id of ["page-url", "page-crawl"]) $(id).addEventListener("input", () => { $("page-now").hidden = true; found = null; });
}
