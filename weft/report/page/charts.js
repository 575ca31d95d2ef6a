"use strict";
const wallParts = [
  ["compute_ms", "compute", "#08519c"], ["communication_ms", "communication", "#2e9e5b"],
  ["late_ms", "late ranks", "#8756ad"], ["bubble_ms", "bubble", "#a9b4bf"],
  ["host_ms", "host", "#d9602f"], ["copy_ms", "copies", "#f2b84b"], ["idle_ms", "idle", "#596673"]];
const reasonParts = [
  ["no_partner_ms", "no partner", "#d9602f"], ["short_cover_ms", "short cover", "#f2b84b"],
  ["peer_ms", "peer", "#8756ad"], ["host_ms", "host", "#596673"]];
const tagColours = ["#57606a", "#8c959f", "#b6bcc4", "#2f81f7", "#e3872d", "#9a6dd7"];

function legend(parent, parts) {
  const line = element("p", undefined, parent);
  line.className = "legend";
  for (const [, name, colour] of parts) legendEntry(line, colour, name);
}

function drawWalls() {
  const report = data.report;
  if (!report.traced_steps) return;
  show("walls-section");
  const place = byId("walls"), all = [{label: report.longest_rank === null ? "mean" : "longest", walls: report.walls}].concat(report.ranks);
  legend(place, wallParts);
  for (const rank of all.slice(0, 65)) {
    const words = (rank.rank === undefined ? rank.label : rank.label + " rank " + rank.rank) + ", " + ms(rank.walls.step_ms);
    element("div", words, place).className = "hint";
    stack(place, wallParts.map(([key, name, colour]) => ({name, colour, value: rank.walls[key]})), rank.walls.step_ms);
  }
  table(place, ["wall", "ms", "share"], wallParts.map(([key, name]) =>
    [name, ms(report.walls[key]), percent(report.walls[key] / report.walls.step_ms)]));
}

function drawExposed() {
  const kinds = Object.entries(data.report.exposed);
  if (!kinds.length) return;
  show("exposed-section");
  const place = byId("exposed"), rows = [];
  legend(place, reasonParts);
  const most = Math.max(...kinds.map(([, kind]) => kind.communication_ms));
  for (const [name, kind] of kinds) {
    element("div", name + ": exposed " + ms(kind.exposed_ms) + " of " + ms(kind.communication_ms), place).className = "hint";
    stack(place, reasonParts.map(([key, reason, colour]) => ({name: reason, colour, value: kind.reasons[key]})), most);
    rows.push([name, ms(kind.communication_ms), percent(kind.hidden_any), percent(kind.hidden_gemm), ms(kind.exposed_ms)]
      .concat(reasonParts.map(([key]) => ms(kind.reasons[key]))));
  }
  table(place, ["kind", "communication", "hidden any", "hidden gemm", "exposed"].concat(reasonParts.map((part) => part[1])), rows);
}

const chartWidth = 1200, chartHeight = 170, chartLeft = 80;

function level(picture, value, top, colour, words) {
  const y = chartHeight - 20 - value / top * (chartHeight - 36);
  svgElement("path", {stroke: colour, d: "M" + chartLeft + " " + y + "H" + chartWidth}, picture);
  svgElement("text", {x: chartLeft - 6, y: y + 4, "text-anchor": "end"}, picture).textContent = words;
}

// Layers that lie on each other: columns of values, each a list by layer.
function areas(parent, title, columns, colours, top) {
  const picture = svgElement("svg", {viewBox: "0 0 " + chartWidth + " " + chartHeight, role: "img"}, parent);
  svgElement("title", {}, picture).textContent = title;
  const bottom = chartHeight - 20, width = (chartWidth - chartLeft) / columns.length;
  for (let tag = colours.length - 1; tag >= 0; --tag) {
    let path = "M" + chartLeft + " " + bottom;
    columns.forEach((column, i) => {
      let sum = 0;
      for (let below = 0; below <= tag; ++below) sum += column[below];
      path += "V" + (bottom - sum / top * (chartHeight - 36)).toFixed(1) + "H" + (chartLeft + (i + 1) * width).toFixed(1);
    });
    svgElement("path", {fill: colours[tag], d: path + "V" + bottom + "Z"}, picture);
  }
  return picture;
}

function drawMemory() {
  const memory = data.memory;
  if (!memory.stages.length) return;
  show("memory-section");
  const place = byId("memory");
  legend(place, memory.labels.map((name, i) => ["", name, tagColours[i]]));
  let top = memory.room || 1;
  for (const stage of memory.stages) top = Math.max(top, stage.peak);
  for (const stage of memory.stages) {
    element("div", stage.title, place).className = "hint";
    const picture = areas(place, stage.title, stage.columns, tagColours.slice(0, memory.labels.length), top);
    level(picture, stage.peak, top, "var(--line)", bytes(stage.peak));
    if (memory.room) level(picture, memory.room, top, "var(--bad)", bytes(memory.room));
    svgElement("text", {x: chartLeft, y: chartHeight - 6}, picture).textContent = memory.axis;
  }
}

function drawLoads() {
  const loads = data.report.loads;
  if (!loads.length) return;
  show("loads-section");
  const place = byId("loads"), top = Math.max(1.2, ...loads.map((load) => load.max));
  const picture = svgElement("svg", {viewBox: "0 0 " + chartWidth + " " + chartHeight, role: "img"}, place);
  svgElement("title", {}, picture).textContent = "expert loads by layer over their mean";
  const width = (chartWidth - chartLeft) / loads.length, scale = (chartHeight - 36) / top;
  loads.forEach((load, i) => {
    for (const [value, colour] of [[load.max, "#e3872d"], [load.p95, "#2f81f7"], [load.p50, "#57606a"]]) {
      svgElement("rect", {x: chartLeft + i * width + 1, width: Math.max(1, width - 2), y: chartHeight - 20 - value * scale,
        height: value * scale, fill: colour}, picture);
    }
  });
  level(picture, 1, top, "var(--bad)", "1");
  level(picture, top, top, "var(--line)", top.toFixed(2));
  legend(place, [["", "max", "#e3872d"], ["", "p95", "#2f81f7"], ["", "p50", "#57606a"]]);
  table(place, ["layer", "max", "p95", "p50", "dropped"], loads.map((load) =>
    [String(load.layer), load.max.toFixed(2), load.p95.toFixed(2), load.p50.toFixed(2), String(load.dropped)]));
}

function drawComparison() {
  const comparison = data.report.comparison;
  if (!comparison) return;
  show("comparison-section");
  byId("costs").textContent = "costs " + comparison.costs;
  const rows = [comparison.step, comparison.replayed].concat(comparison.pieces).filter((row) => row.name);
  table(byId("comparison"), ["a step", "measured", "predicted", "error"], rows.map((row) =>
    [row.name, ms(row.measured_ms), ms(row.predicted_ms), percent(row.error)]));
}
