// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The data of the page, and how charts are drawn. report.html has the page, report-page.js fills it.

const D = JSON.parse(document.getElementById("data").textContent);
const colors = [
  "#4e79a7", "#f28e2b", "#59a14f", "#b6992d", "#e15759", "#76b7b2", "#d37295", "#b07aa1", "#9c755f", "#edc948",
  "#499894", "#a0cbe8", "#9d9d9d", "#79706e"
];
const byId = id => document.getElementById(id);
const nodes = D.nodes, nodeCount = nodes.tag.length, hasTimes = nodes.start !== undefined;
const kinds = D.components.length;

// --- Words

function size(bytes) {
  if (bytes === null || bytes === undefined)
    return "unknown";
  if (bytes < 1024)
    return bytes + " B";
  if (bytes < 10240)
    return (bytes / 1024).toFixed(1) + " KiB";
  const mib = bytes / 1048576;
  return mib.toFixed(mib < 10 ? 2 : 1) + " MiB";
}
const percent = part => (100 * part).toFixed(1) + " %";
function time(ns) {
  return ns < 1e4   ? (ns / 1e3).toFixed(2) + " \u00b5s"
         : ns < 1e7 ? (ns / 1e3).toFixed(0) + " \u00b5s"
                    : (ns / 1e6).toFixed(1) + " ms";
}
function tagText(tag) {
  if (tag < 0)
    return "the end of the step";
  const [op, , phase, layer] = D.tags[tag];
  return op + " (" + (layer >= 0 ? "layer " + layer + ", " : "") + D.phases[phase] + ")";
}
function nodeText(node) {
  const lane = nodes.lane[node];
  return lane < 0 ? D.texts[nodes.call[node]] + " on the host"
                  : tagText(nodes.tag[node]) + ", " + D.texts[nodes.call[node]] + " on " + D.lanes[lane] +
                        ", touches " + size(nodes.bytes[node]);
}
const componentOf = occupant => D.tags[occupant.tag][1];
function livesText(occupant) {
  if (occupant.buffer)
    return "whole step";
  const parts = [];
  for (let i = 0; i < occupant.lives.length && i < 6; i += 2)
    parts.push(occupant.lives[i] + "\u2013" + occupant.lives[i + 1]);
  return parts.join(", ") + (occupant.lives.length > 6 ? ", \u2026 " + occupant.lives.length / 2 + " times" : "");
}

// --- Live bytes by component

/// What is live from point to point: `at` are nodes or times, `parts` the bytes of each component from there on.
function accumulate(changes, first) {
  changes.sort((a, b) => a[0] - b[0]);
  const at = [], parts = [], live = new Float64Array(kinds);
  let peak = 0, peakIndex = 0;
  for (let i = 0; i < changes.length || at.length === 0;) {
    const now = i < changes.length ? changes[i][0] : first;
    for (; i < changes.length && changes[i][0] === now; ++i)
      live[changes[i][1]] += changes[i][2];
    const total = live.reduce((a, b) => a + b, 0);
    if (total > peak) {
      peak = total;
      peakIndex = at.length;
    }
    at.push(now);
    parts.push(Float64Array.from(live));
  }
  return {at, parts, peak, peakIndex, totals : parts.map(part => part.reduce((a, b) => a + b, 0))};
}
function plannedCurve(space) {
  const changes = [];
  for (const occupant of D.occupants) {
    if (occupant.space !== space || (occupant.buffer && !withBuffers))
      continue;
    for (let i = 0; i < occupant.lives.length; i += 2) {
      changes.push([ occupant.lives[i], componentOf(occupant), occupant.bytes ]);
      changes.push([ occupant.lives[i + 1] + 1, componentOf(occupant), -occupant.bytes ]);
    }
  }
  return accumulate(changes, 0);
}
function observedCurve(space) {
  const changes = [];
  for (const occupant of D.occupants) {
    if (occupant.space !== space || (occupant.buffer && !withBuffers))
      continue;
    if (occupant.buffer) {
      changes.push([ 0, componentOf(occupant), occupant.bytes ]);
      continue;
    }
    for (let i = 0; i < (occupant.times || []).length; i += 2) {
      changes.push([ occupant.times[i], componentOf(occupant), occupant.bytes ]);
      changes.push([ occupant.times[i + 1], componentOf(occupant), -occupant.bytes ]);
    }
  }
  return accumulate(changes, 0);
}
/// The last point at or before x.
function pointAt(curve, x) {
  let low = 0, high = curve.at.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    curve.at[middle] <= x ? low = middle : high = middle;
  }
  return low;
}
function partsText(part) {
  return Array.from(part, (bytes, kind) => [bytes, kind])
      .filter(([ bytes ]) => bytes > 0)
      .sort((a, b) => b[0] - a[0])
      .map(([ bytes, kind ]) => D.components[kind] + " " + size(bytes))
      .join(", ");
}

