// The tables sort at a click on the arrow beside a column's name only: take the whole cell.

function render({ el }) {
  el.style.display = "none";
  const sort = (event) => {
    const cell = event.target.closest?.("thead th");
    if (!cell || event.target.closest(".dt-column-order")) return;
    if (!el.parentElement?.contains(cell)) return;
    if (String(document.getSelection())) return; // somebody copies the name
    const arrow = cell.querySelector(".dt-column-order");
    // Shift adds a column to the order, as at the arrow.
    arrow?.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey: event.shiftKey }));
  };
  document.addEventListener("click", sort); // views are made before they are on the page
  return () => document.removeEventListener("click", sort);
}

export default { render };
