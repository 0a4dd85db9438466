// The active memory timeline: live allocations as stacked bands, drawn column by column.

import {
  addGestures, arraysOf, bytesText, byteTicks, drawAxes, durationText, element, newestWins,
  numberTicks, sizedCanvas, themeOf, timeTicks, watchTheme,
} from "./canvas-kit.js";
import {
  FIRST_BAND, REST, bandColours, highestOf, layBands, paintBands,
} from "./memory-bands.js";

const MARGIN = { left: 62, right: 14, top: 22, bottom: 38 };

function render({ model, el }) {
  const root = element("div", "maiprof mp-memory");
  const header = element("div", "mp-header");
  const title = element("strong", "mp-title");
  const devices = element("select", "mp-select");
  devices.setAttribute("aria-label", "Memory of");
  const reservedBox = element("label", "mp-check");
  const reservedOn = element("input");
  reservedOn.type = "checkbox";
  reservedOn.checked = true;
  reservedBox.append(reservedOn, " reserved");
  const reset = element("button", "mp-button", "Whole recording");
  reset.type = "button";
  header.append(title, devices, reservedBox, reset);
  const notices = element("p", "mp-notices");
  const stageHost = element("div", "mp-stage");
  const tip = element("div", "mp-tip");
  tip.hidden = true;
  const legend = element("div", "mp-legend");
  const panel = element("section", "mp-panel");
  panel.hidden = true;
  const status = element("p", "mp-status");
  status.setAttribute("role", "status");
  const empty = element("div", "mp-empty");
  root.append(header, notices, stageHost, legend, panel, status, empty);
  el.append(root);

  const viewId = Math.random().toString(36).slice(2);
  let theme = themeOf(root);
  let shown = model.get("window_us"); // [start, end] in us of the axis
  let picture = null;
  let laid = null;
  let sheet = null;
  let highest = 1;
  let hovered = null;
  let pointer = null;
  let brushed = null;
  let frame = 0;
  const ours = new Set(); // windows sent by this view, to tell an echo from a wish
  const stacks = new Map();
  const key = ([low, high]) => `${Math.round(low * 1e3)}|${Math.round(high * 1e3)}`;
  const about = () => model.get("about");
  const stage = sizedCanvas(stageHost, model.get("height"), () => {
    theme = themeOf(root); // notebooks render before they attach, when styles are not known yet
    ask(false);
  });
  stageHost.append(tip);
  const canvas = stage.canvas;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");

  const requests = newestWins((request) => model.send({ kind: "picture", view: viewId, ...request }));
  const plot = () => ({
    left: MARGIN.left,
    top: MARGIN.top,
    width: Math.max(10, stage.width - MARGIN.left - MARGIN.right),
    height: Math.max(10, stage.height - MARGIN.top - MARGIN.bottom),
  });

  function ask(gesture) {
    if (about().empty || stage.width === 0) return;
    if (gesture) {
      ours.add(key(shown));
      if (ours.size > 64) ours.delete(ours.values().next().value);
    }
    requests.ask({
      start_us: shown[0], end_us: shown[1], gesture,
      columns: Math.min(4096, Math.round(plot().width * stage.ratio)),
    });
  }

  function look(wanted) {
    if (about().axis === "state") return;
    shown = wanted;
    hovered = null;
    tip.hidden = true;
    redraw();
    ask(true);
  }

  function lay() {
    if (!picture) return;
    highest = highestOf(picture, reservedOn.checked);
    laid = layBands(picture, Math.round(plot().height * stage.ratio), highest);
    paint();
  }

  function paint() {
    if (!laid) return;
    const chosen = model.get("selected");
    const lit = chosen && (chosen.row !== undefined || chosen.stack >= 0) ? chosen : null;
    sheet = paintBands(laid, bandColours(picture, theme, lit, about().axis !== "state"));
    redraw();
  }

  function redraw() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function draw() {
    frame = 0;
    const { context, ratio } = stage;
    const area = plot();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, stage.width, stage.height);
    if (!picture || !sheet) return;
    reset.disabled = key(shown) === key(about().extent_us);
    const width = shown[1] - shown[0];
    const flat = !(width > 0);
    const x = (us) => (flat ? area.left : area.left + ((us - shown[0]) / width) * area.width);
    const y = (bytes) => area.top + area.height * (1 - bytes / highest);
    const axis = about().axis;
    const count = Math.max(2, Math.floor(area.width / 90));
    const across = flat || axis === "state" ? { unit: "", ticks: [] }
      : axis === "order" ? numberTicks(shown[0] * 1e3, shown[1] * 1e3, count)
        : timeTicks(shown[0], shown[1], count);
    if (axis === "order") across.ticks.forEach((t) => { t.value /= 1e3; });
    const up = byteTicks(highest, 5);
    const unit = across.unit ? ` (${across.unit})` : "";
    drawAxes(context, area, { x, y }, theme, {
      x: across, y: up, xTitle: about().x_title + unit, yTitle: `memory (${up.unit})`,
    });
    context.save();
    context.beginPath();
    context.rect(area.left, area.top, area.width, area.height);
    context.clip();
    const [from, to] = flat ? [area.left, area.left + area.width]
      : [x(picture.from_us), x(picture.to_us)];
    drawUnrecorded(context, area, from, to);
    context.imageSmoothingEnabled = false;
    context.drawImage(sheet, from, area.top, to - from, area.height);
    drawHovered(context, area, from, to);
    if (reservedOn.checked) drawReserved(context, from, to, y);
    context.restore();
    drawPeak(context, area, x, y, flat);
    drawBrush(context, area);
  }

  function drawUnrecorded(context, area, from, to) {
    const step = (to - from) / laid.columns;
    context.fillStyle = theme.dark ? "rgba(255,255,255,0.05)" : "rgba(0,0,0,0.045)";
    let start = -1;
    let seen = 0;
    for (let c = 0; c <= laid.columns; c += 1) {
      const blank = c < laid.columns && Number.isNaN(picture.allocated_bytes[c]);
      seen += c < laid.columns && !blank ? 1 : 0;
      if (blank && start < 0) start = c;
      if (!blank && start >= 0) {
        context.fillRect(from + start * step, area.top, (c - start) * step, area.height);
        if ((c - start) * step > 110) {
          label(context, "not recorded", from + ((start + c) / 2) * step, area.top + 12, "center");
          context.fillStyle = theme.dark ? "rgba(255,255,255,0.05)" : "rgba(0,0,0,0.045)";
        }
        start = -1;
      }
    }
    if (!seen) {
      label(context, "The memory log does not cover the time shown here",
        area.left + area.width / 2, area.top + area.height / 2, "center");
    }
  }

  function label(context, text, x, y, align) {
    context.font = `11px ${theme.font}`;
    context.textAlign = align;
    context.textBaseline = "middle";
    context.fillStyle = theme.dim;
    context.fillText(text, x, y);
  }

  function drawHovered(context, area, from, to) {
    if (hovered === null || hovered < REST) return;
    const { ids, columns, height } = laid;
    const step = (to - from) / columns;
    const tall = area.height / height;
    const [first, end] = hovered === REST ? [0, columns]
      : [picture.first_column[hovered - FIRST_BAND], picture.end_column[hovered - FIRST_BAND]];
    context.fillStyle = theme.dark ? "rgba(255,255,255,0.38)" : "rgba(0,0,0,0.28)";
    for (let c = first; c < end; c += 1) {
      const low = ids.indexOf(hovered, c * height);
      if (low < 0 || low >= (c + 1) * height) continue;
      let high = low;
      while (high < (c + 1) * height && ids[high] === hovered) high += 1;
      const bottom = area.top + area.height - (low - c * height) * tall;
      context.fillRect(from + c * step, bottom - (high - low) * tall, step, (high - low) * tall);
    }
  }

  function drawReserved(context, from, to, y) {
    const step = (to - from) / laid.columns;
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.5;
    context.setLineDash([5, 3]);
    context.beginPath();
    let open = false;
    for (let c = 0; c < laid.columns; c += 1) {
      const bytes = picture.reserved_bytes[c];
      if (Number.isNaN(bytes)) {
        open = false;
      } else {
        const at = y(bytes);
        if (open) context.lineTo(from + c * step, at);
        else context.moveTo(from + c * step, at);
        context.lineTo(from + (c + 1) * step, at);
        open = true;
      }
    }
    context.stroke();
    context.setLineDash([]);
  }

  function drawPeak(context, area, x, y, flat) {
    if (!picture.peak || (!flat && about().axis === "state")) return;
    const at = x(picture.from_us + picture.peak.us);
    if (at < area.left - 1 || at > area.left + area.width + 1) return;
    const text = about().axis === "state" ? picture.peak.text.replace("peak", "allocated")
      : picture.peak.text;
    const top = y(picture.peak.bytes);
    context.font = `600 11px ${theme.font}`;
    const width = context.measureText(text).width + 8;
    const fits = at + 6 + width <= area.left + area.width;
    const left = fits ? Math.max(at + 6, area.left) : at - 6 - width;
    const row = Math.max(top - 18, 2);
    context.fillStyle = `rgba(${theme.background.join(",")},0.86)`;
    context.fillRect(left, row, width, 15);
    context.fillStyle = theme.ink;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(text, left + 4, row + 8);
    if (flat) return;
    context.beginPath();
    context.moveTo(at, top);
    context.lineTo(at - 4, top - 7);
    context.lineTo(at + 4, top - 7);
    context.fill();
  }

  function drawBrush(context, area) {
    if (!brushed) return;
    const low = Math.max(Math.min(...brushed), area.left);
    const high = Math.min(Math.max(...brushed), area.left + area.width);
    context.globalAlpha = 0.22;
    context.fillStyle = theme.accent;
    context.fillRect(low, area.top, high - low, area.height);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1;
    context.strokeRect(low + 0.5, area.top + 0.5, high - low - 1, area.height - 1);
  }

  /** What lies under a point: {id, column}; null outside the plot or while stretched. */
  function under(point) {
    const area = plot();
    if (!laid || key(shown) !== key([picture.from_us, picture.to_us])) return null;
    const column = Math.floor(((point.x - area.left) / area.width) * laid.columns);
    const row = Math.floor((1 - (point.y - area.top) / area.height) * laid.height);
    if (column < 0 || column >= laid.columns || row < 0 || row >= laid.height) return null;
    return { id: laid.ids[column * laid.height + row], column };
  }

  function moment(us) {
    const axis = about().axis;
    if (axis === "order") return `event ${Math.round(us * 1e3)}`;
    return axis === "state" ? "" : durationText(us);
  }

  function lifeOf(band) {
    const start = picture.from_us + picture.start_us[band];
    const end = picture.from_us + picture.end_us[band];
    if (about().axis === "state") return "alive when the snapshot was taken";
    const begun = picture.before_log[band] ? "from before the log" : `from ${moment(start)}`;
    if (!Number.isFinite(end)) return `${begun}, alive at the end of the log`;
    if (picture.before_log[band]) return `${begun} to ${moment(end)}`;
    const lived = about().axis === "order" ? `${Math.round((end - start) * 1e3)} events`
      : durationText(end - start);
    return `${begun} to ${moment(end)}: lived ${lived}`;
  }

  function hover(point) {
    const found = point && under(point);
    const id = found ? found.id : null;
    if (id !== hovered) {
      hovered = id;
      redraw();
    }
    canvas.style.cursor = id >= FIRST_BAND ? "pointer" : "crosshair";
    if (!found || Number.isNaN(picture.allocated_bytes[found.column])) {
      tip.hidden = true;
      return;
    }
    fillTip(found);
    tip.hidden = false;
    placeTip(point);
  }

  function placeTip(point) {
    pointer = point;
    const right = point.x + 16 + tip.offsetWidth > stage.width;
    tip.style.left = `${Math.max(0, right ? point.x - tip.offsetWidth - 12 : point.x + 16)}px`;
    // inside the view's own box: notebooks clip what reaches out of an output
    const lowest = root.clientHeight - stageHost.offsetTop - tip.offsetHeight - 4;
    tip.style.top = `${Math.max(-stageHost.offsetTop, Math.min(point.y + 12, lowest))}px`;
  }

  function fillTip({ id, column }) {
    const lines = [];
    if (id >= FIRST_BAND) {
      const band = id - FIRST_BAND;
      lines.push(element("strong", "", bytesText(picture.size_bytes[band])));
      lines.push(element("div", "", lifeOf(band)));
      lines.push(element("pre", "mp-frames", stackText(picture.stack[band])));
    } else if (id === REST) {
      lines.push(element("strong", "", bytesText(picture.rest_bytes[column])));
      lines.push(element("div", "", about().rest_text));
    }
    const at = moment(picture.from_us + picture.sample_us[column]);
    const parts = [`${bytesText(picture.allocated_bytes[column])} allocated`];
    if (!Number.isNaN(picture.reserved_bytes[column])) {
      parts.push(`${bytesText(picture.reserved_bytes[column])} reserved`);
    }
    lines.push(element("div", "mp-dim", `${at ? `at ${at}: ` : ""}${parts.join(", ")}`));
    tip.replaceChildren(...lines);
  }

  function stackText(stack) {
    if (stack < 0) return "no stack was recorded";
    const known = stacks.get(stack);
    if (known === undefined) {
      stacks.set(stack, null);
      model.send({ kind: "stack", view: viewId, stack });
    }
    if (!known) return "…";
    const frames = known.frames.slice(0, 6);
    const more = known.count - frames.length;
    return frames.concat(more > 0 ? [`… ${more} more, click to see all`] : []).join("\n");
  }

  function choose(point) {
    const found = under(point);
    if (!found) return;
    tip.hidden = true;
    const row = found.id >= FIRST_BAND ? picture.allocation[found.id - FIRST_BAND] : null;
    model.send({ kind: "choose", view: viewId, row });
  }

  function showPanel() {
    const chosen = model.get("selected") ?? {};
    panel.hidden = !chosen.heading;
    if (chosen.heading) {
      const close = element("button", "mp-button", "Clear");
      close.type = "button";
      close.addEventListener("click", () => model.send({ kind: "choose", view: viewId, row: null }));
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
    legend.replaceChildren(...picture.legend.map((entry) => {
      const item = element("span", "mp-key");
      const chip = element("i", "mp-chip");
      const colour = entry.tone === null ? (entry.rest ? theme.rest : theme.grey[0])
        : theme.tones[entry.tone];
      chip.style.background = `rgb(${colour.join(",")})`;
      const text = element("span", "mp-key-text", entry.label);
      text.title = entry.title ?? entry.label;
      item.append(chip, text);
      return item;
    }));
    if (reservedOn.checked && picture.reserved_bytes.some((bytes) => !Number.isNaN(bytes))) {
      const item = element("span", "mp-key");
      item.append(element("i", "mp-dash"), element("span", "", "reserved by the allocator"));
      legend.append(item);
    }
    if (about().axis !== "state") {
      legend.append(element("span", "mp-dim",
        "Drag or wheel: zoom. Shift-drag: move. Double click: everything."));
    }
  }

  function received(message, buffers) {
    if (message.view !== viewId) return;
    if (message.kind === "stack") {
      stacks.set(message.stack, message);
      const chosen = hovered >= FIRST_BAND ? picture.stack[hovered - FIRST_BAND] : null;
      const frames = tip.querySelector(".mp-frames");
      if (chosen === message.stack && frames) {
        frames.textContent = stackText(message.stack);
        placeTip(pointer);
      }
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
    title.textContent = now.title;
    empty.replaceChildren();
    for (const part of [stageHost, legend, reservedBox, reset]) part.hidden = Boolean(now.empty);
    notices.textContent = now.notices.join(" ");
    notices.hidden = !now.notices.length;
    if (now.empty) {
      empty.append(element("p", "", now.empty.sentence));
      for (const way of now.empty.ways) {
        empty.append(element("p", "", way.text), element("pre", "mp-code", way.code));
      }
    }
    reservedBox.hidden = Boolean(now.empty) || !now.reserved;
    reset.hidden = Boolean(now.empty) || now.axis === "state";
    devices.hidden = now.devices.length < 2;
    devices.replaceChildren(...now.devices.map((text, i) => {
      const option = element("option", "", text);
      option.value = String(i);
      return option;
    }));
    devices.value = String(now.device);
  }

  function described() {
    describe();
    stacks.clear();
    shown = model.get("window_us");
    ask(false);
  }

  function followed() {
    const wanted = model.get("window_us");
    if (key(wanted) === key(shown) || ours.has(key(wanted))) return;
    shown = wanted;
    tip.hidden = true;
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
  reset.addEventListener("click", () => look(about().extent_us));
  reservedOn.addEventListener("change", () => { lay(); if (picture) showLegend(); });
  devices.addEventListener("change", () => {
    model.send({ kind: "device", view: viewId, device: Number(devices.value) });
  });
  const listeners = {
    "msg:custom": received,
    "change:about": described,
    "change:window_us": followed,
    "change:selected": showPanel,
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
    cancelAnimationFrame(frame);
  };
}

export default { render };
