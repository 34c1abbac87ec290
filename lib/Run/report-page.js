// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills the page with a space of the step: charts, tables, numbers.

// --- What is shown of a space

let space, planned, observed, most, rects, laneRows, overlaps, withBuffers = true;
const facts = () => D.spaces[space];
/// A size of the whole space, as the charts show it.
const shown = bytes => bytes === null || withBuffers ? bytes : bytes - facts().buffers;
function drawShare(chart, g, bytes, name, color, below) {
  if (bytes !== null)
    drawLevel(chart, g, most, shown(bytes), name + " " + size(shown(bytes)), color, below);
}

const plannedChart = new Chart(
    "planned", views.issue,
    (chart, g) => {
      drawBytesAxis(chart, g, most);
      drawStack(chart, g, planned, most);
      drawShare(chart, g, facts().planned, "planned", css("--text"), false);
      drawShare(chart, g, facts().lower_bound, "lower bound", css("--second"), true);
      drawMark(chart, g, facts().peak_node + 0.5, "most is live here");
      drawAxis(chart, g, value => "call " + Math.round(value));
    },
    x => {
      const node = Math.min(Math.floor(x), nodeCount - 1), index = pointAt(planned, node);
      return "Call " + node + ": " + nodeText(node) + ". Live: " + size(planned.totals[index]) + " (" +
             partsText(planned.parts[index]) + ").";
    },
    (cursor, dx) => ({x : Math.min(Math.max(Math.floor(cursor.x) + dx, 0), nodeCount - 1) + 0.5, y : cursor.y}));

const observedChart = new Chart("observed", views.time,
                                (chart, g) => {
                                  drawBytesAxis(chart, g, most);
                                  if (!hasTimes) {
                                    g.fillStyle = css("--faint");
                                    g.textAlign = "left";
                                    g.fillText("No step has run.", left + 10, top + 20);
                                    return;
                                  }
                                  drawStack(chart, g, observed, most);
                                  drawShare(chart, g, facts().planned, "planned", css("--text"), false);
                                  drawShare(chart, g, facts().observed, "highest byte written", css("--mark"), true);
                                  drawAxis(chart, g, time);
                                },
                                x => {
                                  if (!hasTimes)
                                    return "";
                                  const index = pointAt(observed, x);
                                  return "At " + time(x) + ": " + size(observed.totals[index]) + " live (" +
                                         partsText(observed.parts[index]) + ").";
                                },
                                (cursor, dx) => {
                                  if (!hasTimes)
                                    return cursor;
                                  const index =
                                      Math.min(Math.max(pointAt(observed, cursor.x) + dx, 0), observed.at.length - 1);
                                  return {x : observed.at[index], y : cursor.y};
                                });

// --- Lanes

const rowHeight = 26;
/// Calls of each lane that has some, by start.
function makeLanes() {
  const rows = [];
  if (!hasTimes)
    return rows;
  D.lanes.forEach((name, lane) => {
    const list = [];
    for (let node = 0; node < nodeCount; ++node)
      if (nodes.lane[node] === lane && nodes.start[node] >= 0)
        list.push(node);
    list.sort((a, b) => nodes.start[a] - nodes.start[b]);
    if (list.length > 0)
      rows.push({name, lane, list});
  });
  return rows;
}
/// Times at which both lists of calls have one running; calls of one lane do not overlap.
function intersect(a, b) {
  const both = [];
  for (let i = 0, k = 0; i < a.length && k < b.length;) {
    const from = Math.max(nodes.start[a[i]], nodes.start[b[k]]), to = Math.min(nodes.end[a[i]], nodes.end[b[k]]);
    if (from < to)
      both.push([ from, to ]);
    nodes.end[a[i]] < nodes.end[b[k]] ? ++i : ++k;
  }
  return both;
}
const busy = list => list.reduce((sum, node) => sum + nodes.end[node] - nodes.start[node], 0);
function makeOverlaps() {
  const compute = laneRows.find(row => row.name === "compute");
  if (!compute)
    return [];
  return laneRows.filter(row => row !== compute).map(row => {
    const both = intersect(compute.list, row.list), length = both.reduce((sum, [ from, to ]) => sum + to - from, 0);
    return {name : row.name, both, part : length / Math.max(busy(row.list), 1)};
  });
}
laneRows = makeLanes();
overlaps = makeOverlaps();
byId("lanes").setAttribute("height",
                           top + bottom + rowHeight * Math.max(laneRows.length + (overlaps.length > 0 ? 1 : 0), 1));
