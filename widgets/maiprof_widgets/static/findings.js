// Findings as cards; what passed, does not apply or failed as folded lists.

import { element, themeOf, watchTheme } from "./canvas-kit.js";

const WORDS = { high: "High", medium: "Medium", low: "Low" };
const FIRST = 3; // cards that are not folded in the compact form
const FOLDED = [
  ["failed", "failed"],
  ["passed", "passed"],
  ["not-applicable", "not applicable"],
];

function render({ model, el }) {
  const root = element("div", "maiprof mp-findings");
  const headline = element("p", "mp-headline");
  headline.setAttribute("role", "status");
  const aside = element("p", "mp-notices");
  const cards = element("div", "mp-cards");
  const lists = element("div", "mp-folds");
  const status = element("p", "mp-status");
  root.append(headline, aside, cards, lists, status);
  el.append(root);
  const opened = new Set(); // what the reader unfolded stays so while further rules answer

  function folded(key, summary, make) {
    const box = element("details", "mp-fold");
    box.append(element("summary", "", summary));
    box.open = opened.has(key);
    if (box.open) box.append(make());
    box.addEventListener("toggle", () => {
      if (box.open) {
        opened.add(key);
        if (box.childElementCount === 1) box.append(make());
      } else opened.delete(key);
    });
    return box;
  }

  function line(label, text) {
    const made = element("div", "mp-line");
    made.append(element("b", "", `${label} `), ...breakable(text));
    return made;
  }

  /** Long settings may break behind = and :, not in the middle of a word. */
  function breakable(text) {
    return text.split(/(?<=\w[=:])(?=\w)/).flatMap((part, i) => (i
      ? [document.createElement("wbr"), part] : [part]));
  }

  function cardOf(card) {
    const made = element("article", `mp-card mp-${card.severity}`);
    const head = element("div", "mp-card-head");
    head.append(element("span", "mp-severity", WORDS[card.severity] ?? ""),
      element("strong", "", card.title));
    made.append(head);
    if (card.cost) made.append(element("div", "mp-cost", card.cost));
    if (card.advice) {
      const change = card.change ? ` (size of the change: ${card.change})` : "";
      made.append(line("To try:", card.advice + change));
    }
    if (card.gain) made.append(line("Projected gain:", card.gain));
    const foot = element("div", "mp-dim mp-foot");
    foot.append(element("span", "", `Trust: ${card.state}.`));
    if (card.look) foot.append(element("span", "", ` Look at: ${card.look}.`));
    foot.append(element("code", "", card.rule));
    made.append(foot);
    const folds = element("div", "mp-folds");
    if (card.trust) {
      const why = card.state === "ok" ? "What to know of it" : `Why trust is ${card.state}`;
      folds.append(folded(`trust ${card.rule}`, why, () => element("p", "mp-dim", card.trust)));
    }
    if (card.evidence.length) {
      const count = card.evidence.length + card.more;
      folds.append(folded(`evidence ${card.rule}`, `Evidence: ${count} row${count === 1 ? "" : "s"}`,
        () => evidenceOf(card)));
    }
    made.append(folds);
    return made;
  }

  function evidenceOf(card) {
    const list = element("ul", "mp-evidence");
    card.evidence.forEach((row, number) => {
      const item = element("li");
      const text = row.cells.map(([label, value]) => `${label} ${value}`).join(" · ");
      if (row.action) {
        const button = element("button", "mp-row", text);
        button.type = "button";
        button.title = row.action === "time" ? "Show this time in all views"
          : "Select this in all views";
        button.addEventListener("click", () => {
          model.send({ kind: "evidence", rule: card.rule, row: number });
        });
        item.append(button);
      } else item.append(element("span", "mp-row", text));
      list.append(item);
    });
    if (card.more) list.append(element("li", "mp-dim", `${card.more} more rows`));
    return list;
  }

  function listOf(shown) {
    const list = element("ul", "mp-outcomes");
    for (const card of shown) {
      const item = element("li");
      item.append(element("code", "", card.rule), ` ${card.title}`);
      const why = [card.reason, card.outcome === "passed" && card.state !== "ok"
        ? `Trust: ${card.state}.` : ""].filter(Boolean).join(" ");
      if (why) item.append(element("div", "mp-dim", why));
      list.append(item);
    }
    return list;
  }

  function show() {
    const all = model.get("cards");
    const found = all.filter((card) => card.outcome === "found");
    headline.textContent = model.get("headline");
    aside.textContent = model.get("aside");
    const waiting = model.get("waiting") > 0;
    // room is kept meanwhile, so that what lies beneath does not move with every answer
    root.classList.toggle("mp-waiting", waiting && model.get("compact"));
    const first = model.get("compact") ? found.slice(0, FIRST) : found;
    const rest = found.slice(first.length);
    cards.replaceChildren(...first.map(cardOf));
    const folds = [];
    if (rest.length) {
      const others = `${rest.length} more finding${rest.length === 1 ? "" : "s"}`;
      folds.push(folded("more", others, () => {
        const box = element("div", "mp-cards");
        box.append(...rest.map(cardOf));
        return box;
      }));
    }
    for (const [outcome, text] of FOLDED) {
      const shown = all.filter((card) => card.outcome === outcome);
      if (!shown.length) continue;
      folds.push(folded(outcome, `${shown.length} ${text}`, () => listOf(shown)));
    }
    lists.replaceChildren(...folds);
    root.dataset.painted = String(Number(root.dataset.painted ?? 0) + 1);
    root.dataset.waiting = String(model.get("waiting"));
  }

  function retheme() {
    root.classList.toggle("mp-dark", model.get("theme") === "dark");
    root.classList.toggle("mp-light", model.get("theme") === "light");
    root.classList.toggle("mp-on-dark", themeOf(root).dark);
  }

  function showStatus() {
    status.textContent = model.get("status");
    status.hidden = !status.textContent;
  }

  const listeners = { "change:cards": show, "change:headline": show, "change:aside": show, "change:theme": retheme,
    "change:status": showStatus };
  for (const [event, listener] of Object.entries(listeners)) model.on(event, listener);
  const stopTheme = watchTheme(retheme);
  show();
  showStatus();
  const timer = setTimeout(() => {
    retheme(); // notebooks render before they attach, when styles are not known yet
    if (model.get("waiting")) model.send({ kind: "ready" });
  });

  return () => {
    for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
    clearTimeout(timer);
    stopTheme();
  };
}

export default { render };
