// A model has two seconds to start, and reading plotly may take longer on a busy machine: the
// model starts at once, its plot follows. What a page has read serves all its plots.

function plotly(text) {
  globalThis.maiprofPlotly ??= import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  return globalThis.maiprofPlotly;
}

export default () => {
  let started;
  return {
    initialize({ model }) {
      started = plotly(model.get("_plotly")).then((module) => {
        const widget = module.default();
        widget.initialize({ model });
        return widget;
      });
    },
    async render(context) {
      return (await started).render(context);
    },
  };
};
