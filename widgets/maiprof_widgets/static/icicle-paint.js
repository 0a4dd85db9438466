// What the icicle looks like: its boxes, what is written in them, and the key to their colours.

import { element, inkOn, mix } from "./canvas-kit.js";
import { shortName } from "./icicle-tree.js";

export const ROW = 20;
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

/**
 * Draws the boxes; `marks` says which stand out: {cursor, chosen, searched, found} (id of a node,
 * a name, whether there is a search, ids that match it). `shareText` is written where it fits.
 */
export function paintBoxes(stage, boxes, theme, marks, shareText) {
  const { context, ratio } = stage;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, stage.width, stage.height);
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const box of boxes) {
    const left = box.from * stage.width;
    const width = (box.to - box.from) * stage.width;
    if (width < 0.3) continue;
    let colour = colourOf(box.node, theme);
    if (box.caller || (marks.searched && !marks.found.has(box.node.id))) {
      colour = mix(colour, theme.background, 0.7);
    }
    const drawn = Math.max(width - 1, 0.5);
    context.fillStyle = `rgb(${colour.join(",")})`;
    context.fillRect(left, box.row * ROW, drawn, ROW - 1);
    if (box.node.id === marks.cursor) outline(context, left, box.row, drawn, theme.ink, 1.5);
    else if (marks.chosen === box.node.name) outline(context, left, box.row, drawn, theme.accent, 2);
    if (width > 34) write(context, box, left, drawn, colour, theme, shareText(box.node));
  }
}

/** What the colours of these nodes stand for. */
export function keysOf(nodes, theme) {
  const kinds = new Set(nodes.map(kindOf));
  return KINDS.filter(([kind]) => kinds.has(kind)).map(([, text, tone]) => {
    const item = element("span", "mp-key");
    const chip = element("i", "mp-chip");
    chip.style.background = `rgb(${(tone === null ? theme.rest : theme.tones[tone]).join(",")})`;
    item.append(chip, element("span", "mp-key-text", text));
    return item;
  });
}

function colourOf(node, theme) {
  if (node.kind === "threads" || node.kind === "small") return theme.rest;
  const kind = kindOf(node);
  const tone = KINDS.find(([name]) => name === kind)?.[2] ?? 7;
  return theme.tones[tone];
}

function outline(context, left, row, width, colour, line) {
  context.strokeStyle = colour;
  context.lineWidth = line;
  context.strokeRect(left + line / 2, row * ROW + line / 2, Math.max(width - line, 1), ROW - 1 - line);
}

function write(context, box, left, width, colour, theme, share) {
  context.font = `${box.node.own ? 600 : 400} 12px ${theme.font}`;
  context.fillStyle = inkOn(colour);
  const seen = Math.max(left, 0);
  let text = (box.passed.length ? "… " : "") + shortName(box.node);
  const room = width - 10;
  const fits = (words) => context.measureText(words).width <= room;
  if (fits(`${text} ${share}`)) text += ` ${share}`;
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
