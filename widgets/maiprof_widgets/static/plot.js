// A model has two seconds to start, and reading plotly may take longer on a busy machine: it is
// read when the first plot of a page is drawn, once for all of them. Plotly's own half starts
// anew with every view, so that one that has left the page listens no longer.

async function read(model) {
  const source = await model.widget_manager.get_model(model.get("_plotly").replace("IPY_MODEL_", ""));
  const address = URL.createObjectURL(new Blob([source.get("program")], { type: "text/javascript" }));
  try {
    return await import(address);
  } finally {
    URL.revokeObjectURL(address);
  }
}

function plotly(model) {
  globalThis.maiprofPlotly ??= read(model).catch((problem) => {
    globalThis.maiprofPlotly = undefined; // the next plot tries again
    throw problem;
  });
  return globalThis.maiprofPlotly;
}

async function render({ model, el, signal }) {
  const plot = (await plotly(model)).default();
  if (signal?.aborted) return undefined;
  const drawn = ({ detail }) => {
    if (detail.element === el) model.send("drawn");
  };
  document.addEventListener("plotlywidget-after-render", drawn);
  plot.initialize({ model });
  const remove = plot.render({ el });
  return () => {
    document.removeEventListener("plotlywidget-after-render", drawn);
    remove();
  };
}

export default { render };
