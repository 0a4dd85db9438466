// Memory bands as pixels: who owns each one, in which colour.

import { element, mix, rgbOf } from "./canvas-kit.js";

const NOTHING = 0; // values of the id buffer: nothing, the summed-up rest, then one per band
export const REST = 1;
export const FIRST_BAND = 2;

/** Which band owns each pixel, column by column from the bottom up. */
export function layBands(picture, height, highest) {
  const columns = picture.sample_us.length;
  const ids = new Uint16Array(columns * height);
  const top = new Float64Array(columns);
  const perByte = height / highest;
  const fill = (column, bytes, id) => {
    const from = Math.round(top[column]);
    top[column] += bytes * perByte;
    const to = Math.min(Math.round(top[column]), height);
    if (to > from) ids.fill(id, column * height + from, column * height + to);
  };
  for (let c = 0; c < columns; c += 1) {
    if (picture.rest_bytes[c] > 0) fill(c, picture.rest_bytes[c], REST);
  }
  for (let b = 0; b < picture.size_bytes.length; b += 1) {
    const bytes = picture.size_bytes[b];
    for (let c = picture.first_column[b]; c < picture.end_column[b]; c += 1) {
      fill(c, bytes, FIRST_BAND + b);
    }
  }
  return { ids, columns, height };
}

/** The colour of each id, and of the edge on top of a band. */
export function bandColours(picture, theme, chosen, greyOld) {
  const count = picture.size_bytes.length + FIRST_BAND;
  const face = new Uint32Array(count);
  const edge = new Uint32Array(count);
  const pack = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r;
  const line = theme.dark ? [0, 0, 0] : [255, 255, 255];
  face[REST] = edge[REST] = pack(theme.rest);
  for (let b = 0; b < picture.size_bytes.length; b += 1) {
    const grey = greyOld && picture.before_log[b];
    let colour = grey ? theme.grey[b % 2] : theme.tones[picture.tone[b]];
    if (chosen && picture.allocation[b] === chosen.row) colour = rgbOf(theme.accent);
    else if (chosen && (chosen.stack < 0 || picture.stack[b] !== chosen.stack)) {
      colour = mix(colour, theme.background, 0.72);
    }
    face[FIRST_BAND + b] = pack(colour);
    edge[FIRST_BAND + b] = pack(mix(colour, line, grey ? 0.15 : 0.35));
  }
  return { face, edge };
}

export function paintBands({ ids, columns, height }, { face, edge }) {
  const sheet = element("canvas");
  sheet.width = columns;
  sheet.height = height;
  const context = sheet.getContext("2d");
  const image = context.createImageData(columns, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let c = 0; c < columns; c += 1) {
    const base = c * height;
    for (let r = 0; r < height; r += 1) {
      const id = ids[base + r];
      if (id === NOTHING) continue;
      const onTop = r + 1 < height && ids[base + r + 1] !== id;
      const thick = onTop && r > 2 && ids[base + r - 2] === id;
      pixels[(height - 1 - r) * columns + c] = thick ? edge[id] : face[id];
    }
  }
  context.putImageData(image, 0, 0);
  return sheet;
}

export function highestOf(picture, withReserved) {
  let highest = 0;
  for (let c = 0; c < picture.sample_us.length; c += 1) {
    if (picture.allocated_bytes[c] > highest) highest = picture.allocated_bytes[c];
    if (withReserved && picture.reserved_bytes[c] > highest) highest = picture.reserved_bytes[c];
  }
  return (highest || 1) * 1.04;
}