byId("overlap").textContent =
    !hasTimes
        ? "No step has run."
        : "Busy: " + laneRows.map(row => row.name + " " + percent(busy(row.list) / Math.max(lastTime, 1))).join(", ") +
              " of " + time(lastTime) + ". " +
              (overlaps.length === 0
                   ? "All calls are on one lane."
                   : overlaps.map(o => percent(o.part) + " of the time of " + o.name + " passes while compute runs")
                             .join("; ") +
                         ".");

function laneAt(y) { return Math.floor((y - top) / rowHeight); }
/// The last call of the row that starts at or before the time.
function spanAt(row, x) {
  let low = 0, high = row.list.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    nodes.start[row.list[middle]] <= x ? low = middle : high = middle;
  }
  return low;
}
function spanText(node) {
  return nodeText(node) + ", " + D.components[D.tags[nodes.tag[node]][1]] + ": from " + time(nodes.start[node]) +
         " to " + time(nodes.end[node]) + " (" + time(nodes.end[node] - nodes.start[node]) + "), call " + node + ".";
}
const lanesChart = new Chart(
    "lanes", views.time,
    (chart, g) => {
      g.textBaseline = "middle";
      laneRows.forEach((row, number) => {
        const y = top + number * rowHeight;
        g.fillStyle = css("--faint");
        g.textAlign = "right";
        g.fillText(row.name, left - 6, y + rowHeight / 2);
        let painted = -1;
        for (const node of row.list) {
          if (nodes.end[node] < chart.view.from || nodes.start[node] > chart.view.to)
            continue;
          const from = Math.max(chart.toX(nodes.start[node]), left),
                to = Math.min(chart.toX(nodes.end[node]), chart.width - right);
          if (to < painted)
            continue;
          const width = Math.max(to - from - (to - from > 4 ? 0.5 : 0), 0.7);
          g.fillStyle = colors[D.tags[nodes.tag[node]][1]];
          g.fillRect(from, y + 3, width, rowHeight - 6);
          painted = from + width / 2;
        }
      });
      if (overlaps.length > 0) {
        const y = top + laneRows.length * rowHeight;
        g.fillStyle = css("--faint");
        g.textAlign = "right";
        g.fillText("at once", left - 6, y + rowHeight / 2);
        g.fillStyle = css("--second");
        for (const {both} of overlaps)
          for (const [from, to] of both) {
            if (to < chart.view.from || from > chart.view.to)
              continue;
            const x = Math.max(chart.toX(from), left);
            g.fillRect(x, y + 8, Math.max(Math.min(chart.toX(to), chart.width - right) - x, 0.7), rowHeight - 16);
          }
      }
      drawAxis(chart, g, time);
    },
    (x, y) => {
      const row = laneRows[laneAt(y)];
      if (!row)
        return "";
      const node = row.list[spanAt(row, x)];
      return nodes.start[node] <= x && x <= nodes.end[node] ? spanText(node)
                                                            : row.name + " is idle at " + time(x) + ".";
    },
    (cursor, dx, dy) => {
      if (laneRows.length === 0)
        return cursor;
      const number = Math.min(Math.max(laneAt(cursor.y) + dy, 0), laneRows.length - 1), row = laneRows[number];
      const index = Math.min(Math.max(spanAt(row, cursor.x) + dx, 0), row.list.length - 1), node = row.list[index];
      return {x : (nodes.start[node] + nodes.end[node]) / 2, y : top + (number + 0.5) * rowHeight};
    });

// --- The arena

