// Notebooks draw a plot before it is on the page, when it cannot know its width: tell it later.

function render({ el }) {
  el.style.height = "0";
  const fit = () => {
    const plot = el.parentElement?.querySelector(".js-plotly-plot");
    if (!plot || !el.clientWidth) return;
    const drawn = plot.querySelector(".main-svg")?.getBoundingClientRect().width ?? 0;
    if (Math.abs(drawn - plot.clientWidth) > 1 && plot.clientWidth > 0) {
      // Its own listener only: the event itself would end a drag in another plot.
      if (plot._responsiveChartHandler) plot._responsiveChartHandler();
      else window.dispatchEvent(new Event("resize"));
    }
  };
  const observer = new ResizeObserver(() => requestAnimationFrame(fit));
  observer.observe(el);
  const waiting = setInterval(() => {
    if (!el.parentElement?.querySelector(".js-plotly-plot .main-svg")) return;
    clearInterval(waiting);
    fit();
  }, 100);
  return () => {
    observer.disconnect();
    clearInterval(waiting);
  };
}

export default { render };
