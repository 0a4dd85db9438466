// Memory bands as pixels: who owns each one, in which colour.

import { element, mix, rgbOf, tonesOf } from "./canvas-kit.js";

const NOTHING = 0; // values of the id buffer: nothing, the rest, one per band, one per merged band
export const REST = 1;
export const FIRST_BAND = 2;
const GREY = 255; // the tone of what nothing tells
const FADED = 0.78;
const HATCH = 7; // pixels between the lines that mark a merged band

/** What an id stands for: {band}, {merged}, {rest: true} or {}. */
export function owner(picture, id) {
  if (id === REST) return { rest: true };
  if (id < FIRST_BAND) return {};
  const band = id - FIRST_BAND;
  const count = picture.size_bytes.length;
  return band < count ? { band } : { merged: band - count };
}

/** Whether a merged band hardly changes in height: such are the ground, others would shake it. */
function steady(picture, merged) {
  const columns = picture.sample_us.length;
  let low = Infinity;
  let high = 0;
  for (let c = 0; c < columns; c += 1) {
    if (Number.isNaN(picture.allocated_bytes[c])) continue;
    const bytes = picture.merged_bytes[merged * columns + c];
    low = Math.min(low, bytes);
    high = Math.max(high, bytes);
  }
  return low >= high / 2;
}

/**
 * Which band owns each pixel between two byte values, column by column from the bottom up; what
 * changes lies on top.
 */
export function layBands(picture, height, [lowest, highest]) {
  const columns = picture.sample_us.length;
  const bands = picture.size_bytes.length;
  const ids = new Uint16Array(columns * height);
  const perByte = height / (highest - lowest);
  const top = new Float64Array(columns).fill(-lowest * perByte);
  const fill = (column, bytes, id) => {
    const from = Math.max(Math.round(top[column]), 0);
    top[column] += bytes * perByte;
    const to = Math.min(Math.round(top[column]), height);
    if (to > from) ids.fill(id, column * height + from, column * height + to);
  };
  for (let c = 0; c < columns; c += 1) {
    if (picture.rest_bytes[c] > 0) fill(c, picture.rest_bytes[c], REST);
  }
  const merged = [...picture.merged_tone.keys()];
  const fillMerged = (m) => {
    for (let c = 0; c < columns; c += 1) {
      const bytes = picture.merged_bytes[m * columns + c];
      if (bytes > 0) fill(c, bytes, FIRST_BAND + bands + m);
    }
  };
  merged.filter((m) => steady(picture, m)).forEach(fillMerged);
  for (let b = 0; b < bands; b += 1) {
    const bytes = picture.size_bytes[b];
    for (let c = picture.first_column[b]; c < picture.end_column[b]; c += 1) {
      fill(c, bytes, FIRST_BAND + b);
    }
  }
  merged.filter((m) => !steady(picture, m)).forEach(fillMerged);
  return { ids, columns, height, merged: FIRST_BAND + bands };
}

/** Colours of the picture's palette on this ground. */
export function paletteOf(picture, theme) {
  const hues = picture.palette[theme.dark ? "dark" : "light"].map(rgbOf);
  return tonesOf(hues, picture.palette.fades, theme.background);
}

/** The colour of each id, and of the edge on top of a band. */
export function bandColours(picture, theme, chosenRow) {
  const bands = picture.size_bytes.length;
  const count = FIRST_BAND + bands + picture.merged_tone.length;
  const face = new Uint32Array(count);
  const edge = new Uint32Array(count);
  const tones = paletteOf(picture, theme);
  const pack = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r;
  const line = theme.dark ? [0, 0, 0] : [255, 255, 255];
  const mark = rgbOf(picture.palette.chosen[theme.dark ? 1 : 0]);
  const set = (id, tone, bright, chosen) => {
    const grey = tone === GREY;
    let colour = grey ? theme.grey[id % 2] : tones[tone];
    if (chosen) colour = mark;
    else if (!bright) colour = mix(colour, theme.background, FADED);
    face[id] = pack(colour);
    edge[id] = pack(mix(colour, line, grey ? 0.15 : 0.35));
  };
  face[REST] = edge[REST] = pack(theme.rest);
  for (let b = 0; b < bands; b += 1) {
    const chosen = chosenRow !== undefined && picture.allocation[b] === chosenRow;
    set(FIRST_BAND + b, picture.tone[b], picture.lit[b], chosen);
  }
  for (let m = 0; m < picture.merged_tone.length; m += 1) {
    set(FIRST_BAND + bands + m, picture.merged_tone[m], picture.merged_lit[m], false);
  }
  return { face, edge };
}

export function paintBands({ ids, columns, height, merged }, { face, edge }) {
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
      const lined = thick || (id >= merged && (c + r) % HATCH === 0);
      pixels[(height - 1 - r) * columns + c] = lined ? edge[id] : face[id];
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