const arenaChart = new Chart(
    "arena", views.issue,
    (chart, g) => {
      const bytes = Math.max(facts().arena || 0, 1);
      drawBytesAxis(chart, g, bytes);
      if (rects.length === 0) {
        g.fillStyle = css("--faint");
        g.textAlign = "left";
        g.fillText("No slot of this space has an offset.", left + 10, top + 20);
        return;
      }
      for (const {occupant, first, last} of rects) {
        if (last + 1 < chart.view.from || first > chart.view.to)
          continue;
        const x = Math.max(chart.toX(first), left),
              width = Math.max(Math.min(chart.toX(last + 1), chart.width - right) - x, 2);
        const height = occupant.bytes / bytes * chart.plotHeight,
              y = top + chart.plotHeight * (1 - (occupant.offset + occupant.bytes) / bytes);
        g.fillStyle = colors[componentOf(occupant)];
        g.fillRect(x, y, width, Math.max(height - (height > 3 ? 0.6 : 0), 0.2));
      }
      drawMark(chart, g, facts().peak_node + 0.5, "most is live here");
      drawAxis(chart, g, value => "call " + Math.round(value));
    },
    (x, y) => {
      const node = Math.min(Math.floor(x), nodeCount - 1),
            offset = (1 - (y - top) / arenaChart.plotHeight) * (facts().arena || 0);
      const hit = rects.find(({occupant, first, last}) => first <= node && node <= last && occupant.offset <= offset &&
                                                          offset < occupant.offset + occupant.bytes);
      if (!hit)
        return "Call " + node + ", offset " + size(Math.max(Math.round(offset), 0)) + ": no slot.";
      const {occupant} = hit;
      return tagText(occupant.tag) + ", " + D.components[componentOf(occupant)] + ": " + size(occupant.bytes) +
             " at offset " + occupant.offset + ", calls " + livesText(occupant) +
             (occupant.where === undefined ? "" : ", " + D.texts[occupant.where]) + ".";
    },
    (cursor, dx, dy) => {
      const node = Math.min(Math.max(Math.floor(cursor.x) + dx, 0), nodeCount - 1),
            bytes = Math.max(facts().arena || 0, 1);
      const toY = occupant => top + arenaChart.plotHeight * (1 - (occupant.offset + occupant.bytes / 2) / bytes);
      if (dy === 0)
        return {x : node + 0.5, y : cursor.y};
      // The next slot above or below.
      const ys = rects.filter(({first, last}) => first <= node && node <= last)
                     .map(({occupant}) => toY(occupant))
                     .sort((a, b) => (a - b) * dy);
      const next = ys.find(y => (y - cursor.y) * dy > 0.01);
      return {x : node + 0.5, y : next === undefined ? cursor.y : next};
    });

// --- Tables

function addRow(table, cells, isHead) {
  const row = table.insertRow();
  for (const cell of cells) {
    const isNumber = typeof cell === "object";
    const element = document.createElement(isHead ? "th" : "td");
    element.textContent = isNumber ? cell.number : cell;
    if (isNumber)
      element.className = "number";
    row.append(element);
  }
  return row;
}
const num = number => ({number});
function isLiveAt(occupant, node) {
  for (let i = 0; i < occupant.lives.length; i += 2)
    if (occupant.lives[i] <= node && node <= occupant.lives[i + 1])
      return true;
  return false;
}
function liveAtPeak() {
  return D.occupants.filter(o => o.space === space && isLiveAt(o, facts().peak_node)).sort((a, b) => b.bytes - a.bytes);
}
function fillLive(limit) {
  const table = byId("live"), live = liveAtPeak();
  table.textContent = "";
  addRow(table,
         [ num("bytes"), num("share"), "op", "component", "phase", num("layer"), num("offset"), "calls", "where" ],
         true);
  for (const occupant of live.slice(0, limit)) {
    const [op, component, phase, layer] = D.tags[occupant.tag];
    addRow(table, [
      num(size(occupant.bytes)), num(percent(occupant.bytes / facts().live)), op, D.components[component],
      D.phases[phase], num(layer < 0 ? "" : layer),
      num(occupant.buffer                 ? "buffer"
          : occupant.offset === undefined ? ""
                                          : occupant.offset),
      livesText(occupant), occupant.where === undefined ? "" : D.texts[occupant.where]
    ]);
  }
  table.dataset.live = live.length;
  const rest = live.slice(limit), more = byId("more");
  more.hidden = rest.length === 0;
  more.textContent = "Show " + rest.length + " more, together " + size(rest.reduce((sum, o) => sum + o.bytes, 0));
  more.onclick = () => fillLive(live.length);
}
function fillSums() {
  const f = facts();
  const components = byId("components"), phases = byId("phases");
  components.textContent = phases.textContent = "";
  addRow(components, [ "component", num("at the peak"), num("its own peak") ], true);
  D.components.forEach((name, kind) => {
    if (f.component_peaks[kind] > 0)
      addRow(components, [ name, num(size(f.at_peak[kind])), num(size(f.component_peaks[kind])) ]);
  });
  addRow(phases, [ "phase", num("peak of live bytes") ], true);
  D.phases.forEach((name, phase) => addRow(phases, [ name, num(size(f.phase_peaks[phase])) ]));
}
function fillNumbers() {
  const f = facts(), list = byId("numbers");
  list.textContent = "";
  const add = (name, value) => {
    const box = document.createElement("div"), term = document.createElement("dt"), text = document.createElement("dd");
    term.textContent = name;
    text.textContent = value;
    box.append(term, text);
    list.append(box);
  };
  add("planned peak", size(f.planned));
  add("observed peak", f.observed === null ? "no step has run" : size(f.observed));
  add("lower bound", size(f.lower_bound));
  add("arena + buffers", size(f.arena) + " + " + size(f.buffers));
  if (f.planned !== null && f.lower_bound)
    add("over the lower bound", percent(f.planned / f.lower_bound - 1));
  add("most live at a call", size(f.live));
  if (f.arena)
    add("fragmentation of the arena", percent(1 - Math.min(f.live - f.buffers, f.arena) / f.arena));
  if (f.limit !== null)
    add("budget", size(f.limit));
  if (D.host_fences !== null)
    add("host fences", D.host_fences);
  add("ranks", D.ranks);
  add("calls", nodes.lane.filter(lane => lane >= 0).length);
}

