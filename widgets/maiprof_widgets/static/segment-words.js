// What stands round the rows of segments: tip, legend, figures, and who holds the holes.

import { bytesText, element, rgbOf } from "./canvas-kit.js";
import { HOLE, MERGED, WAITS, toneOf } from "./segment-rows.js";

/** Lines of the tip of one cell of a picture; `known` is what Python said of its block, if so far. */
export function tipLines({ of, cell, segment }, known) {
  const kind = of.kind[cell];
  const size = of.size_bytes[cell];
  const lines = [];
  const strong = (text) => lines.push(element("strong", "", text));
  const dim = (text) => lines.push(element("div", "mp-dim", text));
  if (kind === HOLE) {
    const whole = of.unused_bytes[segment] >= of.segment_bytes[segment];
    strong(`${bytesText(size)} free`);
    dim(whole ? "a wholly free segment: empty_cache() gives it back"
      : "a hole beside blocks in use: serves smaller requests of this stream and pool only");
  } else if (kind === MERGED) {
    const used = of.used_bytes[cell];
    strong(`${of.block[cell].toLocaleString("en-US")} small pieces, ${bytesText(size)}`);
    dim(`${bytesText(used)} in use, ${bytesText(size - used)} free; too narrow to draw one by one`);
  } else {
    const state = kind === WAITS ? "waiting to be freed" : "allocated";
    strong(`${known?.heading ?? bytesText(size)}, ${state}`);
    for (const fact of known?.facts ?? []) lines.push(element("div", "", fact));
    const frames = known ? known.frames || "no stack was recorded" : "…";
    lines.push(element("pre", "mp-frames", frames));
  }
  dim(`in the segment at 0x${of.address[segment].toString(16)}: `
    + `${bytesText(of.segment_bytes[segment])}, ${bytesText(of.unused_bytes[segment])} unused`);
  return lines;
}

function chip(text, className, colour) {
  const item = element("span", "mp-key");
  const mark = element("i", `mp-chip ${className}`);
  if (colour) mark.style.background = `rgb(${colour.join(",")})`;
  const label = element("span", "mp-key-text", text);
  label.title = text;
  item.append(mark, label);
  return item;
}

export function legendOf(picture, theme) {
  const items = picture.legend.map((entry) => chip(entry.label, "", toneOf(theme, entry.tone)));
  items.push(chip("hole in a segment in use", "mp-hole"));
  items.push(chip("wholly free segment", "mp-free"));
  if (picture.kind.includes(WAITS)) items.push(chip("waiting to be freed", "mp-waits"));
  if (picture.merged_below > 0) {
    const below = bytesText(picture.merged_below);
    items.push(chip(`neighbours below ${below} drawn as one`, "", rgbOf(theme.dim)));
  }
  return items;
}

export function figuresOf(figures) {
  return figures.map(([name, value, note]) => {
    const item = element("div", "mp-figure");
    item.append(element("span", "", name), element("strong", "", value), element("span", "", note));
    return item;
  });
}

/** Whose blocks lie beside holes; `choose(stack)` is told which one was clicked. */
export function holdersOf({ rows, more }, choose) {
  const table = element("table", "mp-holders");
  for (const row of rows) {
    const line = element("tr");
    const name = element("button", "mp-link", row.label);
    name.type = "button";
    name.title = row.label;
    name.disabled = row.stack < 0;
    name.addEventListener("click", () => choose(row.stack));
    const first = element("td");
    first.append(name);
    line.append(first, element("td", "", `${row.held} (${row.share})`), element("td", "mp-dim", row.blocks));
    table.append(line);
  }
  const parts = [element("div", "mp-small",
    "Who keeps the stranded memory from going back: stacks whose blocks lie beside the holes"), table];
  if (more) parts.push(element("div", "mp-small", `and ${more} more stacks`));
  return parts;
}
