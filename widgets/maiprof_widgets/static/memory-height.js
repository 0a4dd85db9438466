// Zoom along the memory axis of the memory view: how low a band is drawn is a matter of scale.

const TALLEST = 256; // times the whole height

/** Ctrl-wheel (or a pinch) zooms at the pointer; where `always()` a plain wheel does, too. */
export function heightZoom(canvas, { plot, always, changed }) {
  let low = 0; // shares of the whole height
  let high = 1;
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !always()) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // not also along the time axis
    const { top, height } = plot();
    const up = 1 - (event.clientY - canvas.getBoundingClientRect().top - top) / height;
    const at = low + Math.min(Math.max(up, 0), 1) * (high - low);
    const amount = Math.max(-240, Math.min(240, event.deltaY * (event.deltaMode === 1 ? 16 : 1)));
    const wide = Math.min(1, Math.max(1 / TALLEST, (high - low) * Math.exp(amount * 0.004)));
    const share = high > low ? (at - low) / (high - low) : 0;
    low = Math.min(Math.max(at - share * wide, 0), 1 - wide);
    high = low + wide;
    changed();
  }, { passive: false });
  return {
    /** Bytes at the bottom and at the top of the plot. */
    range: (highest) => [low * highest, high * highest],
    get scale() { return 1 / (high - low); },
    reset() {
      low = 0;
      high = 1;
    },
  };
}
