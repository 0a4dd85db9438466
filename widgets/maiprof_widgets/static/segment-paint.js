// Segments as they are painted: what is chosen and what the pointer is on, and sizes that fit.

import { bytesText, inkOn } from "./canvas-kit.js";
import { HOLE, MERGED, paintRows, stretchOf, toneOf } from "./segment-rows.js";

export const ONE_HEIGHT = 30; // of the segment drawn large

/** Paints a picture; `marks` is what is chosen and what the pointer is on, {of: picture, cell}. */
export function paintSegments(on, rows, of, theme, { chosen, hovered }) {
  const { context, ratio } = on;
  const apart = chosen.stack !== undefined;
  const dimmed = (cell) => apart && of.stack[cell] !== chosen.stack;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, on.width, on.height);
  paintRows(context, rows, of, theme, dimmed);
  if (chosen.block !== undefined && chosen.go_to === null) {
    ring(context, stretchOf(rows, of, chosen.address, chosen.size), theme.accent, 3);
  }
  if (hovered && hovered.of === of) {
    ring(context, rows.cells.filter((piece) => piece.cell === hovered.cell), theme.ink, 2);
  }
}

function ring(context, pieces, colour, line) {
  context.strokeStyle = colour;
  context.lineWidth = line;
  for (const piece of pieces) context.strokeRect(piece.x, piece.y, Math.max(piece.w, 3), piece.h);
}

/** Sizes inside the blocks of the large segment, where they fit. */
export function writeSizes(context, rows, of, theme) {
  context.font = `11px ${theme.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const piece of rows.cells) {
    const kind = of.kind[piece.cell];
    const size = bytesText(of.size_bytes[piece.cell]);
    const text = kind === HOLE ? `${size} free` : size;
    if (kind === MERGED || context.measureText(text).width + 8 > piece.w) continue;
    context.fillStyle = kind === HOLE ? theme.ink : inkOn(toneOf(theme, of.tone[piece.cell]));
    context.fillText(text, piece.x + piece.w / 2, ONE_HEIGHT / 2);
  }
}

/** The cell under the pointer, or the nearest within two pixels. */
export function cellUnder(event, rows) {
  const box = event.currentTarget.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let nearest = null;
  for (const piece of rows?.cells ?? []) {
    if (y < piece.y || y > piece.y + piece.h) continue;
    const off = Math.max(piece.x - x, x - piece.x - piece.w, 0);
    if (off <= 2 && (!nearest || off < nearest.off)) {
      nearest = { off, cell: piece.cell, segment: piece.segment };
    }
    if (off === 0) break;
  }
  return nearest;
}
