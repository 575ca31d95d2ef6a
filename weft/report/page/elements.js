"use strict";
// Everything that a file says comes in as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

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

function show(section) { byId(section).hidden = false; }

function ms(value) { return value.toFixed(value < 10 ? 3 : 1) + " ms"; }
function percent(share) { return (100 * share).toFixed(1) + " %"; }

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return value.toFixed(unit === 0 ? 0 : 1) + " " + units[unit];
}

function table(parent, head, rows) {
  const scroll = element("div", undefined, parent);
  scroll.className = "scroll";
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

function legendEntry(parent, colour, words) {
  const entry = element("span", undefined, parent);
  const box = element("span", undefined, entry);
  box.className = "box";
  box.style.background = colour;
  entry.appendChild(document.createTextNode(words));
}

// Parts of a whole, one behind the other: [{name, value, colour}].
function stack(parent, parts, whole) {
  const bar = element("div", undefined, parent);
  bar.className = "stack";
  for (const part of parts) {
    if (!(part.value > 0)) continue;
    const piece = element("span", undefined, bar);
    piece.style.width = 100 * part.value / whole + "%";
    piece.style.background = part.colour;
    piece.title = part.name + ": " + ms(part.value);
  }
}
