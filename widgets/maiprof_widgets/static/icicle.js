// Call paths as boxes: width is time (or bytes, where the picture's unit says so), callers above
// callees. Click: look into; Escape: back.

import { element, placeTip, sizedCanvas, themeOf, watchTheme } from "./canvas-kit.js";
import { ROW, keysOf, paintBoxes } from "./icicle-paint.js";
import { boxBeside, boxesOf, matching, onlyCallee, pathTo, treeOf } from "./icicle-tree.js";
import { wordsOf } from "./icicle-words.js";

const MOST_PIXELS = 560; // then the boxes scroll
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
  const words = wordsOf(() => model.get("picture").unit, () => whole);
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
    gapsBox.hidden = picture.unit === "bytes";
    for (const part of [scroller, legend, search, everyBox, back]) part.hidden = Boolean(picture.empty);
    layers = [];
    grow();
    if (focus >= 0) look();
    canvas.setAttribute("aria-label", `${picture.title}. ${picture.facts ?? ""} ${words.most(nodes)}`);
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

  function draw() {
    frame = 0;
    const searched = Boolean(search.value.trim());
    const marks = { cursor, chosen: model.get("selected").name, searched, found: found.found };
    paintBoxes(stage, boxes, theme, marks, words.share);
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

  function hover(event) {
    const point = pointOf(event);
    const box = boxAt(point);
    move(box ? box.node.id : null, false);
    canvas.style.cursor = box ? "pointer" : "default";
    tip.hidden = !box;
    if (!box) return;
    const { times, counts } = words.describe(box.node);
    const passed = box.passed.map((node) => node.name);
    tip.replaceChildren(element("strong", "", box.node.name), element("div", "", times),
      element("div", "mp-dim", counts));
    if (passed.length) {
      tip.append(element("div", "mp-dim", "through"),
        element("pre", "mp-frames", passed.slice(0, 8).join("\n")
          + (passed.length > 8 ? `\n… ${passed.length - 8} more` : "")));
    }
    placeTip(tip, root, event.clientX, event.clientY);
  }

  function move(id, speak) {
    if (id !== cursor) {
      cursor = id;
      redraw();
    }
    if (speak) say(id);
  }

  function say(id) {
    if (id === null) said.textContent = search.value.trim() ? words.matches(found) : "";
    else {
      const { times, counts } = words.describe(nodes[id]);
      said.textContent = `${nodes[id].name}: ${times}; ${counts}.`;
    }
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
    const step = (rows, columns) => boxBeside(shown, here, rows, columns);
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
    const how = "Click: look into. Escape or Back: out again. Arrows: walk.";
    legend.replaceChildren(...keysOf(nodes, theme), element("span", "mp-dim", how));
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
