"use strict";
const wallParts = [
  ["compute_ms", "compute", colours.compute], ["slowed_ms", "compute slowed by transfers", colours.slowed],
  ["communication_ms", "communication", colours.communication],
  ["late_ms", "late ranks", colours.late], ["bubble_ms", "bubble", colours.bubble],
  ["host_ms", "host", colours.host], ["copy_ms", "copies", colours.copy], ["idle_ms", "idle", colours.idle]];
// No partner and short cover are the wall communication, peer is late ranks or bubble.
const reasonParts = [
  ["no_partner_ms", "no partner", colours.communication], ["short_cover_ms", "short cover", colours.short],
  ["peer_ms", "peer", colours.late], ["host_ms", "host", colours.host]];

// Those that are there in one of the rows.
function present(parts, rows) { return parts.filter(([key]) => rows.some((row) => row[key] > 0)); }
function legendOf(place, parts) { legend(place, parts.map(([, name, colour]) => [name, colour])); }

function rankName(rank) {
  if (!rank.label) return "rank " + rank.rank;
  return /^(GPU|rank) /.test(rank.label) ? rank.label : "rank " + rank.rank + " " + rank.label;
}

const noTrace = () => data.report.kind === "run"
  ? "Not known: this run has no trace (runtime.trace=true)." : "Not known: the trace does not say.";

function drawWalls(place) {
  const report = data.report;
  if (!report.walls) { hint(place, noTrace()); return; }
  const one = report.longest_rank === null ? "mean of " + counted(report.ranks.length, "rank") : "the rank that works longest";
  const rows = [{name: one, walls: report.walls}].concat(report.ranks.length > 1
    ? report.ranks.slice(0, 64).map((rank) => ({name: rankName(rank), walls: rank.walls})) : []);
  const parts = present(wallParts, rows.map((row) => row.walls));
  legendOf(place, parts);
  for (const row of rows) {
    element("div", row.name + ", " + ms(row.walls.step_ms), place).className = "hint";
    stack(place, parts.map(([key, name, colour]) => ({name, colour, value: row.walls[key]})), row.walls.step_ms);
  }
  const times = column(parts.map(([key]) => report.walls[key]));
  table(place, ["wall", "ms", "share"], parts.map(([key, name], i) =>
    [name, times[i], percent(report.walls[key] / report.walls.step_ms)]));
  if (report.crowded) hint(place, report.crowded);
}

function drawExposed(place) {
  if (!data.report.exposed) { hint(place, noTrace()); return; }
  const kinds = Object.entries(data.report.exposed);
  if (!kinds.length) { hint(place, "Nothing was communicated."); return; }
  const parts = present(reasonParts, kinds.map(([, kind]) => kind.reasons)), most = Math.max(...kinds.map(([, kind]) => kind.communication_ms));
  legendOf(place, parts);
  for (const [name, kind] of kinds) {
    element("div", name + ": exposed " + ms(kind.exposed_ms) + " of " + ms(kind.communication_ms), place).className = "hint";
    stack(place, parts.map(([key, reason, colour]) => ({name: reason, colour, value: kind.reasons[key]})), most);
  }
  const all = kinds.map(([, kind]) => [kind.communication_ms, kind.exposed_ms].concat(parts.map(([key]) => kind.reasons[key])));
  const digits = decimals(Math.max(...all.flat()));
  table(place, ["ms", "communication", "exposed"].concat(parts.map((part) => part[1]), ["hidden any", "hidden gemm"]),
    kinds.map(([name, kind], i) => [name].concat(all[i].map((value) => value.toFixed(digits)), [percent(kind.hidden_any), percent(kind.hidden_gemm)])));
}

const chartHeight = 180, chartLeft = 80, chartBottom = chartHeight - 22, chartTop = 16;
function chartY(value, top) { return chartBottom - value / top * (chartBottom - chartTop); }

function level(made, width, value, top, colour, words, below) {
  const y = chartY(value, top);
  svgElement("path", {stroke: colour, d: "M" + chartLeft + " " + y + "H" + width}, made);
  svgElement("text", {x: chartLeft - 6, y: y + (below ? 12 : 4), "text-anchor": "end"}, made).textContent = words;
}

