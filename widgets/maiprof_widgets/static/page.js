// Tells Python whether the page is dark, and shows which part of the recording is on screen.

function isDark() {
  const light = document.body.dataset.jpThemeLight;
  if (light !== undefined) return light === "false";
  const [r, g, b] = (getComputedStyle(document.body).backgroundColor.match(/\d+/g) ?? [255, 255, 255]).map(Number);
  return r + g + b < 382;
}

function render({ model, el }) {
  el.classList.add("maiprof-page");
  const words = document.createElement("span");
  words.setAttribute("role", "status");
  const whole = document.createElement("button");
  whole.textContent = "Show the whole recording";
  whole.addEventListener("click", () => model.send("whole"));
  const marked = document.createElement("span");
  const unmark = document.createElement("button");
  unmark.textContent = "Remove the mark";
  unmark.addEventListener("click", () => model.send("unmark"));
  el.append(words, whole, marked, unmark);

  const show = () => {
    words.textContent = model.get("window");
    whole.disabled = !model.get("zoomed");
    marked.textContent = model.get("moment");
    unmark.hidden = marked.hidden = !model.get("moment");
  };
  const tell = () => {
    const dark = isDark();
    el.classList.toggle("maiprof-dark", dark);
    document.body.classList.toggle("maiprof-dark-page", dark);
    if (model.get("dark") !== dark) {
      model.set("dark", dark);
      model.save_changes();
    }
  };
  const watcher = new MutationObserver(tell);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class", "style"] });
  model.on("change:window change:zoomed change:moment", show);
  show();
  tell();
  return () => {
    watcher.disconnect();
    model.off("change:window change:zoomed change:moment", show);
  };
}

export default { render };
