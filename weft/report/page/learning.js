"use strict";
// A line by step, with dots for what was measured apart; `marks` are steps at which the run was started again.
function curve(place, title, colour, points, dots, marks, words) {
  const values = points.concat(dots).map((one) => one.value), most = Math.max(...values), least = Math.min(...values);
  const spread = most - least || Math.abs(most) || 1, low = Math.max(least - 0.05 * spread, least < 0 ? -Infinity : 0), high = most + 0.05 * spread;
  const first = Math.min(...points.concat(dots).map((one) => one.step)), last = Math.max(...points.concat(dots).map((one) => one.step));
  element("div", title, place).className = "hint";
  picture(place, title, chartHeight, (made, width) => {
    const x = (step) => chartLeft + (last > first ? (step - first) / (last - first) : 0.5) * (width - chartLeft - 8);
    const y = (value) => chartY(value - low, high - low);
    for (const value of [low + 0.05 * spread, (low + high) / 2, high - 0.05 * spread]) {
      svgElement("path", {stroke: "var(--line)", d: "M" + chartLeft + " " + y(value) + "H" + width}, made);
      svgElement("text", {x: chartLeft - 6, y: y(value) + 4, "text-anchor": "end"}, made).textContent = words(value);
    }
    for (const step of marks.filter((mark) => mark > first && mark < last)) {
      svgElement("path", {stroke: "var(--soft)", "stroke-dasharray": "3 3", d: "M" + x(step) + " " + chartTop + "V" + chartBottom}, made);
      svgElement("text", {x: x(step) + 3, y: chartTop - 4}, made).textContent = "went on";
    }
    const path = points.map((one, i) => (i ? "L" : "M") + x(one.step).toFixed(1) + " " + y(one.value).toFixed(1)).join("");
    svgElement("path", {stroke: colour, fill: "none", "stroke-width": 1.5, d: path}, made);
    if (points.length === 1) svgElement("circle", {cx: x(points[0].step), cy: y(points[0].value), r: 2.5, fill: colour}, made);
    for (const dot of dots) {
      const mark = svgElement("circle", {cx: x(dot.step), cy: y(dot.value), r: 3.5, fill: colours.eval}, made);
      svgElement("title", {}, mark).textContent = (dot.name || "held-out") + " " + words(dot.value) + " after step " + dot.step;
    }
    svgElement("text", {x: chartLeft, y: chartHeight - 6}, made).textContent = "step " + first;
    svgElement("text", {x: width - 4, y: chartHeight - 6, "text-anchor": "end"}, made).textContent = "step " + last;
  });
}

function drawLearning(place) {
  const learning = data.report.learning;
  if (!learning) { hint(place, data.report.kind === "run" ? "Not known: metrics.jsonl tells no loss." : "Not known: a trace tells no loss."); return; }
  if (learning.pretended) hint(place, "A pretended world: one rank ran, and its losses are not those of a run.");
  const points = learning.points.filter((one) => one.loss !== null).map((one) => ({step: one.step, value: one.loss}));
  const dots = learning.evaluations.map((one) => ({step: one.step, value: one.loss, name: one.set}));
  const number = (value) => value.toPrecision(4);
  legend(place, [["training", colours.loss]].concat(dots.length ? [["evaluation", colours.eval, "round"]] : []));
  curve(place, "Loss by step", colours.loss, points, dots, data.report.starts, number);
  const speeds = learning.points.filter((one) => one.tokens_per_second > 0).map((one) => ({step: one.step, value: one.tokens_per_second}));
  if (speeds.length) curve(place, "Tokens per second by step", colours.speed, speeds, [], data.report.starts, (value) => String(Math.round(value)));
  const rows = [["training loss, first and last", number(learning.first_loss) + " \u2192 " + number(learning.last_loss)]];
  const last = new Map(learning.evaluations.map((one) => [one.set, one]));
  for (const [set, one] of last) rows.push([(set || "held-out") + " loss after step " + one.step, number(one.loss)]);
  if (learning.test_loss !== null) rows.push(["test loss", number(learning.test_loss)]);
  rows.push(["steps", String(learning.last_step)], ["skipped, not finite", String(learning.skipped_iterations)]);
  if (learning.repeated_steps > 0) rows.push(["ran twice for the row budget", String(learning.repeated_steps)]);
  const resumed = data.report.starts.filter((step) => step > 0);
  if (resumed.length) rows.push(["went on after step", resumed.join(", ")]);
  table(place, ["learning", ""], rows);
}
