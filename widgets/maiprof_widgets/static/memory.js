// The active memory timeline: live allocations as stacked bands, drawn column by column.

import {
  addGestures, arraysOf, byteTicks, drawAxes, element, newestWins, numberTicks, sizedCanvas,
  themeOf, timeTicks, watchTheme,
} from "./canvas-kit.js";
import {
  FIRST_BAND, bandColours, highestOf, layBands, owner, paintBands, paletteOf,
} from "./memory-bands.js";
import { memoryControls } from "./memory-controls.js";
import { heightZoom } from "./memory-height.js";
import {
  drawBrush, drawHovered, drawMoment, drawPeak, drawRefused, drawReserved, drawUnrecorded,
} from "./memory-marks.js";
import { memoryTip } from "./memory-tip.js";

const MARGIN = { left: 62, right: 14, top: 22, bottom: 38 };
const ON_CURVE = 3; // pixels below the outline that still count as the curve

function render({ model, el }) {
  const viewId = Math.random().toString(36).slice(2);
  const send = (content) => model.send({ view: viewId, ...content });
  const root = element("div", "maiprof mp-memory");
  const controls = memoryControls(send, {
    redrawn: () => { lay(); if (picture) showLegend(); },
    reset: () => look(about().extent_us),
  });
  const notices = element("p", "mp-notices");
  const stageHost = element("div", "mp-stage");
  const legend = element("div", "mp-legend");
  const lines = element("div", "mp-lines");
  const panel = element("section", "mp-panel");
  panel.hidden = true;
  const status = element("p", "mp-status");
  status.setAttribute("role", "status");
  const empty = element("div", "mp-empty");
  root.append(controls.header, notices, stageHost, legend, lines, panel, status, empty);
  el.append(root);

  let theme = themeOf(root);
  let shown = model.get("window_us"); // [start, end] in us of the axis
  let picture = null;
  let laid = null;
  let sheet = null;
  let bytes = [0, 1]; // at the bottom and the top of the plot
  let hovered = null;
  let brushed = null;
  let frame = 0;
  const ours = new Set(); // windows sent by this view, to tell an echo from a wish
  const key = ([low, high]) => `${Math.round(low * 1e3)}|${Math.round(high * 1e3)}`;
  const about = () => model.get("about");
  const stage = sizedCanvas(stageHost, model.get("height"), () => {
    theme = themeOf(root); // notebooks render before they attach, when styles are not known yet
    ask(false);
  });
  const tip = memoryTip(root, stageHost, (allocation) => send({ kind: "band", allocation }));
  const canvas = stage.canvas;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");

  const requests = newestWins((request) => send({ kind: "picture", ...request }));
  const plot = () => ({
    left: MARGIN.left,
    top: MARGIN.top,
    width: Math.max(10, stage.width - MARGIN.left - MARGIN.right),
    height: Math.max(10, stage.height - MARGIN.top - MARGIN.bottom),
  });
  const rows = () => Math.round(plot().height * stage.ratio);
  const taller = heightZoom(canvas, {
    plot,
    always: () => about().axis === "state",
    changed() {
      tip.hide();
      lay();
      ask(false);
    },
  });

  function ask(gesture) {
    if (about().empty || stage.width === 0) return;
    if (gesture) {
      ours.add(key(shown));
      if (ours.size > 64) ours.delete(ours.values().next().value);
    }
    requests.ask({
      start_us: shown[0], end_us: shown[1], gesture, rows: Math.round(rows() * taller.scale),
      columns: Math.min(4096, Math.round(plot().width * stage.ratio)),
    });
  }

  function look(wanted) {
    hovered = null;
    tip.hide();
    if (wanted === about().extent_us) taller.reset();
    if (about().axis !== "state") shown = wanted;
    lay();
    ask(about().axis !== "state");
  }

  function lay() {
    if (!picture) return;
    bytes = taller.range(highestOf(picture, controls.reserved));
    laid = layBands(picture, rows(), bytes);
    paint();
  }

  function paint() {
    if (!laid) return;
    sheet = paintBands(laid, bandColours(picture, theme, model.get("selected")?.row));
    redraw();
  }

  function redraw() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  const isFlat = () => !(shown[1] > shown[0]);
  const across = (area) => (us) => (isFlat() ? area.left
    : area.left + ((us - shown[0]) / (shown[1] - shown[0])) * area.width);

  function draw() {
    frame = 0;
    const { context, ratio } = stage;
    const area = plot();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, stage.width, stage.height);
    if (!picture || !sheet) return;
    controls.atWhole = key(shown) === key(about().extent_us) && taller.scale === 1;
    const flat = isFlat();
    const x = across(area);
    const [low, high] = bytes;
    const y = (value) => area.top + area.height * (1 - (value - low) / (high - low));
    drawScale(context, area, { x, y });
    context.save();
    context.beginPath();
    context.rect(area.left, area.top, area.width, area.height);
    context.clip();
    const [from, to] = flat ? [area.left, area.left + area.width]
      : [x(picture.from_us), x(picture.to_us)];
    const at = { picture, columns: laid.columns, from, to, y };
    drawUnrecorded(context, area, theme, at);
    context.imageSmoothingEnabled = false;
    context.drawImage(sheet, from, area.top, to - from, area.height);
    drawHovered(context, area, theme, { ...at, laid, hovered });
    if (controls.reserved) drawReserved(context, theme, at);
    context.restore();
    const moment = model.get("moment_us");
    if (moment !== null && moment !== undefined && !flat) {
      drawMoment(context, area, theme, x(moment));
    }
    if (!flat) {
      const colour = picture.alarm[theme.dark ? 1 : 0];
      drawRefused(context, area, theme, { refused: picture.refused, colour, x });
    }
    markPeak(context, area, { x, y, flat });
    drawBrush(context, area, theme, brushed);
  }

  function drawScale(context, area, scale) {
    const { axis, x_title: xTitle } = about();
    const count = Math.max(2, Math.floor(area.width / 90));
    const ticks = isFlat() || axis === "state" ? { unit: "", ticks: [] }
      : axis === "order" ? numberTicks(shown[0] * 1e3, shown[1] * 1e3, count)
        : timeTicks(shown[0], shown[1], count);
    if (axis === "order") ticks.ticks.forEach((t) => { t.value /= 1e3; });
    const up = byteTicks(bytes[1], 5 * taller.scale);
    up.ticks = up.ticks.filter((tick) => tick.value >= bytes[0] - 1e-9 * bytes[1]);
    const unit = ticks.unit ? ` (${ticks.unit})` : "";
    drawAxes(context, area, scale, theme, {
      x: ticks, y: up, xTitle: xTitle + unit, yTitle: `memory (${up.unit})`,
    });
  }

  function markPeak(context, area, { x, y, flat }) {
    const { peak } = picture;
    const still = about().axis === "state";
    if (!peak || (!flat && still) || peak.bytes < bytes[0] || peak.bytes > bytes[1]) return;
    drawPeak(context, area, theme, {
      peak, flat, at: x(picture.from_us + peak.us), top: y(peak.bytes),
      least: picture.refused.some(({ text }) => text) ? 20 : 2, // beneath what failed
      text: still ? peak.text.replace("peak", "allocated") : peak.text,
    });
  }

  /** What lies under a point: {id, column}; null outside the plot or while stretched. */
  function under(point) {
    const area = plot();
    if (!laid || key(shown) !== key([picture.from_us, picture.to_us])) return null;
    const column = Math.floor(((point.x - area.left) / area.width) * laid.columns);
    const row = Math.floor((1 - (point.y - area.top) / area.height) * laid.height);
    if (column < 0 || column >= laid.columns || row < 0 || row >= laid.height) return null;
    const id = laid.ids[column * laid.height + row];
    const above = Math.min(row + Math.round(ON_CURVE * stage.ratio), laid.height - 1);
    return { id, column, open: laid.ids[column * laid.height + above] === 0 };
  }

  function hover(point) {
    const found = point && under(point);
    const id = found ? found.id : null;
    if (id !== hovered) {
      hovered = id;
      redraw();
    }
    canvas.style.cursor = id >= FIRST_BAND && !found.open ? "pointer" : "crosshair";
    if (!found || Number.isNaN(picture.allocated_bytes[found.column])) tip.hide();
    else tip.show(point, { ...found, picture, about: about() });
  }

  function choose(point) {
    const found = under(point);
    if (!found) return;
    tip.hide();
    const { band, merged } = owner(picture, found.id);
    if (found.open) {
      const area = plot();
      const share = (point.x - area.left) / area.width;
      send({ kind: "moment", us: shown[0] + share * (shown[1] - shown[0]) });
    } else if (band !== undefined) {
      send({ kind: "choose", allocations: picture.allocation[band] });
    } else if (merged !== undefined && picture.merged_stack[merged] >= 0) {
      send({ kind: "choose", stacks: picture.merged_stack[merged] });
    }
  }

  function showPanel() {
    const chosen = model.get("selected") ?? {};
    panel.hidden = !chosen.heading;
    if (chosen.heading) {
      const close = element("button", "mp-button", "Clear");
      close.type = "button";
      close.addEventListener("click", () => send({ kind: "choose" }));
      const head = element("div", "mp-header");
      head.append(element("strong", "", chosen.heading), close);
      panel.replaceChildren(head, element("div", "mp-dim", chosen.facts));
      panel.append(element("pre", "mp-frames", chosen.frames));
      if (chosen.all_frames) {
        const more = element("details");
        more.append(element("summary", "mp-dim", "with native code"));
        more.append(element("pre", "mp-frames", chosen.all_frames));
        panel.append(more);
      }
    }
    paint();
  }

  function showLegend() {
    const tones = paletteOf(picture, theme);
    const keyOf = (mark, text, size) => {
      const item = element("span", "mp-key");
      const words = element("span", "mp-key-text", text);
      words.title = text;
      item.append(mark, words);
      if (size) item.append(element("span", "mp-dim", size));
      return item;
    };
    const when = about().axis === "state" ? "Live then:" : "At the peak shown:";
    const start = element("span", "mp-dim", when);
    legend.replaceChildren(start, ...picture.legend.map((entry) => {
      const chip = element("i", "mp-chip");
      const colour = entry.rest ? theme.rest : tones[entry.tone] ?? theme.grey[0];
      chip.style.background = `rgb(${colour.join(",")})`;
      return keyOf(chip, entry.label, entry.size);
    }));
    if (picture.merged_tone.length) {
      legend.append(keyOf(element("i", "mp-chip mp-hatch"), "hatched: many small ones as one"));
    }
    if (controls.reserved && picture.reserved_bytes.some((bytes) => !Number.isNaN(bytes))) {
      legend.append(keyOf(element("i", "mp-dash"), "reserved by the allocator"));
    }
    const gestures = about().axis === "state" ? " Wheel: zoom. Double click: everything."
      : " Drag or wheel: zoom; Ctrl-wheel: in height. Shift-drag: move. Double click: everything. "
        + "Click: who made it; above the bands: mark a moment.";
    lines.replaceChildren(
      ...picture.lines.map((line) => element("div", "", line)),
      element("div", "mp-dim", picture.drawn + gestures),
    );
  }

  function received(message, buffers) {
    if (message.view !== viewId) return;
    if (message.kind === "band") {
      tip.heard(message);
    } else if (message.kind === "picture" && requests.answered(message.id)) {
      if (!message.arrays) return;
      picture = { ...message, ...arraysOf(message.arrays, buffers) };
      hovered = null;
      lay();
      showLegend();
      canvas.setAttribute("aria-label", `Active memory timeline. ${message.in_words}`);
      root.dataset.painted = String(Number(root.dataset.painted ?? 0) + 1);
    }
  }

  function describe() {
    const now = about();
    controls.describe(now);
    empty.replaceChildren();
    for (const part of [stageHost, legend, lines]) part.hidden = Boolean(now.empty);
    notices.textContent = now.notices.join(" ");
    notices.hidden = !now.notices.length;
    if (now.empty) {
      empty.append(element("p", "", now.empty.sentence));
      for (const way of now.empty.ways) {
        empty.append(element("p", "", way.text), element("pre", "mp-code", way.code));
      }
    }
  }

  function described() {
    describe();
    tip.forget();
    tip.hide();
    shown = model.get("window_us");
    ask(false);
  }

  function followed() {
    const wanted = model.get("window_us");
    if (key(wanted) === key(shown) || ours.has(key(wanted))) return;
    shown = wanted;
    tip.hide();
    redraw();
    ask(false);
  }

  function retheme() {
    root.classList.toggle("mp-dark", model.get("theme") === "dark");
    root.classList.toggle("mp-light", model.get("theme") === "light");
    theme = themeOf(root);
    if (picture) showLegend();
    paint();
  }

  function showStatus() {
    status.textContent = model.get("status");
    status.hidden = !status.textContent;
  }

  addGestures(canvas, {
    plot, hover, choose, look,
    window: () => shown,
    extent: () => about().extent_us,
    brush(range) {
      brushed = about().axis === "state" ? null : range;
      redraw();
    },
  }, 0.02);
  const listeners = {
    "msg:custom": received,
    "change:about": described,
    "change:window_us": followed,
    "change:moment_us": redraw,
    "change:selected": showPanel,
    "change:lit": () => ask(false),
    "change:theme": retheme,
    "change:status": showStatus,
  };
  for (const [event, listener] of Object.entries(listeners)) model.on(event, listener);
  const stopTheme = watchTheme(retheme);
  retheme();
  describe();
  showStatus();
  showPanel();
  ask(false);

  return () => {
    for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
    stopTheme();
    stage.stop();
    requests.stop();
    controls.stop();
    cancelAnimationFrame(frame);
  };
}

export default { render };
