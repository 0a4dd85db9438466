// The allocator's state: segments cut into blocks at one moment, and a slider along the log.

import {
  arraysOf, element, newestWins, placeTip, sizedCanvas, themeOf, watchTheme,
} from "./canvas-kit.js";
import { ONE_HEIGHT, cellUnder, paintSegments, writeSizes } from "./segment-paint.js";
import { MERGED, layRows, withTones } from "./segment-rows.js";
import { stripKey, stripOf } from "./segment-strip.js";
import { figuresOf, holdersOf, legendOf, tipLines } from "./segment-words.js";

const PLAY_FRAMES = 300; // the whole log
const FRAME_MS = 60;

function render({ model, el }) {
  const root = element("div", "maiprof mp-segments");
  const header = element("div", "mp-header");
  const title = element("strong", "mp-title");
  const devices = element("select", "mp-select");
  devices.setAttribute("aria-label", "Memory of");
  const order = element("select", "mp-select");
  order.setAttribute("aria-label", "Order of the segments");
  for (const [value, text] of [["address", "by address"], ["size", "largest first"],
    ["unused", "most stranded first"]]) {
    const option = element("option", "", text);
    option.value = value;
    order.append(option);
  }
  header.append(title, devices, order);
  const stripHost = element("div", "mp-strip");
  const slider = element("input", "mp-slider");
  Object.assign(slider, { type: "range", min: "0", step: "1" });
  slider.setAttribute("aria-label", "Moment, in events of the log");
  const controls = element("div", "mp-header");
  const buttons = Object.fromEntries([
    ["back", "◂ event", "Previous event"], ["on", "event ▸", "Next event"],
    ["play", "Play", "Play the log"],
    ["refused", "Out of memory", "The largest request that failed"], ["peak", "Peak", "Where most was allocated"],
    ["unused", "Most unused", "Where most of what is reserved lay unused"],
    ["end", "End", "The end of the log"],
  ].map(([name, text, label]) => {
    const button = element("button", "mp-button", text);
    button.type = "button";
    button.title = label;
    controls.append(button);
    return [name, button];
  }));
  const key = element("span", "mp-legend");
  controls.append(key);
  const moment = element("p", "mp-moment");
  const scroller = element("div", "mp-scroll");
  const rowsHost = element("div", "mp-stage mp-rows");
  scroller.append(rowsHost);
  const legend = element("div", "mp-legend mp-legend-left");
  const oneTitle = element("p", "mp-notices");
  const oneHost = element("div", "mp-stage mp-rows");
  const chosenLine = element("div", "mp-panel mp-header");
  const figures = element("div", "mp-figures");
  const holders = element("div");
  const tip = element("div", "mp-tip");
  tip.hidden = true;
  const status = element("p", "mp-status");
  status.setAttribute("role", "status");
  const empty = element("div", "mp-empty");
  const body = [stripHost, slider, controls, moment, scroller, legend, oneTitle, oneHost,
    chosenLine, figures, holders];
  root.append(header, ...body, tip, status, empty);
  el.append(root);

  const viewId = Math.random().toString(36).slice(2);
  const tips = new Map(); // what Python said of blocks
  const themed = () => withTones(themeOf(root), model.get("about").palette);
  let theme = themed();
  let wanted = model.get("place").state ?? 0;
  let focus = null;
  let picture = null;
  let one = null; // the segment drawn large, as a picture of its own
  let laid = null;
  let laidOne = null;
  let hovered = null; // {of: picture, cell}
  let pointer = null;
  let playing = 0;
  let frame = 0;
  const about = () => model.get("about");
  const attached = () => {
    theme = themed(); // notebooks render before they attach, when styles are not known yet
    key.replaceChildren(...stripKey(theme, about().curve));
    ask(false);
  };
  const stage = sizedCanvas(rowsHost, 40, attached);
  const oneStage = sizedCanvas(oneHost, ONE_HEIGHT, () => lay());
  const { canvas } = stage;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  for (const each of [canvas, oneStage.canvas]) each.style.touchAction = "auto";
  const strip = stripOf(stripHost, () => ({
    curve: about().curve, last: about().last ?? 0, state: wanted, theme,
    refused: about().refused ?? [], alarm: about().alarm?.[theme.dark ? 1 : 0],
  }), (state) => { stop(); look(state); });
  const requests = newestWins((request) => model.send({ kind: "state", view: viewId, ...request }));

  function ask(gesture) {
    if (about().empty || stage.width === 0) return;
    requests.ask({
      state: wanted, order: order.value, focus, gesture,
      columns: Math.min(4096, Math.round(stage.width * stage.ratio)),
    });
  }

  function look(state) {
    const next = Math.min(Math.max(Math.round(state), 0), about().last ?? 0);
    if (next === wanted) return;
    wanted = next;
    marked();
    ask(true);
  }

  function marked() {
    const last = about().last ?? 0;
    slider.value = String(wanted);
    buttons.back.disabled = wanted <= 0;
    for (const button of [buttons.on, buttons.end]) button.disabled = wanted >= last;
    strip.draw();
  }

  function play() {
    if (playing) {
      stop();
      return;
    }
    const last = about().last ?? 0;
    const step = Math.max(1, Math.round(last / PLAY_FRAMES));
    if (wanted >= last) look(0);
    buttons.play.textContent = "Pause";
    playing = setInterval(() => {
      if (requests.busy) return;
      if (wanted >= last) stop();
      else look(wanted + step);
    }, FRAME_MS);
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    buttons.play.textContent = "Play";
  }

  function lay() {
    if (!picture || stage.width === 0) return;
    laid = layRows(picture, stage.width);
    resize(stage, laid.height);
    for (const part of [rowsHost, legend]) hold(part);
    laidOne = one && oneStage.width ? layOne() : null;
    redraw();
  }

  function layOne() {
    const found = layRows({ ...one, groups: [{ ...one.group, title: "" }] }, oneStage.width);
    for (const part of [...found.segments, ...found.cells]) Object.assign(part, { y: 0, h: ONE_HEIGHT });
    return { ...found, heads: [] };
  }

  /** Keeps a part as high as it ever was, so that what is beneath stays while one scrubs. */
  function hold(part) {
    const high = Math.max(parseFloat(part.style.minHeight) || 0, part.offsetHeight);
    part.style.minHeight = `${high}px`;
  }

  function resize(on, height) {
    if (on.height === height) return;
    on.height = height;
    on.canvas.height = Math.round(height * on.ratio);
    on.canvas.style.height = `${height}px`;
  }

  function redraw() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function draw() {
    frame = 0;
    if (!picture || !laid) return;
    const marks = { chosen: model.get("selected"), hovered };
    paintSegments(stage, laid, picture, theme, marks);
    if (laidOne) {
      paintSegments(oneStage, laidOne, one, theme, marks);
      writeSizes(oneStage.context, laidOne, one, theme);
    }
    root.dataset.painted = String(Number(root.dataset.painted ?? 0) + 1);
  }

  function under(event, rows, of) {
    const found = cellUnder(event, rows);
    return found && { of, ...found };
  }

  function hover(event, rows, of) {
    const found = under(event, rows, of);
    if (found?.cell !== hovered?.cell || found?.of !== hovered?.of) {
      hovered = found;
      redraw();
    }
    event.currentTarget.style.cursor = found ? "pointer" : "default";
    pointer = { x: event.clientX, y: event.clientY };
    tip.hidden = !found;
    if (found) fillTip();
  }

  function fillTip() {
    const { of, cell } = hovered;
    const single = of.kind[cell] !== MERGED && of.block[cell] >= 0;
    tip.replaceChildren(...tipLines(hovered, single ? blockTip(of.block[cell]) : null));
    placeTip(tip, root, pointer.x, pointer.y);
  }

  function blockTip(block) {
    if (!tips.has(block)) {
      tips.set(block, null);
      model.send({ kind: "block", view: viewId, block });
    }
    return tips.get(block);
  }

  function choose(event, rows, of) {
    const found = under(event, rows, of);
    if (!found) return;
    focus = of.address[found.segment];
    const single = of.kind[found.cell] !== MERGED && of.block[found.cell] >= 0;
    model.send({ kind: "choose", view: viewId, block: single ? of.block[found.cell] : null });
    ask(false);
  }

  function unhover() {
    tip.hidden = true;
    if (!hovered) return;
    hovered = null;
    redraw();
  }

  function received(message, buffers) {
    if (message.view !== viewId) return;
    if (message.kind === "block") {
      tips.set(message.block, message);
      if (hovered && hovered.of.block[hovered.cell] === message.block && !tip.hidden) fillTip();
    } else if (message.kind === "state" && requests.answered(message.id)) {
      if (!message.arrays) return;
      const arrays = arraysOf(message.arrays, buffers);
      const part = (prefix) => Object.fromEntries(Object.entries(arrays)
        .filter(([name]) => name.startsWith("one_") === (prefix === "one_"))
        .map(([name, values]) => [name.slice(prefix.length), values]));
      picture = { ...message, ...part("") };
      one = message.one ? { ...part("one_"), ...message.one } : null;
      if (one) one.group = { segments: 1, row_bytes: one.segment_bytes[0], alone: true };
      unhover();
      say();
      markStale();
      lay();
    }
  }

  function say() {
    moment.textContent = picture.moment;
    slider.setAttribute("aria-valuetext", picture.moment);
    canvas.setAttribute("aria-label", `Segments of the allocator. ${picture.moment} ${picture.in_words}`);
    oneTitle.textContent = one?.title ?? "No segment is held at this moment.";
    oneHost.hidden = !one;
    figures.replaceChildren(...figuresOf(picture.figures));
    showLegend();
  }

  function showLegend() {
    legend.replaceChildren(...legendOf(picture, theme));
  }

  function showChosen() {
    const chosen = model.get("selected");
    chosenLine.hidden = !chosen.text;
    chosenLine.replaceChildren(element("span", "", chosen.text ?? ""));
    const add = (text, action) => {
      const button = element("button", "mp-button", text);
      button.type = "button";
      button.addEventListener("click", action);
      chosenLine.append(button);
    };
    if (Number.isInteger(chosen.go_to)) add("Go to where it is made", () => look(chosen.go_to));
    add("Clear", () => model.send({ kind: "choose", view: viewId, block: null }));
    redraw();
  }

  function showHolders() {
    const found = model.get("holders");
    markStale();
    holders.hidden = !found.rows?.length;
    if (holders.hidden) return;
    const choose = (stack) => model.send({ kind: "stack", view: viewId, stack });
    holders.replaceChildren(...holdersOf(found, choose));
  }

  /** The holders come once scrubbing rests: until then they are those of another moment. */
  function markStale() {
    holders.classList.toggle("mp-stale", model.get("holders").state !== picture?.state);
  }

  function described() {
    stop();
    theme = themed();
    tips.clear();
    focus = null;
    picture = null;
    for (const part of [rowsHost, legend]) part.style.minHeight = "";
    const now = about();
    title.textContent = now.title;
    for (const part of [...body, order]) part.hidden = Boolean(now.empty);
    empty.replaceChildren();
    if (now.empty) {
      empty.append(element("p", "", now.empty.sentence));
      for (const way of now.empty.ways) {
        empty.append(element("p", "", way.text), element("pre", "mp-code", way.code));
      }
    }
    devices.hidden = now.devices.length < 2;
    devices.replaceChildren(...now.devices.map((text, i) => {
      const option = element("option", "", text);
      option.value = String(i);
      return option;
    }));
    devices.value = String(now.device ?? 0);
    const still = now.still || !now.last; // a snapshot without a log is one moment
    for (const part of [stripHost, slider, controls]) part.hidden = Boolean(now.empty) || still;
    buttons.refused.hidden = !now.refused?.length;
    buttons.refused.title = now.refused_text ?? "";
    slider.max = String(now.last ?? 0);
    wanted = model.get("place").state ?? 0;
    key.replaceChildren(...stripKey(theme, now.curve));
    showChosen();
    showHolders();
    marked();
    ask(false);
    if (now.empty) root.dataset.painted = "1";
  }

  function followed() {
    stop();
    wanted = model.get("place").state;
    marked();
    ask(false);
  }

  function retheme() {
    root.classList.toggle("mp-dark", model.get("theme") === "dark");
    root.classList.toggle("mp-light", model.get("theme") === "light");
    theme = themed();
    key.replaceChildren(...stripKey(theme, about().curve));
    if (picture) showLegend();
    strip.draw();
    redraw();
  }

  function showStatus() {
    status.textContent = model.get("status");
    status.hidden = !status.textContent;
  }

  function keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => look(wanted - 1),
      ArrowRight: () => look(wanted + 1),
      Home: () => look(0),
      End: () => look(about().last ?? 0),
      " ": play,
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  canvas.addEventListener("keydown", keyed);
  for (const [node, rows, of] of [
    [canvas, () => laid, () => picture], [oneStage.canvas, () => laidOne, () => one],
  ]) {
    node.addEventListener("pointermove", (event) => hover(event, rows(), of()));
    node.addEventListener("pointerleave", unhover);
    node.addEventListener("click", (event) => choose(event, rows(), of()));
  }
  slider.addEventListener("input", () => { stop(); look(Number(slider.value)); });
  slider.addEventListener("keydown", (event) => event.stopPropagation());
  order.value = model.get("order");
  order.addEventListener("change", () => ask(false));
  devices.addEventListener("change", () => {
    model.send({ kind: "device", view: viewId, device: Number(devices.value) });
  });
  const jumps = {
    back: () => wanted - 1, on: () => wanted + 1, peak: () => about().peak, refused: () => about().opening,
    unused: () => about().most_unused, end: () => about().last,
  };
  for (const [name, to] of Object.entries(jumps)) {
    buttons[name].addEventListener("click", () => { stop(); look(to()); });
  }
  buttons.play.addEventListener("click", play);
  const listeners = {
    "msg:custom": received,
    "change:about": described,
    "change:place": followed,
    "change:selected": showChosen,
    "change:holders": showHolders,
    "change:theme": retheme,
    "change:status": showStatus,
  };
  for (const [event, listener] of Object.entries(listeners)) model.on(event, listener);
  const stopTheme = watchTheme(retheme);
  retheme();
  described();
  showStatus();

  return () => {
    for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
    stop();
    stopTheme();
    for (const part of [stage, oneStage, strip, requests]) part.stop();
    cancelAnimationFrame(frame);
  };
}

export default { render };
