// The head of the memory view: what is shown of which memory, by what, and what is searched.

import { element } from "./canvas-kit.js";

const QUIET_MS = 300;
const WORDS = {
  category: "what it is for", module: "module or file", age: "how long it lives", time: "by time",
  event: "by event",
};

function selectOf(label, changed) {
  const box = element("label", "mp-check");
  const select = element("select", "mp-select");
  select.setAttribute("aria-label", label);
  select.addEventListener("change", () => changed(select.value));
  box.append(`${label} `, select);
  return {
    box,
    offer(values, chosen, texts) {
      select.replaceChildren(...values.map((value, i) => {
        const option = element("option", "", texts?.[i] ?? WORDS[value] ?? value);
        option.value = String(value);
        return option;
      }));
      select.value = String(chosen);
    },
  };
}

/** The controls; `send` carries a wish to Python, `redrawn` and `reset` stay in the browser. */
export function memoryControls(send, { redrawn, reset }) {
  const header = element("div", "mp-header");
  const title = element("strong", "mp-title");
  const devices = selectOf("memory of", (value) => send({ kind: "device", device: Number(value) }));
  const axis = selectOf("axis", (value) => send({ kind: "axis", axis: value }));
  const colours = selectOf("colour by", (value) => send({ kind: "colour", by: value }));
  const search = element("input", "mp-search");
  search.type = "search";
  search.placeholder = "function, file, >10MiB";
  search.setAttribute("aria-label", "Search allocations by function, file or size");
  search.title = "Part of a function, file, operator or module, or a size such as >10MiB; "
    + "of several words all must match";
  let timer = 0;
  const find = () => {
    clearTimeout(timer);
    send({ kind: "search", text: search.value });
  };
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, QUIET_MS);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") find();
    event.stopPropagation(); // a notebook would take letters for commands
  });
  const reservedBox = element("label", "mp-check");
  const reserved = element("input");
  reserved.type = "checkbox";
  reserved.checked = true;
  reserved.addEventListener("change", redrawn);
  reservedBox.append(reserved, " reserved");
  const whole = element("button", "mp-button", "Whole recording");
  whole.type = "button";
  whole.addEventListener("click", reset);
  header.append(title, devices.box, search, colours.box, axis.box, reservedBox, whole);

  return {
    header,
    get reserved() { return reserved.checked; },
    set atWhole(value) { whole.disabled = value; },
    stop: () => clearTimeout(timer),
    describe(about) {
      const nothing = Boolean(about.empty);
      title.textContent = about.title;
      for (const part of [search, colours.box]) part.hidden = nothing;
      reservedBox.hidden = nothing || !about.reserved;
      whole.hidden = nothing;
      axis.box.hidden = nothing || !about.axes;
      devices.box.hidden = about.devices.length < 2;
      devices.offer(about.devices.map((_, i) => i), about.device, about.devices);
      if (!search.matches(":focus")) search.value = about.search ?? "";
      axis.offer(["time", "event"], about.axes);
      colours.offer(about.colours ?? [], about.colour_by);
    },
  };
}
