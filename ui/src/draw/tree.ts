// Three drawings of one tree: Stack (opens to the right, height is bytes), Tree map (area is bytes), Flame (width is bytes).
import type { TreeNode } from "../gen/rpc";

export interface TreeRect {
  node: number;
  x: number;
  y: number;
  w: number;
  h: number;
}

export function childrenOf(nodes: TreeNode[]): number[][] {
  const out: number[][] = nodes.map(() => []);
  nodes.forEach((node, i) => { if (node.parent >= 0) out[node.parent]?.push(i); });
  return out;
}

/** Where names lead, from the root; -1 where they lead nowhere. */
export function nodeAt(nodes: TreeNode[], path: string[]): number {
  let at = -1;
  for (const name of path) {
    const next = nodes.findIndex((node) => node.parent === at && node.name === name && !node.rest);
    if (next < 0) return -1;
    at = next;
  }
  return at;
}

export function pathOf(nodes: TreeNode[], node: number): string[] {
  const names: string[] = [];
  for (let at = node; at >= 0; at = nodes[at]!.parent) names.unshift(nodes[at]!.name);
  return names;
}

/** A node and all below it; `from` gives each its number in the whole tree. */
export function subtree(nodes: TreeNode[], root: number): { nodes: TreeNode[]; from: number[] } {
  if (root < 0) return { nodes, from: nodes.map((_, i) => i) };
  const place = new Map<number, number>([[root, 0]]);
  const from = [root];
  const out: TreeNode[] = [{ ...nodes[root]!, parent: -1, depth: 0 }];
  nodes.forEach((node, i) => {
    const parent = place.get(node.parent);
    if (parent === undefined) return;
    place.set(i, out.length);
    from.push(i);
    out.push({ ...node, parent, depth: node.depth - nodes[root]!.depth });
  });
  return { nodes: out, from };
}

/** Columns of given width; a node's height is its bytes; the first root lies on top. */
export function stackRects(nodes: TreeNode[], total: number, columns: { x: number; w: number }[], height: number): TreeRect[] {
  const cells: TreeRect[] = [];
  const children = childrenOf(nodes);
  const place = (list: number[], top: number) => {
    let y = top;
    for (const i of list) {
      const node = nodes[i]!;
      const h = (node.bytes / Math.max(1, total)) * height;
      const column = columns[node.depth];
      if (column) cells.push({ node: i, x: column.x, y, w: column.w, h });
      place(children[i]!, y);
      y += h;
    }
  };
  place(roots(nodes), 0);
  return cells;
}

export function flameRects(nodes: TreeNode[], total: number, width: number, row: number): TreeRect[] {
  const cells: TreeRect[] = [];
  const children = childrenOf(nodes);
  const place = (list: number[], left: number) => {
    let x = left;
    for (const i of list) {
      const node = nodes[i]!;
      const w = (node.bytes / Math.max(1, total)) * width;
      cells.push({ node: i, x, y: node.depth * row, w, h: row });
      place(children[i]!, x);
      x += w;
    }
  };
  place(roots(nodes), 0);
  return cells;
}

/** Squarified tree map: rectangles as square as they get, each inside its parent below its parent's name. */
export function treemapRects(nodes: TreeNode[], width: number, height: number, head = 17): TreeRect[] {
  const cells: TreeRect[] = [];
  const children = childrenOf(nodes);
  const place = (list: number[], x: number, y: number, w: number, h: number) => {
    for (const cell of squarify(list.map((i) => ({ node: i, bytes: nodes[i]!.bytes })), x, y, w, h)) {
      cells.push(cell);
      const inner = children[cell.node]!;
      if (inner.length && cell.w > 24 && cell.h > head + 10) place(inner, cell.x + 2, cell.y + head, cell.w - 4, cell.h - head - 2);
    }
  };
  place(roots(nodes), 0, 0, width, height);
  return cells;
}

function squarify(items: { node: number; bytes: number }[], x: number, y: number, w: number, h: number): TreeRect[] {
  const out: TreeRect[] = [];
  let rest = items.filter((i) => i.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  let sum = rest.reduce((s, i) => s + i.bytes, 0);
  while (rest.length && w > 0.5 && h > 0.5) {
    const short = Math.min(w, h);
    const scale = (w * h) / sum;
    let taken = 0;
    let bytes = 0;
    let worst = Infinity;
    while (taken < rest.length) {
      const next = bytes + rest[taken]!.bytes;
      const side = (next * scale) / short;
      const ratio = Math.max(...rest.slice(0, taken + 1).map((i) => { const other = (i.bytes * scale) / side; return Math.max(side / other, other / side); }));
      if (ratio > worst) break;
      worst = ratio;
      bytes = next;
      taken++;
    }
    const side = (bytes * scale) / short;
    let along = 0;
    for (const item of rest.slice(0, taken)) {
      const length = (item.bytes * scale) / side;
      out.push(w >= h ? { node: item.node, x, y: y + along, w: side, h: length } : { node: item.node, x: x + along, y, w: length, h: side });
      along += length;
    }
    if (w >= h) { x += side; w -= side; } else { y += side; h -= side; }
    sum -= bytes;
    rest = rest.slice(taken);
  }
  return out;
}

const roots = (nodes: TreeNode[]) => nodes.map((_, i) => i).filter((i) => nodes[i]!.parent < 0);
