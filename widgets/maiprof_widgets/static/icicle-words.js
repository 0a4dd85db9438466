// What the icicle says of its nodes, in time or in bytes.

import { bytesText, durationText } from "./canvas-kit.js";

function plural(count, noun) {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Words about nodes; `unit` and `whole` (what all of them hold) are asked when they are needed. */
export function wordsOf(unit, whole) {
  const inBytes = () => unit() === "bytes";
  const amount = (value) => (inBytes() ? bytesText(value) : durationText(value / 1e3));

  function share(node) {
    const percent = (100 * node.total) / whole();
    return `${percent < 1 ? percent.toPrecision(1) : percent.toFixed(percent < 10 ? 1 : 0)} %`;
  }

  function describe(node) {
    if (node.kind === "small") {
      return { times: `${amount(node.total)} together (${share(node)})`,
        counts: "too small to draw here; a click looks into their caller" };
    }
    const times = `${amount(node.total)} with callees (${share(node)}), `
      + `${amount(node.self)} own`;
    const small = node.pruned ? `, ${amount(node.pruned)} in small callees` : "";
    if (inBytes()) return { times: times + small, counts: plural(node.calls, "block") };
    const calls = node.kind === "threads" ? "" : `, ${plural(node.calls, "call")}`;
    return { times: times + small, counts: plural(node.threads, "thread") + calls };
  }

  /** The most of the user's own code, for who cannot see the picture. */
  function most(nodes) {
    const own = nodes.filter((node) => node.own).sort((a, b) => b.self - a.self)[0];
    if (!own || !own.self) return "";
    return `Most own ${inBytes() ? "bytes" : "time"} of your code: ${own.name}, ${amount(own.self)}.`;
  }

  function matches({ found, total }) {
    if (!found.size) return "No frame here has that in its name.";
    return `${plural(found.size, "call path")}, ${amount(total)} `
      + `(${((100 * total) / whole()).toFixed(1)} % of ${inBytes() ? "all" : "the host time"} shown).`;
  }

  return { share, describe, most, matches };
}
