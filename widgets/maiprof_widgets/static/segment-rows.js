// Where segments and their cells lie on the canvas: widths to scale, wrapped into rows.

import { mix, rgbOf } from "./canvas-kit.js";

export const USED = 0;
export const WAITS = 1;
export const HOLE = 2;
export const MERGED = 3;

const HEADER = 20;
const LEAST = 3; // px, so that no segment is lost
const heights = (group) => (group.small ? { bar: 10, step: 14 } : { bar: 15, step: 20 });

/**
 * Rectangles of one picture's segments and cells: {height, heads, segments, cells}. A segment
 * that is wider than what is left of its row goes on in the next; its rectangles know whether
 * they are its first and last.
 */
export function layRows(picture, width) {
  const heads = [];
  const segments = [];
  const cells = [];
  let top = 0;
  let segment = 0;
  let cell = 0;
  for (const group of picture.groups) {
    heads.push({ top, text: group.title });
    top += HEADER;
    const { bar, step } = heights(group);
    const scale = width / group.row_bytes;
    let at = 0; // px from the group's first row, rows laid end to end
    for (let i = 0; i < group.segments; i += 1, segment += 1) {
      const wide = Math.max(picture.segment_bytes[segment] * scale, LEAST);
      const left = width - (at % width);
      const begun = at % width > 0;
      if (begun && (group.alone || (wide > left && (wide < width / 2 || left < 12)))) at += left;
      const spread = { width, bar, step, top, segment };
      pieces(spread, at, at + wide, (piece) => segments.push(piece));
      let bytes = 0;
      const unit = wide / picture.segment_bytes[segment];
      for (let k = 0; k < picture.cells[segment]; k += 1, cell += 1) {
        const from = at + bytes * unit;
        bytes += picture.size_bytes[cell];
        pieces(spread, from, at + bytes * unit, (piece) => cells.push({ ...piece, cell }));
      }
      at += wide;
      if (at % width > 0.01 && width - (at % width) > 0.01) at += wide > 8 ? 2 : 1;
    }
    top += Math.ceil(Math.max(at - 2, 1) / width - 1e-6) * step + 4;
  }
  return { height: top, heads, segments, cells };
}

function pieces({ width, bar, step, top, segment }, from, to, put) {
  const last = Math.max(Math.ceil(to / width - 1e-9) - 1, Math.floor(from / width + 1e-9));
  for (let row = Math.floor(from / width + 1e-9); row <= last; row += 1) {
    const left = Math.max(from - row * width, 0);
    const right = Math.min(to - row * width, width);
    put({
      x: left, y: top + row * step, w: right - left, h: bar, segment,
      first: from >= row * width - 1e-6, last: to <= (row + 1) * width + 1e-6,
    });
  }
}

/** What a stretch of one segment covers, as rectangles. */
export function stretchOf(laid, picture, address, size) {
  const segment = picture.address.findIndex(
    (begin, i) => begin <= address && address < begin + picture.segment_bytes[i],
  );
  if (segment < 0) return [];
  const own = laid.segments.filter((piece) => piece.segment === segment);
  const wide = own.reduce((sum, piece) => sum + piece.w, 0);
  const unit = wide / picture.segment_bytes[segment];
  const from = (address - picture.address[segment]) * unit;
  const to = from + Math.max(size * unit, 1);
  let before = 0;
  const found = [];
  for (const piece of own) {
    const low = Math.max(from - before, 0);
    const high = Math.min(to - before, piece.w);
    if (high > low) found.push({ ...piece, x: piece.x + low, w: high - low });
    before += piece.w;
  }
  return found;
}

/** The page's theme with the tones of stacks that Python states for light and dark ground. */
export function withTones(theme, palette) {
  if (!palette) return theme;
  const hues = palette[theme.dark ? "dark" : "light"].map(rgbOf);
  const tones = palette.fades.flatMap((fade) => hues.map((hue) => mix(hue, theme.background, fade)));
  return { ...theme, tones };
}

/** A stack's colour; grey where none was recorded. */
export const toneOf = (theme, tone) => theme.tones[tone] ?? theme.grey[0];

/** Paints rows; `dimmed(cell)` says whether a cell stands back because others are chosen. */
export function paintRows(context, laid, picture, theme, dimmed) {
  const rgb = (colour) => `rgb(${colour.join(",")})`;
  const colour = (tone, faint) => rgb(faint ? mix(toneOf(theme, tone), theme.background, 0.6)
    : toneOf(theme, tone));
  const hatch = hatching(context, theme);
  context.font = `11.5px ${theme.font}`;
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  context.fillStyle = theme.ink;
  for (const head of laid.heads) context.fillText(head.text, 0, head.top + 14);
  for (const piece of laid.cells) {
    const kind = picture.kind[piece.cell];
    if (kind === HOLE) continue;
    const gap = piece.w >= 3 && piece.last ? 0.75 : 0;
    const wide = Math.max(piece.w - gap, 0.75);
    if (kind === MERGED) {
      const share = picture.used_bytes[piece.cell] / picture.size_bytes[piece.cell];
      context.fillStyle = rgb(mix(theme.background, rgbOf(theme.dim), share));
    } else {
      context.fillStyle = colour(picture.tone[piece.cell], dimmed(piece.cell));
    }
    context.fillRect(piece.x, piece.y, wide, piece.h);
    if (kind === WAITS) {
      context.fillStyle = hatch;
      context.fillRect(piece.x, piece.y, wide, piece.h);
    }
  }
  outline(context, laid, picture, theme);
}

function outline(context, laid, picture, theme) {
  context.strokeStyle = theme.dim;
  for (const piece of laid.segments) {
    const free = picture.unused_bytes[piece.segment] >= picture.segment_bytes[piece.segment];
    context.lineWidth = piece.w < 8 ? 0.5 : 1;
    context.setLineDash(free ? [3, 2] : []);
    const [left, right] = [piece.x + 0.5, Math.max(piece.x + piece.w - 0.5, piece.x + 1)];
    const [top, bottom] = [piece.y + 0.5, piece.y + piece.h - 0.5];
    context.beginPath();
    context.moveTo(right, top);
    context.lineTo(left, top);
    if (piece.first) context.lineTo(left, bottom);
    else context.moveTo(left, bottom);
    context.lineTo(right, bottom);
    if (piece.last) context.lineTo(right, top);
    context.stroke();
  }
  context.setLineDash([]);
}

/** Diagonal lines, laid over what waits to be freed. */
export function hatching(context, theme) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.strokeStyle = `rgb(${theme.background.join(",")})`;
  pen.lineWidth = 2;
  for (const shift of [-6, 0, 6]) {
    pen.beginPath();
    pen.moveTo(shift, 6);
    pen.lineTo(shift + 6, 0);
    pen.stroke();
  }
  return context.createPattern(tile, "repeat");
}