// --- Charts

/// What part of an axis is shown, by all charts that share it.
class View {
  constructor(end) {
    this.full = Math.max(end, 1);
    this.from = 0;
    this.to = this.full;
    this.charts = [];
  }
  set(from, to) {
    const width = Math.min(Math.max(to - from, this.full / 1e5), this.full);
    this.from = Math.min(Math.max(from, 0), this.full - width);
    this.to = this.from + width;
    for (const chart of this.charts)
      chart.draw();
  }
  zoom(factor, about = (this.from + this.to) / 2) {
    this.set(about - (about - this.from) * factor, about + (this.to - about) * factor);
  }
  move(part) {
    const step = (this.to - this.from) * part;
    this.set(this.from + step, this.to + step);
  }
}
let lastTime = 0;
if (hasTimes)
  for (const end of nodes.end)
    lastTime = Math.max(lastTime, end);
const views = {
  issue : new View(nodeCount),
  time : new View(lastTime)
};
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const left = 74, right = 12, top = 10, bottom = 22;

/// A canvas over a view. `paint` draws it, `say` gives the text for a place, `step` the next place for an arrow key.
class Chart {
  constructor(id, view, paint, say, step) {
    Object.assign(this, {canvas : byId(id), text : byId(id + "-text"), view, paint, say, step, cursor : null});
    this.base = document.createElement("canvas");
    this.heightPixels = Number(this.canvas.getAttribute("height"));
    view.charts.push(this);
    const canvas = this.canvas;
    canvas.addEventListener("pointermove", event => {
      const x = event.offsetX, y = event.offsetY;
      if (this.drag !== undefined && event.buttons) {
        view.move((this.drag - x) / this.plotWidth);
        this.drag = x;
        return;
      }
      this.point(this.toValue(x), y);
    });
    canvas.addEventListener("pointerdown", event => { this.drag = event.offsetX; });
    canvas.addEventListener("pointerup", () => { this.drag = undefined; });
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey)
        return;
      event.preventDefault();
      view.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.toValue(event.offsetX));
    }, {passive : false});
    canvas.addEventListener("keydown", event => {
      const zoom = {"+" : 0.5, "=" : 0.5, "-" : 2}[event.key];
      const ways = {ArrowLeft : [ -1, 0 ], ArrowRight : [ 1, 0 ], ArrowUp : [ 0, -1 ], ArrowDown : [ 0, 1 ]}[event.key];
      if (zoom)
        view.zoom(zoom, this.cursor ? this.cursor.x : undefined);
      else if (event.key === "0")
        view.set(0, view.full);
      else if (ways) {
        const next = this.step(this.cursor || {x : view.from, y : this.heightPixels / 2}, ...ways);
        if (next.x < view.from || next.x > view.to)
          view.set(next.x - (view.to - view.from) / 2, next.x + (view.to - view.from) / 2);
        this.point(next.x, next.y);
      } else
        return;
      event.preventDefault();
    });
  }
  get plotWidth() { return Math.max(this.width - left - right, 1); }
  get plotHeight() { return this.heightPixels - top - bottom; }
  toX(value) { return left + (value - this.view.from) / (this.view.to - this.view.from) * this.plotWidth; }
  toValue(x) {
    return Math.min(Math.max(this.view.from + (x - left) / this.plotWidth * (this.view.to - this.view.from), 0),
                    this.view.full);
  }
  point(x, y) {
    this.cursor = {x, y};
    this.text.textContent = this.say(x, y);
    this.show();
  }
  draw() {
    this.width = this.canvas.clientWidth || 1000;
    const scale = devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.base]) {
      canvas.width = this.width * scale;
      canvas.height = this.heightPixels * scale;
    }
    this.canvas.style.height = this.heightPixels + "px";
    const g = this.base.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.font = "12px system-ui, sans-serif";
    this.paint(this, g);
    this.show();
  }
  show() {
    const g = this.canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, this.canvas.width, this.canvas.height);
    g.drawImage(this.base, 0, 0);
    if (!this.cursor)
      return;
    g.fillStyle = css("--text");
    const scale = devicePixelRatio || 1, x = this.toX(this.cursor.x);
    if (x >= left && x <= this.width - right)
      g.fillRect(x * scale, top * scale, scale, this.plotHeight * scale);
  }
}
/// Marks of the y axis, in bytes, with their lines.
function drawBytesAxis(chart, g, most) {
  const unit = Math.pow(2, Math.ceil(Math.log2(Math.max(most, 1) / 5)));
  g.textAlign = "right";
  g.textBaseline = "middle";
  g.lineWidth = 1;
  for (let bytes = 0; bytes <= most; bytes += unit) {
    const y = top + chart.plotHeight * (1 - bytes / most);
    g.fillStyle = css("--line");
    g.fillRect(left, Math.round(y), chart.plotWidth, 1);
    g.fillStyle = css("--faint");
    g.fillText(size(bytes), left - 6, y);
  }
}
function drawAxis(chart, g, name) {
  g.fillStyle = css("--faint");
  g.textBaseline = "alphabetic";
  const y = chart.heightPixels - 6;
  g.textAlign = "left";
  g.fillText(name(chart.view.from), left, y);
  g.textAlign = "right";
  g.fillText(name(chart.view.to), chart.width - right, y);
}
function drawLevel(chart, g, most, bytes, text, color, below) {
  if (bytes === null || bytes === undefined || bytes > most)
    return;
  const y = Math.round(top + chart.plotHeight * (1 - bytes / most));
  g.strokeStyle = g.fillStyle = color;
  g.lineWidth = 1.5;
  g.setLineDash([ 6, 4 ]);
  g.beginPath();
  g.moveTo(left, y);
  g.lineTo(chart.width - right, y);
  g.stroke();
  g.setLineDash([]);
  g.textAlign = "right";
  g.textBaseline = below ? "top" : "bottom";
  g.fillText(text, chart.width - right - 4, y + (below ? 3 : -2));
}
/// Beside what is there, not over it: a peak can be a pixel wide.
function drawMark(chart, g, x, text) {
  const at = Math.round(chart.toX(x)) - 3;
  if (at < left - 4 || at > chart.width - right)
    return;
  g.strokeStyle = g.fillStyle = css("--mark");
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(at, top);
  g.lineTo(at, top + chart.plotHeight);
  g.stroke();
  const isRight = at > chart.width - 160;
  g.textAlign = isRight ? "right" : "left";
  g.textBaseline = "top";
  g.fillText(text, at + (isRight ? -5 : 5), top + 2);
}
/// Stacked areas: of each column of pixels the highest point that falls into it.
function drawStack(chart, g, curve, most) {
  const columns = Math.floor(chart.plotWidth), view = chart.view;
  let index = pointAt(curve, view.from);
  for (let column = 0; column < columns; ++column) {
    const end = view.from + (column + 1) / columns * (view.to - view.from);
    let best = index;
    while (index + 1 < curve.at.length && curve.at[index + 1] < end) {
      ++index;
      if (curve.totals[index] > curve.totals[best])
        best = index;
    }
    let y = top + chart.plotHeight;
    for (let kind = 0; kind < kinds; ++kind) {
      const height = curve.parts[best][kind] / most * chart.plotHeight;
      if (height <= 0)
        continue;
      g.fillStyle = colors[kind];
      g.fillRect(left + column, y - height, 1.3, height);
      y -= height;
    }
  }
}
