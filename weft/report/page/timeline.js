"use strict";
// Lanes of spans on one time scale. Spans of a lane lie one behind the other, so the first that is
// seen is found by halving, and what is thinner than a pixel is drawn once a pixel.
class TimelineView {
  constructor(canvas, timeline) {
    this.canvas = canvas;
    this.all = timeline;
    this.rowHeight = 22;
    this.left = 140;
    this.top = 22;
    this.from = 0;
    this.to = timeline.end_ns;
    this.chosen = -1;
    this.drawn = 0;
    this.lanes = timeline.lanes.map(() => []);
    timeline.spans.lane.forEach((lane, i) => this.lanes[lane].push(i));
    // A rank's name stands above its lanes, and so there is a gap between ranks.
    let y = this.top, group = "";
    this.rows = timeline.lanes.map((lane) => {
      const title = lane.group !== group ? lane.group : "";
      group = lane.group;
      if (title) y += this.rowHeight - 4;
      const row = {y, title};
      y += this.rowHeight;
      return row;
    });
    canvas.style.height = y + 6 + "px";
    this.listen();
    this.tell(-1);
  }

  x(ns) { return this.left + (ns - this.from) / (this.to - this.from) * (this.width - this.left); }
  ns(x) { return this.from + (x - this.left) / (this.width - this.left) * (this.to - this.from); }
  end(i) { return this.all.spans.begin[i] + this.all.spans.length[i]; }