// Layers that lie on each other: columns of values, each a list by layer.
function areas(made, width, columns, fills, top) {
  const step = (width - chartLeft) / columns.length;
  for (let tag = fills.length - 1; tag >= 0; --tag) {
    let path = "M" + chartLeft + " " + chartBottom;
    columns.forEach((values, i) => {
      let sum = 0;
      for (let below = 0; below <= tag; ++below) sum += values[below];
      path += "V" + chartY(sum, top).toFixed(1) + "H" + (chartLeft + (i + 1) * step).toFixed(1);
    });
    svgElement("path", {fill: fills[tag], d: path + "V" + chartBottom + "Z"}, made);
  }
}

function drawMemory(place) {
  const memory = data.memory;
  if (!memory.stages.length) { hint(place, "Not known: " + (data.report.kind === "run" ? "no dry step of this run is possible." : "the trace does not say.")); return; }
  const fills = memory.labels.map((name) => colours[name]);
  const used = memory.labels.map((name, i) => memory.stages.some((stage) => stage.columns.some((values) => values[i] > 0)));
  legend(place, memory.labels.map((name, i) => [name, fills[i]]).filter((entry, i) => used[i]));
  let top = memory.room || 1;
  for (const stage of memory.stages) top = Math.max(top, stage.peak);
  for (const stage of memory.stages) {
    element("div", stage.title, place).className = "hint";
    picture(place, stage.title, chartHeight, (made, width) => {
      areas(made, width, stage.columns, fills, top);
      const apart = !memory.room || Math.abs(chartY(memory.room, top) - chartY(stage.peak, top)) > 14;
      if (memory.room) level(made, width, memory.room, top, "var(--bad)", bytes(memory.room));
      level(made, width, stage.peak, top, "var(--line)", bytes(stage.peak), !apart);
      svgElement("text", {x: chartLeft, y: chartHeight - 6}, made).textContent = memory.axis;
    });
  }
}

function drawLoads(place) {
  const loads = data.report.loads;
  if (!loads.length) { hint(place, data.report.kind === "run" ? "Not known: metrics.jsonl tells no expert loads." : "Not known: a trace tells no expert loads."); return; }
  const top = Math.max(1.2, ...loads.map((load) => load.max));
  legend(place, [["busiest expert", colours.max, "thin"], ["p95", colours.p95], ["p50", colours.p50]]);
  picture(place, "expert loads by layer over their mean", chartHeight, (made, width) => {
    const step = (width - chartLeft) / loads.length;
    loads.forEach((load, i) => {
      const x = chartLeft + i * step + step * 0.1, wide = Math.min(60, Math.max(1, step * 0.8));
      const bar = (value, colour, part) => svgElement("rect", {x: x + wide * (1 - part) / 2, width: wide * part, y: chartY(value, top),
        height: chartBottom - chartY(value, top), fill: colour}, made);
      bar(load.p95, colours.p95, 1);
      bar(load.p50, colours.p50, 0.5);
      svgElement("path", {stroke: colours.max, "stroke-width": 3, d: "M" + x + " " + chartY(load.max, top) + "h" + wide}, made);
    });
    const apart = chartY(1, top) - chartY(top, top) > 14;
    level(made, width, 1, top, "var(--bad)", "1, even", !apart);
    level(made, width, top, top, "var(--line)", top.toFixed(2));
    svgElement("text", {x: chartLeft, y: chartHeight - 6}, made).textContent = "layers, the first on the left";
  });
  longTable(place, ["layer", "max", "p95", "p50", "dropped"], loads.map((load) =>
    [String(load.layer), load.max.toFixed(2), load.p95.toFixed(2), load.p50.toFixed(2), String(load.dropped)]), 12);
}

function drawComparison(place) {
  const comparison = data.report.comparison;
  if (!comparison) {
    const simulated = data.report.kind.startsWith("simulated");
    hint(place, simulated ? "The step was simulated: there is nothing measured." : noTrace());
    return;
  }
  hint(place, "costs " + comparison.costs);
  const rows = [comparison.step, comparison.replayed].concat(comparison.pieces).filter((row) => row.name);
  const measured = column(rows.map((row) => row.measured_ms)), predicted = column(rows.map((row) => row.predicted_ms));
  longTable(place, ["ms a step", "measured", "predicted", "error"], rows.map((row, i) =>
    [row.name, measured[i], predicted[i], percent(row.error)]), 14);
  hint(place, (comparison.reason ? "Why: " + comparison.reason + ". " : "") + "Replayed: the step from the measured nodes alone, with no time between them.");
}
