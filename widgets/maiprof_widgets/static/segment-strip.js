// The whole log by event: reserved, allocated and what fits, with the moment shown marked.

import { bytesText, element, sizedCanvas } from "./canvas-kit.js";

const HEIGHT = 64;

/** A strip in `host` that scrubs; `look(state)` is told where, `read()` gives what is drawn. */
export function stripOf(host, read, look) {
  const stage = sizedCanvas(host, HEIGHT, () => draw());
  const { canvas } = stage;
  canvas.setAttribute("aria-hidden", "true"); // the slider beneath says the same
  let held = false;

  function draw() {
    const { curve, last, state, theme, refused, alarm } = read();
    const { context, ratio, width } = stage;
    if (!curve || !theme || width === 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, HEIGHT);
    const most = Math.max(...curve.reserved, 1) * 1.05;
    const x = (event) => (last ? (event / last) * width : 0);
    const y = (bytes) => HEIGHT - 1 - (bytes / most) * (HEIGHT - 3);
    const trace = (values) => {
      context.moveTo(0, y(values[0]));
      for (let i = 1; i < values.length; i += 1) {
        context.lineTo(x(curve.state[i]), y(values[i - 1]));
        context.lineTo(x(curve.state[i]), y(values[i]));
      }
      context.lineTo(width, y(values[values.length - 1]));
    };
    context.beginPath();
    trace(curve.allocated);
    context.lineTo(width, HEIGHT);
    context.lineTo(0, HEIGHT);
    context.fillStyle = `rgba(${theme.tones[0].join(",")},0.45)`;
    context.fill();
    const line = (values, colour, dash) => {
      context.beginPath();
      trace(values);
      context.strokeStyle = colour;
      context.setLineDash(dash);
      context.lineWidth = 1.25;
      context.stroke();
      context.setLineDash([]);
    };
    line(curve.reserved, theme.ink, [5, 3]);
    line(curve.fits, `rgb(${theme.tones[1].join(",")})`, []);
    const mark = (event, colour, wide) => {
      const at = Math.min(Math.max(x(event), 1), width - 1);
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, HEIGHT);
      context.stroke();
    };
    for (const event of refused) mark(event, alarm, 3);
    mark(state, theme.accent, 2);
  }

  function scrub(event) {
    const { last } = read();
    const box = canvas.getBoundingClientRect();
    look(Math.round(((event.clientX - box.left) / box.width) * last));
  }
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held = true;
    scrub(event);
  });
  canvas.addEventListener("pointermove", (event) => { if (held) scrub(event); });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => { held = false; });
  }
  return { draw, stop: stage.stop };
}

/** Its key. */
export function stripKey(theme, curve) {
  if (!curve) return [];
  const most = (values) => bytesText(Math.max(...values));
  const key = (style, text) => {
    const item = element("span", "mp-key");
    const chip = element("i", style.className ?? "mp-chip");
    if (style.background) chip.style.background = style.background;
    item.append(chip, element("span", "", text));
    return item;
  };
  const rgb = (colour, share) => `rgba(${colour.join(",")},${share})`;
  return [
    element("span", "mp-dim", "over the log's events:"),
    key({ className: "mp-dash" }, `reserved (at most ${most(curve.reserved)})`),
    key({ background: rgb(theme.tones[0], 0.45) }, `allocated (${most(curve.allocated)})`),
    key({ background: rgb(theme.tones[1], 1) }, `largest request that fits (${most(curve.fits)})`),
  ];
}
