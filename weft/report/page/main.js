"use strict";
function drawHead() {
  const report = data.report;
  document.title = "weft report: " + report.name;
  byId("title").textContent = "weft report: " + report.name;
  const wall = report.wall === "cores" ? "cores, which ranks share" : report.wall;
  const lines = [report.kind + (wall ? "; dominant wall: " + wall : "")];
  if (report.steps) {
    lines.push(counted(report.steps.count, "step") + ", median " + ms(report.steps.median_ms) + ", " +
      Math.round(report.steps.tokens_per_second) + " tokens/s");
  }
  if (report.traced_steps) {
    lines.push("traced: " + counted(report.traced_steps, "step") + " of " + counted(report.rank_count, "rank") + ", " + ms(report.walls.step_ms) + " a step");
  }
  const shown = report.micro_batches;
  if (shown && shown.shown < shown.of) {
    lines.push("the timeline shows " + shown.shown + " of " + counted(shown.of, "micro-batch").replace("batchs", "batches") + "; times are of all of them");
  }
  byId("summary").textContent = lines.join("\n");
}

function drawAbout(place) {
  const facts = Object.entries(data.report.about);
  if (!facts.length) { hint(place, "Not known: a trace does not say what ran."); return; }
  const list = element("dl", undefined, place);
  for (const [name, words] of facts) {
    element("dt", name, list);
    element("dd", words, list);
  }
}

function gainText(one) {
  if (one.gain_ms === null) return "what it gains is not known";
  if (one.freed_bytes > 0) return "frees " + bytes(one.freed_bytes) + " for " + ms(Math.max(0, -one.gain_ms)) + " a step, nominal";
  const basis = one.basis === "simulated" ? "simulated gain " : "gains at most ";
  return basis + ms(one.gain_ms) + (one.gain === null ? "" : ", " + percent(one.gain) + " of the step");
}

function drawNext(place) {
  const list = element("ol", undefined, place);
  for (const one of data.report.next) {
    const item = element("li", undefined, list);
    element("span", one.phase + ": ", item);
    element("code", one.change, item);
    element("div", gainText(one), item);
    element("div", "because " + one.because + "; rule: " + one.rule, item).className = "why";
  }
  if (!data.report.next.length) element("li", "nothing that this report knows gains more than a hundredth of the step", list);
}

function drawNotes(place) {
  if (!data.report.notes.length) { hint(place, "None."); return; }
  const list = element("ul", undefined, place);
  for (const note of data.report.notes) element("li", note, list);
}

function makeTimeline() {
  const timeline = data.timeline;
  if (!timeline.spans.lane.length) {
    byId("timeline-tools").hidden = true;
    hint(byId("timeline-section"), noTrace());
    return null;
  }
  const used = new Set(timeline.spans.kind), waits = timeline.spans.wait.some((ns) => ns > 0);
  timeline.kinds.forEach((kind, i) => { if (used.has(i)) legendEntry(byId("legend"), kind.colour, kind.name); });
  if (waits) legendEntry(byId("legend"), "transparent", "waiting, in the colour of what waits", "hatched");
  byId("timeline-note").textContent = timeline.note;
  return new TimelineView(byId("timeline"), timeline);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

// The address may say what to show: report.html#from=1.5&to=3&theme=dark (times in ms).
function followAddress(view) {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.get("theme") === "dark" || asked.get("theme") === "light") {
    document.documentElement.dataset.theme = asked.get("theme");
  }
  const from = parseFloat(asked.get("from")), to = parseFloat(asked.get("to"));
  if (view && from < to) view.zoom(from * 1e6, to * 1e6);
  else if (view) view.draw();
}

// A section that cannot be drawn takes no other with it, and says so.
function section(id, draw) {
  try {
    return draw(byId(id));
  } catch (error) {
    hint(byId(id), "This part could not be drawn: " + error.message);
    console.error(error);
    return null;
  }
}

drawHead();
section("about", drawAbout);
section("next", drawNext);
section("learning", drawLearning);
section("walls", drawWalls);
section("exposed", drawExposed);
section("memory", drawMemory);
section("loads", drawLoads);
section("comparison", drawComparison);
section("notes", drawNotes);
const view = section("timeline-section", makeTimeline);
followAddress(view);
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  if (view) view.draw();
});
function redraw() {
  for (const draw of pictures) draw();
  if (view) view.draw();
}
window.addEventListener("resize", redraw);
window.addEventListener("beforeprint", () => {
  for (const rows of document.querySelectorAll("details")) rows.open = true;
  redraw();
});
if (view) {
  byId("zoom-in").addEventListener("click", () => view.zoomBy(0.5));
  byId("zoom-out").addEventListener("click", () => view.zoomBy(2));
  byId("zoom-all").addEventListener("click", () => view.zoom(0, data.timeline.end_ns));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.draw());
}
window.addEventListener("hashchange", () => followAddress(view));
document.documentElement.dataset.ready = "yes";