  zoom(from, to) {
    const shortest = 50;  // ns
    const length = Math.min(Math.max(to - from, shortest), this.all.end_ns);
    this.from = Math.min(Math.max(0, from), this.all.end_ns - length);
    this.to = this.from + length;
    this.draw();
  }
  zoomBy(factor, at) {
    const middle = at === undefined ? (this.from + this.to) / 2 : at;
    this.zoom(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }
  move(share) {
    const by = share * (this.to - this.from);
    this.zoom(this.from + by, this.to + by);
  }

  // The first span of a lane that ends after a moment.
  first(lane, moment) {
    let low = 0, high = lane.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.end(lane[middle]) > moment) high = middle; else low = middle + 1;
    }
    return low;
  }

  draw() {
    const scale = window.devicePixelRatio || 1, canvas = this.canvas;
    this.width = canvas.clientWidth;
    this.height = canvas.clientHeight;
    canvas.width = this.width * scale;
    canvas.height = this.height * scale;
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    pen.scale(scale, scale);
    pen.fillStyle = colour("--back");
    pen.fillRect(0, 0, this.width, this.height);
    pen.font = "11px ui-monospace, monospace";
    this.drawTicks(pen, colour);
    this.drawn = 0;
    this.back = colour("--back");
    this.lanes.forEach((lane, row) => this.drawLane(pen, lane, this.rows[row].y));
    pen.fillStyle = this.back;
    pen.fillRect(0, 0, this.left - 1, this.height);
    this.all.lanes.forEach((lane, i) => {
      const row = this.rows[i];
      if (row.title) {
        pen.font = "bold 11px system-ui, sans-serif";
        pen.fillStyle = colour("--text");
        pen.fillText(row.title, 6, row.y - 4);
        pen.font = "11px ui-monospace, monospace";
      }
      pen.fillStyle = colour("--soft");
      pen.fillText(lane.name.slice(0, 20), 6, row.y + 15);
    });
    byId("view").textContent = (this.from / 1e6).toFixed(3) + " to " + (this.to / 1e6).toFixed(3) + " ms";
    canvas.dataset.drawn = this.drawn;
  }

  // As many ticks as have room for their words: 1, 2 or 5 times a power of ten apart.
  drawTicks(pen, colour) {
    const length = this.to - this.from, most = Math.max(2, Math.floor((this.width - this.left) / 90));
    let step = Math.pow(10, Math.floor(Math.log10(length / most)));
    for (const factor of [2, 2.5, 2]) if (length / step > most) step *= factor;
    pen.strokeStyle = colour("--line");
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.x(at), words = +(at / 1e6).toPrecision(8) + " ms";
      pen.beginPath();
      pen.moveTo(x, this.top - 6);
      pen.lineTo(x, this.height);
      pen.stroke();
      pen.fillStyle = colour("--soft");
      const wide = pen.measureText(words).width;
      pen.fillText(words, Math.min(x + 3, this.width - wide - 2), 12);
    }
  }

  drawLane(pen, lane, top) {
    const spans = this.all.spans, y = top + 2, height = this.rowHeight - 4;
    let covered = -1;  // up to this pixel something thin is drawn already
    for (let k = this.first(lane, this.from); k < lane.length; ++k) {
      const i = lane[k];
      if (spans.begin[i] > this.to) break;
      const begin = Math.max(this.left, this.x(spans.begin[i])), end = Math.min(this.width, this.x(this.end(i)));
      const width = Math.max(0.6, end - begin);
      if (width < 1 && begin < covered && i !== this.chosen) continue;
      covered = width < 1 ? Math.floor(begin) + 1 : 0;
      const kind = this.all.kinds[spans.kind[i]], works = Math.min(end, Math.max(begin, this.x(spans.begin[i] + spans.wait[i])));
      pen.fillStyle = kind.colour;
      if (works - begin > 0.5) this.hatch(pen, begin, y, Math.min(width, works - begin), height);
      if (end - works > 0.05 || works === begin) pen.fillRect(works, y, Math.max(0.6, end - works), height);
      ++this.drawn;
      if (i === this.chosen) this.frame(pen, begin, y, width, height);
      if (end - works > 30) this.label(pen, i, works, y, end - works, kind.dark);
    }
  }

  // Waiting: pale, with stripes where there is room for them, in the colour of what waits.
  hatch(pen, x, y, width, height) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, width, height);
    pen.clip();
    pen.globalAlpha = 0.22;
    pen.fillRect(x, y, width, height);
    pen.globalAlpha = 0.75;
    pen.strokeStyle = pen.fillStyle;
    pen.beginPath();
    for (let at = Math.floor((x - height) / 7) * 7; width > 4 && at < x + width; at += 7) {
      pen.moveTo(at, y + height);
      pen.lineTo(at + height, y);
    }
    pen.stroke();
    pen.restore();
  }

  frame(pen, x, y, width, height) {
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--text");
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, Math.max(1, width - 2), height - 2);
    pen.lineWidth = 1;
  }

  label(pen, i, x, y, width, isDark) {
    pen.fillStyle = isDark ? "#ffffff" : "#1f2328";
    pen.fillText(this.all.names[this.all.spans.name[i]].slice(0, Math.floor((width - 6) / 6.7)), x + 3, y + 12);
  }

  at(x, y) {
    const lane = this.lanes[this.rows.findIndex((row) => y >= row.y && y < row.y + this.rowHeight)];
    if (!lane || x < this.left) return -1;
    const k = this.first(lane, this.ns(x));
    return k < lane.length && this.x(this.all.spans.begin[lane[k]]) <= x + 1 ? lane[k] : -1;
  }

  tell(i) {
    const spans = this.all.spans;
    if (i < 0) { byId("span").textContent = "Point at a span: its name, lane and time stand here."; return; }
    const more = spans.count[i] > 1 ? " and " + (spans.count[i] - 1) + " more that are too short to tell apart" : "";
    byId("span").textContent = this.all.names[spans.name[i]] + more + " | " +
      this.all.lanes[spans.lane[i]].group + " " + this.all.lanes[spans.lane[i]].name + " | " + this.all.kinds[spans.kind[i]].name +
      " | at " + (spans.begin[i] / 1e6).toFixed(4) + " ms, " + (spans.length[i] / 1e6).toFixed(4) + " ms long" +
      (spans.wait[i] > 0 ? ", of which it waited " + (spans.wait[i] / 1e6).toFixed(4) + " ms" : "");
  }

  // The span after the chosen one, or before it, on its lane; it is brought into view.
  choose(direction) {
    if (!this.all.spans.lane.length) return;
    const lane = this.lanes[this.chosen < 0 ? this.all.spans.lane[0] : this.all.spans.lane[this.chosen]];
    const now = this.chosen < 0 ? this.first(lane, this.from) - direction : lane.indexOf(this.chosen);
    this.chosen = lane[Math.min(Math.max(0, now + direction), lane.length - 1)];
    const begin = this.all.spans.begin[this.chosen], half = (this.to - this.from) / 2;
    if (begin < this.from || this.end(this.chosen) > this.to) this.zoom(begin - half, begin + half);
    else this.draw();
    this.tell(this.chosen);
  }

  listen() {
    const canvas = this.canvas;
    let held = null;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) this.move(event.deltaY / 1000);
      else this.zoomBy(Math.pow(1.0015, event.deltaY), this.ns(event.offsetX));
    }, {passive: false});
    canvas.addEventListener("pointerdown", (event) => {
      held = {x: event.offsetX, from: this.from, to: this.to};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) { this.tell(this.at(event.offsetX, event.offsetY)); return; }
      const by = (held.x - event.offsetX) / (this.width - this.left) * (held.to - held.from);
      this.zoom(held.from + by, held.to + by);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (held && Math.abs(held.x - event.offsetX) < 3) {
        this.chosen = this.at(event.offsetX, event.offsetY);
        this.draw();
        this.tell(this.chosen);
      }
      held = null;
    });
    canvas.addEventListener("keydown", (event) => {
      const keys = {ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), "+": () => this.zoomBy(0.5),
        "=": () => this.zoomBy(0.5), "-": () => this.zoomBy(2), Home: () => this.zoom(0, this.all.end_ns),
        n: () => this.choose(1), p: () => this.choose(-1)};
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}
