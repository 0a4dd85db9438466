// What hovering over the memory view tells.

import { bytesText, durationText, element } from "./canvas-kit.js";
import { owner } from "./memory-bands.js";

/** A place on the view's axis, in words; empty where there is only one moment. */
export function momentText(axis, us) {
  if (axis === "order") return `event ${Math.round(us * 1e3).toLocaleString("en-US")}`;
  return axis === "state" ? "" : durationText(us);
}

function lifeText(picture, band, axis) {
  if (axis === "state") return "alive when the snapshot was taken";
  const start = picture.from_us + picture.start_us[band];
  const end = picture.from_us + picture.end_us[band];
  const old = picture.before_log[band];
  const begun = old ? "from before the log" : `from ${momentText(axis, start)}`;
  if (!Number.isFinite(end)) return `${begun}, alive at the end of the log`;
  if (old) return `${begun} to ${momentText(axis, end)}`;
  const lived = axis === "order"
    ? `${Math.round((end - start) * 1e3).toLocaleString("en-US")} events`
    : durationText(end - start);
  return `${begun} to ${momentText(axis, end)}: lived ${lived}`;
}

/** The box; `ask(allocation)` asks Python for what the picture does not hold. */
export function memoryTip(root, stageHost, ask) {
  const tip = element("div", "mp-tip");
  tip.hidden = true;
  stageHost.append(tip);
  const known = new Map();
  let shown = null;
  let pointer = null;

  function place() {
    const right = pointer.x + 16 + tip.offsetWidth > stageHost.clientWidth;
    const left = right ? pointer.x - tip.offsetWidth - 12 : pointer.x + 16;
    tip.style.left = `${Math.max(0, left)}px`;
    // inside the view's own box: notebooks clip what reaches out of an output
    const lowest = root.clientHeight - stageHost.offsetTop - tip.offsetHeight - 4;
    tip.style.top = `${Math.max(-stageHost.offsetTop, Math.min(pointer.y + 12, lowest))}px`;
  }

  function bandLines(picture, band, axis) {
    const allocation = picture.allocation[band];
    if (!known.has(allocation)) {
      known.set(allocation, null);
      ask(allocation);
    }
    const told = known.get(allocation);
    const frames = told ? [...told.frames] : ["…"];
    if (told && told.count > frames.length) {
      frames.push(`… ${told.count - frames.length} more, click to see all`);
    }
    if (told && !told.count) frames.push("no stack was recorded");
    return [
      element("strong", "", bytesText(picture.size_bytes[band])),
      element("div", "", lifeText(picture, band, axis)),
      ...(told?.lines ?? []).map((line) => element("div", "", line)),
      element("pre", "mp-frames", frames.join("\n")),
    ];
  }

  function mergedLines(picture, merged, column) {
    const at = merged * picture.sample_us.length + column;
    const bytes = bytesText(picture.merged_bytes[at]);
    const count = picture.merged_count[at];
    const many = count === 1 ? "1 allocation" : `${count.toLocaleString("en-US")} allocations`;
    return [
      element("strong", "", `${many} from ${picture.merged_names[merged]}`),
      element("div", "", `together ${bytes}, too small to draw one by one; zoom in`),
    ];
  }

  function fill() {
    const { picture, id, column, about } = shown;
    const { band, merged, rest } = owner(picture, id);
    const lines = [];
    if (band !== undefined) lines.push(...bandLines(picture, band, about.axis));
    if (merged !== undefined) lines.push(...mergedLines(picture, merged, column));
    if (rest) {
      lines.push(element("strong", "", bytesText(picture.rest_bytes[column])));
      lines.push(element("div", "", about.rest_text));
    }
    const at = momentText(about.axis, picture.from_us + picture.sample_us[column]);
    const parts = [`${bytesText(picture.allocated_bytes[column])} allocated`];
    if (!Number.isNaN(picture.reserved_bytes[column])) {
      parts.push(`${bytesText(picture.reserved_bytes[column])} reserved`);
    }
    lines.push(element("div", "mp-dim", `${at ? `at ${at}: ` : ""}${parts.join(", ")}`));
    tip.replaceChildren(...lines);
    tip.hidden = false;
    place();
  }

  return {
    show(point, what) {
      pointer = point;
      shown = what;
      fill();
    },
    hide() {
      shown = null;
      tip.hidden = true;
    },
    heard(message) {
      known.set(message.allocation, message);
      if (shown) fill();
    },
    forget: () => known.clear(),
  };
}