function choose(number) {
  if (space !== number) {
    space = number;
    withBuffers = (facts().arena || 0) >= 0.15 * facts().live; // Or what comes and goes would be a line on top.
  }
  const f = facts();
  planned = plannedCurve(space);
  observed = observedCurve(space);
  most = 1.06 * Math.max(planned.peak, shown(f.planned) || 0, hasTimes ? observed.peak : 0, shown(f.observed) || 0, 1);
  rects = [];
  for (const occupant of D.occupants)
    if (occupant.space === space && occupant.offset !== undefined)
      for (let i = 0; i < occupant.lives.length; i += 2)
        rects.push({occupant, first : occupant.lives[i], last : occupant.lives[i + 1]});
  const largest = liveAtPeak().filter(o => !o.buffer).slice(0, 3).map(o => tagText(o.tag) + " " + size(o.bytes));
  const title = "The peak is " + size(f.planned === null ? f.live : f.planned) + " at " +
                tagText(nodes.tag[f.peak_node]) +
                (largest.length === 0 ? "" : ": the largest are " + largest.join(", ")) +
                (f.buffers > 0 ? ", with " + size(f.buffers) + " that outlive the step." : ".");
  byId("title").textContent = document.title = title;
  byId("title").dataset.peakBytes = f.planned === null ? f.live : f.planned;
  byId("subtitle").textContent = D.input + ", " + f.name + " memory of " +
                                 (D.ranks === 1 ? "the rank" : "rank 0 of " + D.ranks) +
                                 (D.step === null ? ", before the first step" : ", step " + D.step);
  fillNumbers();
  fillLive(25);
  fillSums();
  const used = new Set(D.occupants.filter(o => o.space === space)
                           .map(componentOf)
                           .concat(nodes.tag.filter(tag => tag >= 0).map(tag => D.tags[tag][1])));
  byId("keys").textContent = "";
  D.components.forEach((name, kind) => {
    if (!used.has(kind))
      return;
    const key = document.createElement("span"), swatch = document.createElement("i");
    key.className = "key";
    swatch.style.background = colors[kind];
    key.append(swatch, name);
    byId("keys").append(key);
  });
  byId("buffers").setAttribute("aria-pressed", withBuffers);
  const hidden = withBuffers ? 0 : f.buffers;
  for (const button of byId("spaces").children)
    button.setAttribute("aria-pressed", Number(button.dataset.space) === space);
  Object.assign(byId("planned").dataset,
                {points : planned.at.length, peakBytes : planned.peak + hidden, plannedBytes : f.planned});
  Object.assign(
      byId("observed").dataset,
      {points : hasTimes ? observed.at.length : 0, peakBytes : observed.peak + hidden, observedBytes : f.observed});
  Object.assign(byId("arena").dataset, {rectangles : rects.length});
  Object.assign(byId("lanes").dataset,
                {spans : laneRows.reduce((sum, row) => sum + row.list.length, 0), rows : laneRows.length});
  drawAll();
}
function drawAll() {
  for (const view of Object.values(views))
    for (const chart of view.charts)
      chart.draw();
}

const spacesWithBytes = D.spaces.map((_, number) => number).filter(number => D.spaces[number].live > 0);
for (const number of spacesWithBytes) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = D.spaces[number].name;
  button.dataset.space = number;
  button.onclick = () => choose(number);
  byId("spaces").append(button);
}
byId("buffers").onclick = () => {
  withBuffers = !withBuffers;
  choose(space);
};
byId("spaces").hidden = spacesWithBytes.length < 2;
for (const bar of document.querySelectorAll("[data-zoom]")) {
  const view = views[bar.dataset.zoom];
  for (const [text, run] of [[ "Zoom in", () => view.zoom(0.5) ], [ "Zoom out", () => view.zoom(2) ],
                             [ "Left", () => view.move(-0.5) ], [ "Right", () => view.move(0.5) ],
                             [ "All", () => view.set(0, view.full) ]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.onclick = run;
    bar.append(button);
  }
}
choose(spacesWithBytes.length > 0 ? spacesWithBytes[0] : 0);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
let resizing = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(drawAll);
});
document.body.dataset.drawn = "true";
