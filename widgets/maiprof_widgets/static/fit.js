// Notebooks draw a plot before it is on the page, when it cannot know its width: tell it later.

function render({ el }) {
  el.style.height = "0";
  const fit = () => {
    const plot = el.parentElement?.querySelector(".js-plotly-plot");
    if (!plot || !el.clientWidth) return;
    const drawn = plot.querySelector(".main-svg")?.getBoundingClientRect().width ?? 0;
    if (Math.abs(drawn - plot.clientWidth) > 1 && plot.clientWidth > 0) {
      window.dispatchEvent(new Event("resize")); // what a responsive plot listens to
    }
  };
  const observer = new ResizeObserver(() => requestAnimationFrame(fit));
  observer.observe(el);
  const late = setTimeout(fit, 800); // the plot may have been drawn after this
  return () => {
    observer.disconnect();
    clearTimeout(late);
  };
}

export default { render };
