// What the memory view draws over and beside the bands.

import { FIRST_BAND, REST, owner } from "./memory-bands.js";

const shade = (theme) => (theme.dark ? "rgba(255,255,255,0.05)" : "rgba(0,0,0,0.045)");

function noteText(context, theme, text, x, y) {
  context.font = `11px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = theme.dim;
  context.fillText(text, x, y);
}

/** Columns that the log does not cover. */
export function drawUnrecorded(context, area, theme, { picture, columns, from, to }) {
  const step = (to - from) / columns;
  let start = -1;
  let seen = 0;
  for (let c = 0; c <= columns; c += 1) {
    const blank = c < columns && Number.isNaN(picture.allocated_bytes[c]);
    seen += c < columns && !blank ? 1 : 0;
    if (blank && start < 0) start = c;
    if (!blank && start >= 0) {
      context.fillStyle = shade(theme);
      context.fillRect(from + start * step, area.top, (c - start) * step, area.height);
      if ((c - start) * step > 110) {
        noteText(context, theme, "not recorded", from + ((start + c) / 2) * step, area.top + 12);
      }
      start = -1;
    }
  }
  if (!seen) {
    noteText(context, theme, "The memory log does not cover the time shown here",
      area.left + area.width / 2, area.top + area.height / 2);
  }
}

/** Lightens or darkens all pixels of one band. */
export function drawHovered(context, area, theme, { picture, laid, hovered, from, to }) {
  if (hovered === null || hovered < REST) return;
  const { ids, columns, height } = laid;
  const step = (to - from) / columns;
  const tall = area.height / height;
  const { band } = owner(picture, hovered);
  const [first, end] = band === undefined ? [0, columns]
    : [picture.first_column[hovered - FIRST_BAND], picture.end_column[hovered - FIRST_BAND]];
  context.fillStyle = theme.dark ? "rgba(255,255,255,0.38)" : "rgba(0,0,0,0.28)";
  for (let c = first; c < end; c += 1) {
    const column = ids.subarray(c * height, (c + 1) * height);
    const low = column.indexOf(hovered);
    if (low < 0) continue;
    const high = column.lastIndexOf(hovered) + 1;
    const bottom = area.top + area.height - low * tall;
    context.fillRect(from + c * step, bottom - (high - low) * tall, step, (high - low) * tall);
  }
}

export function drawReserved(context, theme, { picture, columns, from, to, y }) {
  const step = (to - from) / columns;
  context.strokeStyle = theme.ink;
  context.lineWidth = 1.5;
  context.setLineDash([5, 3]);
  context.beginPath();
  let open = false;
  for (let c = 0; c < columns; c += 1) {
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

/** Words beside a place, on whichever side they fit, over a ground of their own. */
function label(context, area, theme, { at, row, text, colour }) {
  context.font = `600 11px ${theme.font}`;
  const width = context.measureText(text).width + 8;
  const fits = at + 6 + width <= area.left + area.width;
  const left = fits ? Math.max(at + 6, area.left) : at - 6 - width;
  context.fillStyle = `rgba(${theme.background.join(",")},0.86)`;
  context.fillRect(left, row, width, 15);
  context.fillStyle = colour;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillText(text, left + 4, row + 8);
}

/** Requests that failed: a line each; the words of the largest stand above the plot. */
export function drawRefused(context, area, theme, { refused, colour, x }) {
  for (const { us, text } of refused) {
    const at = x(us);
    if (at < area.left - 1 || at > area.left + area.width + 1) continue;
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(at, area.top - (text ? 14 : 0));
    context.lineTo(at, area.top + area.height);
    context.stroke();
    if (text) label(context, area, theme, { at, row: 2, text, colour });
  }
}

export function drawPeak(context, area, theme, { peak, at, top, flat, text, least }) {
  if (at < area.left - 1 || at > area.left + area.width + 1) return;
  label(context, area, theme, { at, row: Math.max(top - 18, least), text, colour: theme.ink });
  if (flat || !peak) return;
  context.fillStyle = theme.ink;
  context.beginPath();
  context.moveTo(at, top);
  context.lineTo(at - 4, top - 7);
  context.lineTo(at + 4, top - 7);
  context.fill();
}

/** The moment pointed at: a thin line with a handle on the axis. */
export function drawMoment(context, area, theme, at) {
  if (at < area.left - 0.5 || at > area.left + area.width + 0.5) return;
  const x = Math.round(at) + 0.5;
  context.strokeStyle = theme.ink;
  context.fillStyle = theme.ink;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, area.top);
  context.lineTo(x, area.top + area.height);
  context.stroke();
  context.beginPath();
  context.moveTo(x, area.top + area.height - 1);
  context.lineTo(x - 4, area.top + area.height + 6);
  context.lineTo(x + 4, area.top + area.height + 6);
  context.fill();
}

export function drawBrush(context, area, theme, brushed) {
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
