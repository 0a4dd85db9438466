// What every canvas view shares: numbers as text, axes, theme, gestures, and asking Python.

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function significant(value) {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return digits ? value.toFixed(Math.min(digits, 20)) : Math.round(value).toLocaleString("en-US");
}

export function bytesText(bytes) {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${significant(value)} ${BYTE_UNITS[unit]}`;
}

export function durationText(us) {
  const size = Math.abs(us);
  if (size < 1) return `${significant(us * 1e3)} ns`;
  if (size < 1e3) return `${significant(us)} µs`;
  if (size < 1e6) return `${significant(us / 1e3)} ms`;
  return `${significant(us / 1e6)} s`;
}

function niceStep(range, count) {
  const rough = range / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((f) => f * power >= rough * 0.999);
  return factor * power;
}

function ticksBetween(low, high, count, digitsOf) {
  if (!(high > low)) return [];
  const step = niceStep(high - low, count);
  const digits = digitsOf ?? Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) {
    ticks.push({ value: i * step, text: (i * step).toFixed(Math.min(digits, 12)) });
  }
  return ticks;
}

/** Ticks of a time axis in microseconds: {unit, ticks: [{value (us), text}]}. */
export function timeTicks(low, high, count) {
  const range = high - low;
  const [unit, size] = range >= 2e6 ? ["s", 1e6] : range >= 2e3 ? ["ms", 1e3] : ["µs", 1];
  const ticks = ticksBetween(low / size, high / size, count);
  return { unit, ticks: ticks.map((t) => ({ value: t.value * size, text: t.text })) };
}

/** Ticks of a plain axis (event numbers). */
export function numberTicks(low, high, count) {
  return { unit: "", ticks: ticksBetween(low, high, count).filter((t) => !t.text.includes(".")) };
}

/** Ticks of a byte axis from 0 to `high`, in one binary unit. */
export function byteTicks(high, count) {
  let unit = 0;
  while (high >= 2 * 1024 ** (unit + 1) && unit < BYTE_UNITS.length - 1) unit += 1;
  const size = 1024 ** unit;
  const ticks = ticksBetween(0, high / size, count);
  return { unit: BYTE_UNITS[unit], ticks: ticks.map((t) => ({ value: t.value * size, text: t.text })) };
}

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Puts a tip beside the pointer, inside the view's own box: notebooks clip what reaches out. */
export function placeTip(tip, root, clientX, clientY) {
  const place = root.getBoundingClientRect();
  const x = clientX - place.left;
  const y = clientY - place.top;
  const right = x + 16 + tip.offsetWidth > root.clientWidth;
  tip.style.left = `${Math.max(0, right ? x - tip.offsetWidth - 12 : x + 16)}px`;
  const low = y + 16 + tip.offsetHeight > root.clientHeight;
  tip.style.top = `${Math.max(0, low ? y - tip.offsetHeight - 12 : y + 16)}px`;
}

// --- theme ---------------------------------------------------------------------------------

const HUES = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#5d4ba0"],
  dark: ["#3b9ad9", "#e69f00", "#1fb58d", "#d78fb6", "#8ccdf2", "#e8743b", "#f0e442", "#9a8be0"],
};
const FADES = [0, 0.38, 0.62]; // second and third round of hues, mixed towards the background

const probe = document.createElement("canvas").getContext("2d");

/** [r, g, b] of any CSS colour. */
export function rgbOf(text) {
  probe.fillStyle = "#888888";
  probe.fillStyle = text; // comes back as #rrggbb or rgba(...)
  const plain = probe.fillStyle;
  if (plain.startsWith("#")) return [1, 3, 5].map((i) => parseInt(plain.slice(i, i + 2), 16));
  return plain.match(/[\d.]+/g).slice(0, 3).map(Number);
}

export function mix(from, towards, share) {
  return from.map((part, i) => Math.round(part + (towards[i] - part) * share));
}

function brightnessOf(colour) {
  return colour[0] * 0.3 + colour[1] * 0.59 + colour[2] * 0.11;
}

/** What is readable on a colour. */
export function inkOn(colour) {
  return brightnessOf(colour) > 140 ? "#111418" : "#ffffff";
}

/** Hues, and after them further rounds of the same mixed towards the ground. */
export function tonesOf(hues, fades, background) {
  return fades.flatMap((fade) => hues.map((hue) => mix(hue, background, fade)));
}

/** The colour one sees behind `node`: its own, or that of the first ancestor that has one. */
function groundOf(node) {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour && !/^(transparent|rgba\(.*,\s*0\))$/.test(colour)) return colour;
  }
  return "#ffffff";
}

/** Colours as they are in force on `root` now. Call again after a theme change. */
export function themeOf(root) {
  const style = getComputedStyle(root);
  const background = rgbOf(groundOf(root));
  const dark = brightnessOf(background) < 128;
  const named = (name) => style.getPropertyValue(name).trim();
  const hues = HUES[dark ? "dark" : "light"].map(rgbOf);
  return {
    dark,
    background,
    ink: style.color,
    dim: named("--mp-dim"),
    grid: named("--mp-grid"),
    accent: named("--mp-accent"),
    font: style.fontFamily,
    tones: tonesOf(hues, FADES, background),
    grey: [dark ? [104, 108, 114] : [176, 180, 186], dark ? [88, 92, 98] : [196, 199, 204]],
    rest: dark ? [62, 65, 70] : [222, 224, 228],
  };
}

/** Calls `changed` whenever the page's theme may have changed; returns a function to stop. */
export function watchTheme(changed) {
  const observer = new MutationObserver(changed);
  const attributes = ["data-jp-theme-name", "data-jp-theme-light", "class", "style", "data-theme"];
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, { attributes: true, attributeFilter: attributes });
  }
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", changed);
  };
}

// --- canvas --------------------------------------------------------------------------------

/** A canvas as wide as `host`, sharp on any screen; `resized` is called once it has a size. */
export function sizedCanvas(host, height, resized) {
  const canvas = element("canvas", "mp-canvas");
  host.append(canvas);
  const stage = { canvas, context: canvas.getContext("2d"), width: 0, height, ratio: 1 };
  const fit = () => {
    const width = Math.floor(host.clientWidth);
    const ratio = window.devicePixelRatio || 1;
    if (width < 2 || (width === stage.width && ratio === stage.ratio)) return;
    Object.assign(stage, { width, ratio });
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    resized();
  };
  const observer = new ResizeObserver(fit);
  observer.observe(host);
  stage.stop = () => observer.disconnect();
  return stage;
}

/** Grid lines, tick texts and titles of both axes. `scale` has x(value) and y(value). */
export function drawAxes(context, plot, scale, theme, { x, y, xTitle, yTitle }) {
  context.save();
  context.font = `11px ${theme.font}`;
  context.lineWidth = 1;
  context.strokeStyle = theme.grid;
  context.fillStyle = theme.dim;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of y.ticks) {
    const at = Math.round(scale.y(tick.value)) + 0.5;
    context.beginPath();
    context.moveTo(plot.left, at);
    context.lineTo(plot.left + plot.width, at);
    context.stroke();
    context.fillText(tick.text, plot.left - 6, at);
  }
  context.textAlign = "center";
  context.textBaseline = "top";
  const bottom = plot.top + plot.height;
  for (const tick of x.ticks) {
    const at = Math.round(scale.x(tick.value)) + 0.5;
    context.beginPath();
    context.moveTo(at, bottom);
    context.lineTo(at, bottom + 4);
    context.stroke();
    context.fillText(tick.text, at, bottom + 6);
  }
  context.beginPath();
  context.moveTo(plot.left, bottom + 0.5);
  context.lineTo(plot.left + plot.width, bottom + 0.5);
  context.stroke();
  context.fillStyle = theme.ink;
  context.fillText(xTitle, plot.left + plot.width / 2, bottom + 21);
  context.translate(12, plot.top + plot.height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(yTitle, 0, -5);
  context.restore();
}

// --- gestures ------------------------------------------------------------------------------

function within([low, high], [first, last], narrowest) {
  const width = Math.min(Math.max(high - low, narrowest), last - first);
  const start = Math.min(Math.max(low + (high - low - width) / 2, first), last - width);
  return [start, start + width];
}

/**
 * Wheel zooms at the pointer, drag zooms to a range, shift-drag pans, double click resets;
 * arrows pan, + and - zoom, Escape resets. `view` gives plot(), window(), extent() and is told
 * look(window), brush(range or null), hover(point or null), choose(point).
 */
export function addGestures(canvas, view, narrowest = 0.1) {
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const valueAt = (x) => {
    const plot = view.plot();
    const [low, high] = view.window();
    return low + ((x - plot.left) / plot.width) * (high - low);
  };
  const look = (wanted) => view.look(within(wanted, view.extent(), narrowest));
  const zoom = (factor, at) => {
    const [low, high] = view.window();
    look([at - (at - low) * factor, at + (high - at) * factor]);
  };
  let drag = null;

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const amount = Math.max(-240, Math.min(240, event.deltaY * lines));
    zoom(Math.exp(amount * 0.002), valueAt(point(event).x));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { from: point(event), window: view.window(), pan: event.shiftKey, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = point(event);
    if (!drag) {
      view.hover(at);
      return;
    }
    if (Math.abs(at.x - drag.from.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    view.hover(null);
    if (drag.pan) {
      const [low, high] = drag.window;
      const shift = ((drag.from.x - at.x) / view.plot().width) * (high - low);
      look([low + shift, high + shift]);
    } else {
      view.brush([drag.from.x, at.x]);
    }
  });
  const release = (event) => {
    if (!drag) return;
    const { from, moved, pan } = drag;
    drag = null;
    view.brush(null);
    const at = point(event);
    if (event.type === "pointercancel" || pan) return;
    if (moved) look([valueAt(Math.min(from.x, at.x)), valueAt(Math.max(from.x, at.x))]);
    else view.choose(at);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => view.hover(null));
  canvas.addEventListener("dblclick", () => view.look(view.extent()));
  canvas.addEventListener("keydown", (event) => {
    const [low, high] = view.window();
    const width = high - low;
    const actions = {
      ArrowLeft: () => look([low - width / 10, high - width / 10]),
      ArrowRight: () => look([low + width / 10, high + width / 10]),
      "+": () => zoom(0.7, (low + high) / 2),
      "=": () => zoom(0.7, (low + high) / 2),
      "-": () => zoom(1 / 0.7, (low + high) / 2),
      Escape: () => view.look(view.extent()),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
}

// --- asking Python -------------------------------------------------------------------------

/** Sends one request at a time; of those made meanwhile only the newest goes out afterwards. */
export function newestWins(send, patienceMs = 10000) {
  let running = null;
  let waiting = null;
  let timer = 0;
  let last = 0;
  const start = (request) => {
    last += 1;
    running = last;
    clearTimeout(timer);
    timer = setTimeout(next, patienceMs); // a reply that never comes must not block the view
    send({ ...request, id: last });
  };
  const next = () => {
    running = null;
    clearTimeout(timer);
    const request = waiting;
    waiting = null;
    if (request) start(request);
  };
  return {
    ask(request) {
      if (running === null) start(request);
      else waiting = { ...request, gesture: request.gesture || Boolean(waiting?.gesture) };
    },
    /** True if this reply is to the newest request, also when it comes after all patience. */
    answered(id) {
      if (id !== last) return false;
      if (running !== null) next();
      return true;
    },
    stop: () => clearTimeout(timer),
    get busy() {
      return running !== null;
    },
  };
}

const ARRAYS = {
  f8: Float64Array, f4: Float32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array,
};

/** Typed arrays by name from a message's [[name, type], ...] and its binary buffers. */
export function arraysOf(layout, buffers) {
  return Object.fromEntries(layout.map(([name, type], i) => {
    const view = buffers[i];
    const bytes = view.buffer ? view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) : view;
    return [name, new ARRAYS[type](bytes)];
  }));
}
