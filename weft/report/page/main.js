"use strict";
function drawHead() {
  const report = data.report;
  document.title = "weft report: " + report.name;
  byId("title").textContent = "weft report: " + report.name;
  const lines = [report.kind + (report.wall ? "; dominant wall: " + report.wall : "")];
  if (report.steps) {
    lines.push(report.steps.count + " steps, median " + ms(report.steps.median_ms) + ", " +
      Math.round(report.steps.tokens_per_second) + " tokens/s");
  }
  if (report.traced_steps) {
    lines.push(report.traced_steps + " traced, " + report.ranks.length + " ranks, " + ms(report.walls.step_ms) + " a step");
  }
  const shown = report.micro_batches;
  if (shown && shown.shown < shown.of) {
    lines.push("the timeline shows " + shown.shown + " of " + shown.of + " micro-batches; times are of all of them");
  }
  byId("summary").textContent = lines.join("\n");
}

function gainText(one) {
  if (one.gain_ms === null) return "what it gains is not known";
  if (one.freed_bytes > 0) return "frees " + bytes(one.freed_bytes) + " for " + ms(Math.max(0, -one.gain_ms)) + " a step, nominal";
  const basis = one.basis === "simulated" ? "simulated gain " : "gains at most ";
  return basis + ms(one.gain_ms) + (one.gain === null ? "" : ", " + percent(one.gain) + " of the step");
}

function drawNext() {
  const list = byId("next");
  for (const one of data.report.next) {
    const item = element("li", undefined, list);
    element("span", one.phase + ": ", item);
    element("code", one.change, item);
    element("div", gainText(one), item);
    element("div", "because " + one.because + "; rule: " + one.rule, item).className = "why";
  }
  if (!data.report.next.length) element("li", "nothing that this report knows gains more than a hundredth of the step", list);
}

function drawNotes() {
  if (!data.report.notes.length) return;
  show("notes-section");
  for (const note of data.report.notes) element("li", note, byId("notes"));
}

function makeTimeline() {
  const timeline = data.timeline;
  if (!timeline.spans.lane.length) return null;
  show("timeline-section");
  for (const kind of timeline.kinds) legendEntry(byId("legend"), kind.colour, kind.name);
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

drawHead();
drawNext();
drawWalls();
drawExposed();
drawMemory();
drawLoads();
drawComparison();
drawNotes();
const view = makeTimeline();
followAddress(view);
byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  if (view) view.draw();
});
if (view) {
  byId("zoom-in").addEventListener("click", () => view.zoomBy(0.5));
  byId("zoom-out").addEventListener("click", () => view.zoomBy(2));
  byId("zoom-all").addEventListener("click", () => view.zoom(0, data.timeline.end_ns));
  window.addEventListener("resize", () => view.draw());
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.draw());
}
window.addEventListener("hashchange", () => followAddress(view));
document.documentElement.dataset.ready = "yes";
