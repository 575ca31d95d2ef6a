"use strict";
// Everything that a file says comes in as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// One colour for one thing, in every section.
const colours = {
  compute: "#2f6fc4", slowed: "#a9c4e8", communication: "#2e9e5b", short: "#9fd8ae", late: "#8756ad", bubble: "#cbb8e0",
  host: "#b8325f", copy: "#1f9aa5", idle: "#8c959f",
  weights: "#4d6a9a", gradients: "#f2b84b", optimizer: "#596673", activations: "#7f8f1f",
  workspace: "#d0c4b0", allocated: "#4d6a9a", "reserved besides": "#d0c4b0", max: "#a0522d", p95: "#d8b48f", p50: "#a98467", loss: "#2f6fc4",
  eval: "#b8325f", speed: "#2e9e5b"};

function element(name, words, parent) {
  const made = document.createElement(name);
  if (words !== undefined) made.textContent = words;
  if (parent) parent.appendChild(made);
  return made;
}

function svgElement(name, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(made);
  return made;
}

function hint(parent, words) { element("p", words, parent).className = "hint"; }
function counted(count, noun) { return count + " " + noun + (count === 1 ? "" : "s"); }

// Decimals that numbers of this size need; those of one column are written alike.
function decimals(most) { return most < 10 ? 3 : most < 100 ? 2 : most < 10000 ? 1 : 0; }
function ms(value) { return value.toFixed(decimals(Math.abs(value))) + " ms"; }
function percent(share) { return (100 * share).toFixed(1) + " %"; }
function column(values) {
  const digits = decimals(Math.max(0, ...values.map(Math.abs)));
  return values.map((value) => value.toFixed(digits));
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return value.toFixed(unit === 0 ? 0 : 1) + " " + units[unit];
}

function table(parent, head, rows) {
  const scroll = element("div", undefined, parent);
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  const made = element("table", undefined, scroll);
  const top = element("tr", undefined, element("thead", undefined, made));
  for (const word of head) element("th", word, top).scope = "col";
  const body = element("tbody", undefined, made);
  for (const row of rows) {
    const line = element("tr", undefined, body);
    for (const cell of row) element("td", cell, line);
  }
  return made;
}

// Long tables: the first rows, and the rest behind a line that opens it.
function longTable(parent, head, rows, shown) {
  table(parent, head, rows.slice(0, shown));
  if (rows.length <= shown) return;
  const more = element("details", undefined, parent);
  element("summary", counted(rows.length - shown, "more row"), more);
  table(more, head, rows.slice(shown));
}

function legendEntry(parent, colour, words, style) {
  const entry = element("span", undefined, parent);
  const box = element("span", undefined, entry);
  box.className = "box" + (style ? " " + style : "");
  box.style.backgroundColor = colour;
  entry.appendChild(document.createTextNode(words));
}

// Entries of [name, colour, style].
function legend(parent, entries) {
  const line = element("p", undefined, parent);
  line.className = "legend";
  for (const [name, colour, style] of entries) legendEntry(line, colour, name, style);
}

// Parts of a whole, one behind the other: [{name, value, colour}].
function stack(parent, parts, whole) {
  const bar = element("div", undefined, parent);
  bar.className = "stack";
  for (const part of parts) {
    if (!(part.value > 0) || !(whole > 0)) continue;
    const piece = element("span", undefined, bar);
    piece.style.width = 100 * part.value / whole + "%";
    piece.style.background = part.colour;
    piece.title = part.name + ": " + ms(part.value);
  }
}

// Pictures are drawn as wide as their place, so that their letters keep their size.
const pictures = [];
function picture(parent, title, height, draw) {
  const made = svgElement("svg", {role: "img", height}, parent);
  const redraw = () => {
    const width = Math.max(240, parent.clientWidth || 1000);
    made.replaceChildren();
    made.setAttribute("viewBox", "0 0 " + width + " " + height);
    svgElement("title", {}, made).textContent = title;
    draw(made, width);
  };
  pictures.push(redraw);
  redraw();
}
