// Call paths as boxes: width is time (or bytes, where the picture's unit says so), callers above
// callees. Click: look into; Escape: back.

import { bytesText, durationText, element, mix, sizedCanvas, themeOf, watchTheme } from "./canvas-kit.js";
import { boxesOf, matching, onlyCallee, pathTo, shortName, treeOf } from "./icicle-tree.js";

const ROW = 20;
const MOST_PIXELS = 560; // then the boxes scroll
const KINDS = [
  ["own", "Python, your code", 1],
  ["python", "Python, libraries", 9],
  ["operator", "operators", 0],
  ["range", "named ranges", 2],
  ["launch", "runtime calls", 3],
  ["forward", "the backward pass of a line of yours", 5],
  ["native", "native code, or no stack", 7],
  ["small", "small ones, together", null],
];

const kindOf = (node) => (node.own && node.kind === "python" ? "own" : node.kind);

function render({ model, el }) {
  const root = element("div", "maiprof mp-icicle");
  const header = element("div", "mp-header");
  const title = element("strong", "mp-title");
  const [gapsBox, gapsOn] = check("gaps only");
  const [everyBox, everyOn] = check("every frame");
  everyBox.title = "Also library frames that only pass on to one callee";
  const search = element("input", "mp-search");
  search.type = "search";
  search.placeholder = "Search frames";
  search.setAttribute("aria-label", "Search frames");
  const back = element("button", "mp-button", "Back");
  back.type = "button";
  header.append(title, gapsBox, everyBox, search, back);
  const facts = element("p", "mp-notices");
  const scroller = element("div", "mp-scroll");
  const stageHost = element("div", "mp-stage");
  scroller.append(stageHost);
  const tip = element("div", "mp-tip");
  tip.hidden = true;
  const legend = element("div", "mp-legend mp-legend-left");
  const said = element("p", "mp-notices mp-said");
  said.setAttribute("aria-live", "polite");
  const status = element("p", "mp-status");
  status.setAttribute("role", "status");
  const empty = element("p", "mp-empty");
  root.append(header, facts, scroller, tip, said, legend, status, empty);
  el.append(root);

  let theme = themeOf(root);
  let nodes = [];
  let layers = []; // finer nodes of what was looked into, the outermost first
  let boxes = [];
  let whole = 1;
  let focus = -1;
  let cursor = null; // id of the node the pointer or the keys are on
  let found = { found: new Set(), total: 0 };
  let frame = 0;
  const inBytes = () => model.get("picture").unit === "bytes";
  const amount = (value) => (inBytes() ? bytesText(value) : durationText(value / 1e3));
  const stage = sizedCanvas(stageHost, ROW, () => {
    theme = themeOf(root); // notebooks render before they attach, when styles are not known yet
    showLegend();
    lay();
  });
  const canvas = stage.canvas;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.style.touchAction = "auto";

  function check(text) {
    const box = element("label", "mp-check");
    const input = element("input");
    input.type = "checkbox";
    box.append(input, ` ${text}`);
    return [box, input];
  }

  function described() {
    const picture = model.get("picture");
    title.textContent = picture.title;
    facts.textContent = picture.facts ?? "";
    empty.textContent = picture.empty ?? "";
    empty.hidden = !picture.empty;
    gapsBox.hidden = inBytes();
    for (const part of [scroller, legend, search, everyBox, back]) part.hidden = Boolean(picture.empty);
    layers = [];
    grow();
    if (focus >= 0) look();
    canvas.setAttribute("aria-label", `${picture.title}. ${picture.facts ?? ""} ${inWords()}`);
    root.dataset.painted = String(Number(root.dataset.painted ?? 0) + 1);
  }

  /** Builds the tree again, and stays at what was looked into. */
  function grow() {
    const picture = model.get("picture");
    const places = focus >= 0 && nodes[focus] ? pathTo(nodes, focus).map((node) => node.place) : [];
    const at = cursor === null ? null : nodes[cursor]?.place ?? null;
    nodes = picture.empty ? [] : treeOf(picture, layers);
    whole = nodes.reduce((sum, node) => sum + (node.parent < 0 ? node.total : 0), 0) || 1;
    const rows = new Map(nodes.map((node) => [node.place, node.id]));
    focus = places.reduceRight((found, place) => (found >= 0 ? found : rows.get(place) ?? -1), -1);
    cursor = at === null ? null : rows.get(at) ?? null;
    tip.hidden = true;
    found = matching(nodes, search.value);
    say(cursor);
    lay();
  }

  /** Asks Python for finer nodes of what is looked into. */
  function look() {
    const { path } = nodes[focus];
    if (!layers.some((layer) => layer.under === path)) model.send({ kind: "look", node: path });
  }

  function refine() {
    const finer = model.get("finer");
    const node = nodes.find((one) => one.path === finer.under);
    if (!node) return;
    const above = new Set(pathTo(nodes, node.id).slice(0, -1).map((one) => one.path));
    layers = [...layers.filter((layer) => above.has(layer.under)), finer];
    grow();
    root.dataset.refined = String(Number(root.dataset.refined ?? 0) + 1);
  }

  function inWords() {
    const own = nodes.filter((node) => node.own).sort((a, b) => b.self - a.self)[0];
    if (!own || !own.self) return "";
    return `Most own ${inBytes() ? "bytes" : "time"} of your code: ${own.name}, ${amount(own.self)}.`;
  }

  function lay() {
    if (stage.width === 0) return;
    boxes = nodes.length ? boxesOf(nodes, focus, everyOn.checked) : [];
    const rows = boxes.reduce((most, box) => Math.max(most, box.row + 1), 1);
    stage.height = rows * ROW + 1;
    canvas.height = Math.round(stage.height * stage.ratio);
    canvas.style.height = `${stage.height}px`;
    scroller.style.maxHeight = `${MOST_PIXELS}px`;
    back.disabled = focus < 0;
    redraw();
  }

  function redraw() {
    if (!frame) frame = requestAnimationFrame(draw);
  }

  function colourOf(node) {
    if (node.kind === "threads" || node.kind === "small") return theme.rest;
    const kind = kindOf(node);
    const tone = KINDS.find(([name]) => name === kind)?.[2] ?? 7;
    return theme.tones[tone];
  }

  function draw() {
    frame = 0;
    const { context, ratio } = stage;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, stage.width, stage.height);
    context.textBaseline = "middle";
    context.textAlign = "left";
    const chosen = model.get("selected");
    for (const box of boxes) {
      const left = box.from * stage.width;
      const width = (box.to - box.from) * stage.width;
      if (width < 0.3) continue;
      let colour = colourOf(box.node);
      const searched = search.value.trim() && !found.found.has(box.node.id);
      if (box.caller || searched) colour = mix(colour, theme.background, 0.7);
      const drawn = Math.max(width - 1, 0.5);
      context.fillStyle = `rgb(${colour.join(",")})`;
      context.fillRect(left, box.row * ROW, drawn, ROW - 1);
      if (box.node.id === cursor) outline(left, box.row, drawn, theme.ink, 1.5);
      else if (chosen.name === box.node.name) outline(left, box.row, drawn, theme.accent, 2);
      if (width > 34) label(box, left, drawn, colour);
    }
  }

  function outline(left, row, width, colour, line) {
    const { context } = stage;
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(left + line / 2, row * ROW + line / 2, Math.max(width - line, 1), ROW - 1 - line);
  }

  function label(box, left, width, colour) {
    const { context } = stage;
    const light = colour[0] * 0.3 + colour[1] * 0.59 + colour[2] * 0.11 > 140;
    context.font = `${box.node.own ? 600 : 400} 12px ${theme.font}`;
    context.fillStyle = light ? "#111418" : "#ffffff";
    const seen = Math.max(left, 0);
    let text = (box.passed.length ? "… " : "") + shortName(box.node);
    const share = ` ${shareText(box.node)}`;
    const room = width - 10;
    const fits = (words) => context.measureText(words).width <= room;
    if (fits(text + share)) text += share;
    else if (!fits(text)) {
      let low = 0;
      let high = text.length;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (fits(`${text.slice(0, middle)}…`)) low = middle;
        else high = middle - 1;
      }
      text = low > 1 ? `${text.slice(0, low)}…` : "";
    }
    context.fillText(text, seen + 5, box.row * ROW + ROW / 2);
  }

  function shareText(node) {
    const share = (100 * node.total) / whole;
    return `${share < 1 ? share.toPrecision(1) : share.toFixed(share < 10 ? 1 : 0)} %`;
  }

  function boxAt(point) {
    const row = Math.floor(point.y / ROW);
    const at = point.x / stage.width;
    return boxes.find((box) => box.row === row && box.from <= at && at < box.to) ?? null;
  }

  function pointOf(event) {
    const area = canvas.getBoundingClientRect();
    return { x: event.clientX - area.left, y: event.clientY - area.top };
  }

  function describe(node) {
    if (node.kind === "small") {
      return { times: `${amount(node.total)} together (${shareText(node)})`,
        counts: "too small to draw here; a click looks into their caller" };
    }
    const times = `${amount(node.total)} with callees (${shareText(node)}), `
      + `${amount(node.self)} own`;
    const small = node.pruned ? `, ${amount(node.pruned)} in small callees` : "";
    if (inBytes()) return { times: times + small, counts: plural(node.calls, "block") };
    const calls = node.kind === "threads" ? "" : `, ${plural(node.calls, "call")}`;
    return { times: times + small, counts: plural(node.threads, "thread") + calls };
  }

  function plural(count, noun) {
    return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
  }

  function hover(event) {
    const point = pointOf(event);
    const box = boxAt(point);
    move(box ? box.node.id : null, false);
    canvas.style.cursor = box ? "pointer" : "default";
    tip.hidden = !box;
    if (!box) return;
    const { times, counts } = describe(box.node);
    const passed = box.passed.map((node) => node.name);
    tip.replaceChildren(element("strong", "", box.node.name), element("div", "", times),
      element("div", "mp-dim", counts));
    if (passed.length) {
      tip.append(element("div", "mp-dim", "through"),
        element("pre", "mp-frames", passed.slice(0, 8).join("\n")
          + (passed.length > 8 ? `\n… ${passed.length - 8} more` : "")));
    }
    const place = root.getBoundingClientRect();
    const x = event.clientX - place.left;
    const y = event.clientY - place.top;
    const right = x + 16 + tip.offsetWidth > root.clientWidth;
    tip.style.left = `${Math.max(0, right ? x - tip.offsetWidth - 12 : x + 16)}px`;
    const low = y + 16 + tip.offsetHeight > root.clientHeight;
    tip.style.top = `${Math.max(0, low ? y - tip.offsetHeight - 12 : y + 16)}px`;
  }

  function move(id, speak) {
    if (id !== cursor) {
      cursor = id;
      redraw();
    }
    if (speak) say(id);
  }

  function say(id) {
    if (id === null) said.textContent = searchWords();
    else {
      const { times, counts } = describe(nodes[id]);
      said.textContent = `${nodes[id].name}: ${times}; ${counts}.`;
    }
  }

  function searchWords() {
    if (!search.value.trim()) return "";
    const count = found.found.size;
    if (!count) return "No frame here has that in its name.";
    return `${count} call path${count === 1 ? "" : "s"}, ${amount(found.total)} `
      + `(${((100 * found.total) / whole).toFixed(1)} % of ${inBytes() ? "all" : "the host time"} shown).`;
  }

  function lookInto(id) {
    focus = id;
    tip.hidden = true;
    lay();
    if (focus >= 0) look();
  }

  function outward() {
    if (focus < 0) return;
    const next = nodes[focus].parent;
    lookInto(everyOn.checked || next < 0 ? next : outerEnd(next));
  }

  /** The nearest caller that is drawn: library frames that only pass on are not. */
  function outerEnd(id) {
    let at = id;
    while (at >= 0 && onlyCallee(nodes[at]) && !nodes[at].own && nodes[at].kind !== "threads") {
      at = nodes[at].parent;
    }
    return at;
  }

  function chosen(box) {
    const { node } = box;
    const into = node.kind === "small" ? nodes[node.parent] : node;
    lookInto(into.id === focus && node === into ? node.parent : into.id);
    say(into.id);
    model.send({ kind: "choose", node: into.path });
  }

  function keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = boxes.filter((box) => (box.to - box.from) * stage.width >= 0.3);
    const here = shown.find((box) => box.node.id === cursor);
    const step = (rows, columns) => {
      if (!here) return shown.find((box) => box.row === 0 && box.from === 0);
      const start = here;
      const middle = (start.from + start.to) / 2;
      if (rows) {
        const row = shown.filter((box) => box.row === start.row + rows);
        const holds = (box) => (rows < 0 ? box.from <= middle && middle < box.to
          : box.from >= start.from - 1e-9 && box.to <= start.to + 1e-9);
        return row.filter(holds).sort((a, b) => (b.to - b.from) - (a.to - a.from))[0];
      }
      const row = shown.filter((box) => box.row === start.row).sort((a, b) => a.from - b.from);
      return row[row.indexOf(start) + columns];
    };
    const go = (box) => {
      if (!box) return;
      move(box.node.id, true);
      const top = box.row * ROW;
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      const over = top + ROW - scroller.clientHeight;
      if (over > scroller.scrollTop) scroller.scrollTop = over;
    };
    const actions = {
      ArrowDown: () => go(step(1, 0)),
      ArrowUp: () => go(step(-1, 0)),
      ArrowLeft: () => go(step(0, -1)),
      ArrowRight: () => go(step(0, 1)),
      Enter: () => here && chosen(here),
      " ": () => here && chosen(here),
      Escape: outward,
      Backspace: outward,
      Home: () => lookInto(-1),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  function showLegend() {
    const kinds = new Set(nodes.map(kindOf));
    legend.replaceChildren(...KINDS.filter(([kind]) => kinds.has(kind)).map(([, text, tone]) => {
      const item = element("span", "mp-key");
      const chip = element("i", "mp-chip");
      chip.style.background = `rgb(${(tone === null ? theme.rest : theme.tones[tone]).join(",")})`;
      item.append(chip, element("span", "mp-key-text", text));
      return item;
    }), element("span", "mp-dim", "Click: look into. Escape or Back: out again. Arrows: walk."));
  }

  function retheme() {
    root.classList.toggle("mp-dark", model.get("theme") === "dark");
    root.classList.toggle("mp-light", model.get("theme") === "light");
    theme = themeOf(root);
    showLegend();
    redraw();
  }

  function showStatus() {
    status.textContent = model.get("status");
    status.hidden = !status.textContent;
  }

  canvas.addEventListener("pointermove", hover);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; move(null, false); });
  canvas.addEventListener("click", (event) => {
    const box = boxAt(pointOf(event));
    if (box) chosen(box);
  });
  canvas.addEventListener("keydown", keyed);
  back.addEventListener("click", outward);
  search.addEventListener("input", () => {
    found = matching(nodes, search.value);
    say(null);
    redraw();
  });
  search.addEventListener("keydown", (event) => event.stopPropagation());
  everyOn.addEventListener("change", lay);
  gapsOn.addEventListener("change", () => {
    model.set("gaps_only", gapsOn.checked);
    model.save_changes();
  });
  const drawn = () => { described(); showLegend(); };
  const followed = () => { gapsOn.checked = model.get("gaps_only"); };
  const listeners = {
    "change:picture": drawn,
    "change:finer": refine,
    "change:gaps_only": followed,
    "change:selected": redraw,
    "change:theme": retheme,
    "change:status": showStatus,
  };
  for (const [event, listener] of Object.entries(listeners)) model.on(event, listener);
  const stopTheme = watchTheme(retheme);
  followed();
  drawn();
  retheme();
  showStatus();

  return () => {
    for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
    stopTheme();
    stage.stop();
    cancelAnimationFrame(frame);
  };
}

export default { render };
