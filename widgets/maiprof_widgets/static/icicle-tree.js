// The tree behind the icicle: who calls whom, which boxes to draw, and where.

const CHAIN = 0.98; // a callee with this much of its caller's time adds nothing to see

/**
 * Rows of a table of call paths as objects; `at` is where the first of them will be. Paths have
 * numbers that later pictures keep, or, in tables without, the same place by their names.
 */
function rowsOf(table, at) {
  const named = [];
  const placeOf = (row) => {
    if (table.path) return table.path[row];
    named.push(`${named[table.parent[row]] ?? ""}\n${table.names[table.name[row]]}`);
    return named[row];
  };
  return table.parent.map((parent, row) => ({
    id: at + row,
    parent: parent < 0 ? -1 : at + parent,
    path: table.path ? table.path[row] : row,
    place: placeOf(row),
    name: table.names[table.name[row]],
    kind: table.kind[row],
    own: table.own[row],
    total: table.total[row],
    self: table.self[row],
    pruned: table.pruned[row],
    small: table.small?.[row], // how many were pruned
    threads: table.threads[row],
    calls: table.calls[row],
    callees: [],
  }));
}

/** Nodes with what is under one path replaced by the finer nodes of that path. */
function refined(nodes, { under, nodes: table }) {
  const coarse = nodes.find((node) => node.path === under);
  if (!coarse) return nodes;
  const inside = new Set([coarse.id]);
  for (const node of nodes) if (inside.has(node.parent)) inside.add(node.id); // callers come first
  const kept = nodes.filter((node) => !inside.has(node.id) || node === coarse);
  const place = new Map(kept.map((node, row) => [node.id, row]));
  for (const node of kept) node.parent = place.get(node.parent) ?? -1;
  kept.forEach((node, row) => { node.id = row; });
  const [top, ...finer] = rowsOf(table, kept.length - 1);
  Object.assign(coarse, { pruned: top.pruned, small: top.small });
  for (const node of finer) if (node.parent === top.id) node.parent = coarse.id;
  return [...kept, ...finer];
}

/**
 * The nodes of a picture with their callees, refined by one layer after the other. Callees that
 * are too small to be nodes are one node together, of kind small.
 */
export function treeOf(table, layers) {
  const nodes = layers.reduce(refined, rowsOf(table, 0));
  for (const node of [...nodes]) {
    if (node.pruned) {
      const count = node.small ? `${node.small.toLocaleString("en-US")} ` : "";
      nodes.push({
        ...node, id: nodes.length, parent: node.id, path: null, place: null, kind: "small", own: false,
        name: `${count}small callee${node.small === 1 ? "" : "s"}`,
        total: node.pruned, self: node.pruned, pruned: 0, callees: [],
      });
    }
  }
  for (const node of nodes) if (node.parent >= 0) nodes[node.parent].callees.push(node);
  return nodes;
}

export function pathTo(nodes, id) {
  const path = [];
  for (let at = id; at >= 0; at = nodes[at].parent) path.unshift(nodes[at]);
  return path;
}

/** The one callee of a node that has just one, but for small ones. */
export function onlyCallee(node) {
  const real = node.callees.filter((callee) => callee.kind !== "small");
  return real.length === 1 ? real[0] : null;
}

/** The node a chain of library frames ends in, and the frames passed over. */
function endOfChain(node, every) {
  const passed = [];
  let at = node;
  while (!every && at.kind !== "threads" && !at.own && onlyCallee(at)?.total >= CHAIN * at.total) {
    passed.push(at);
    at = onlyCallee(at);
  }
  return { at, passed };
}

/**
 * Boxes to draw: {node, passed, row, from, to} with from and to in 0..1 of the width.
 * `focus` fills the width, its callers lie above it; -1 shows all groups of threads.
 */
export function boxesOf(nodes, focus, every) {
  const boxes = [];
  const above = focus < 0 ? [] : pathTo(nodes, focus).slice(0, -1)
    .filter((node) => every || node.own || node.kind === "threads");
  above.forEach((node, row) => boxes.push({ node, passed: [], row, from: 0, to: 1, caller: true }));
  const roots = focus < 0 ? nodes.filter((node) => node.parent < 0) : [nodes[focus]];
  const whole = roots.reduce((sum, node) => sum + node.total, 0) || 1;
  const open = [];
  let left = 0;
  for (const node of roots) {
    open.push({ node, from: left, to: left + node.total / whole, row: above.length });
    left += node.total / whole;
  }
  while (open.length) {
    const box = open.pop();
    const { at, passed } = endOfChain(box.node, every);
    boxes.push({ ...box, node: at, passed });
    let from = box.from;
    const scale = (box.to - box.from) / Math.max(at.total, 1);
    for (const callee of at.callees) {
      const to = from + callee.total * scale;
      open.push({ node: callee, from, to, row: box.row + 1 });
      from = to;
    }
  }
  return boxes;
}

/** Nodes whose name holds the text, and their time, a callee inside another match not twice. */
export function matching(nodes, text) {
  const wanted = text.trim().toLowerCase();
  const found = new Set();
  if (!wanted) return { found, total: 0 };
  let total = 0;
  const inside = new Array(nodes.length).fill(false);
  for (const node of nodes) { // callers come before callees
    const hit = node.path !== null && node.kind !== "threads" && node.name.toLowerCase().includes(wanted);
    const covered = node.parent >= 0 && inside[node.parent];
    if (hit) found.add(node.id);
    if (hit && !covered) total += node.total;
    inside[node.id] = hit || covered;
  }
  return { found, total };
}

/** The function of a frame `file.py(12): function`, else the name itself. */
export function shortName(node) {
  if (node.kind !== "python" && node.kind !== "forward") return node.name;
  const frame = node.name.match(/^(.*?)\((\d+)\): (.*)$/);
  const short = frame ? `${frame[3]}  ${frame[1].split("/").pop()}:${frame[2]}` : node.name;
  return node.kind === "forward" ? `backward of ${short}` : short;
}

/** The box one goes to from `here` by the arrow keys: so many rows down or columns on. */
export function boxBeside(shown, here, rows, columns) {
  if (!here) return shown.find((box) => box.row === 0 && box.from === 0);
  const row = shown.filter((box) => box.row === here.row + rows);
  if (!rows) {
    row.sort((a, b) => a.from - b.from);
    return row[row.indexOf(here) + columns];
  }
  const middle = (here.from + here.to) / 2;
  const holds = (box) => (rows < 0 ? box.from <= middle && middle < box.to
    : box.from >= here.from - 1e-9 && box.to <= here.to + 1e-9);
  return row.filter(holds).sort((a, b) => (b.to - b.from) - (a.to - a.from))[0];
}
