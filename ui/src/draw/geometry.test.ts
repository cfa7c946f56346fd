import { describe, expect, it } from "vitest";
import type { Stack, TreeNode } from "../gen/rpc";
import { byteScale, tickText, timeTicks } from "./axis";
import { onPixels, runs } from "./pixels";
import { panned, Scale, stepWarp, zoomed, LINEAR } from "./scale";
import { columnAt } from "./stack";
import { flameRects, stackRects, treemapRects } from "./tree";

describe("axes", () => {
  it("end on a round number above the highest", () => {
    expect(byteScale(768.9, 1, 4)).toEqual({ top: 800, step: 200 });
    expect(byteScale(259.8, 1, 5).top).toBe(300);
  });
  it("tick at 1, 2, 5", () => {
    const { ticks, step } = timeTicks(6_237_800, 6_257_200, 10);
    expect(step).toBe(2000);
    expect(ticks[0]).toBe(6_238_000);
    expect(tickText(6_238_000, step)).toBe("6.238");
  });
});

describe("time", () => {
  it("is the same there and back, warped or not", () => {
    const warp = stepWarp([100, 5000, 5100, 5200], 5300);
    for (const t of [0, 50, 100, 4999, 5000, 5155, 5300]) expect(warp.t(warp.u(t))).toBeCloseTo(t, 6);
    expect(warp.u(5100) - warp.u(5000)).toBeCloseTo(warp.u(5200) - warp.u(5100), 6);
    const scale = new Scale(warp, 0, 5300, 100, 900);
    expect(scale.t(scale.x(5123))).toBeCloseTo(5123, 6);
    expect(stepWarp([], 10)).toBe(LINEAR);
  });
  it("stays inside the run", () => {
    expect(zoomed([0, 1000], 500, 4, 1000)).toEqual([0, 1000]);
    expect(zoomed([400, 600], 500, 0.5, 1000)).toEqual([450, 550]);
    expect(panned([900, 1000], 50, 1000)).toEqual([900, 1000]);
    expect(panned([100, 200], -500, 1000)).toEqual([0, 100]);
  });
});

const node = (parent: number, depth: number, bytes: number): TreeNode => ({ parent, depth, name: "", category: "", bytes, blocks: 1, rest: false });
const TREE = [node(-1, 0, 60), node(0, 1, 40), node(0, 1, 20), node(-1, 0, 40)];

describe("pictures of a tree", () => {
  it("give each node height or width by its bytes", () => {
    const columns = [{ x: 0, w: 10 }, { x: 10, w: 10 }];
    expect(stackRects(TREE, 100, columns, 200).map((c) => c.h)).toEqual([120, 80, 40, 80]);
    expect(flameRects(TREE, 100, 500, 20).map((c) => c.w)).toEqual([300, 200, 100, 200]);
  });
  it("give each leaf of the tree map area by its bytes, without overlap", () => {
    const cells = treemapRects([node(-1, 0, 50), node(-1, 0, 30), node(-1, 0, 20)], 100, 100);
    expect(cells.map((c) => Math.round(c.w * c.h))).toEqual([5000, 3000, 2000]);
    for (const a of cells) for (const b of cells) if (a !== b) expect(a.x + a.w <= b.x + 1e-9 || b.x + b.w <= a.x + 1e-9 || a.y + a.h <= b.y + 1e-9 || b.y + b.h <= a.y + 1e-9).toBe(true);
  });
});

it("finds the column under an instant", () => {
  const data = { t: Float64Array.from([0, 10, 20, 40]) } as Stack;
  const pieces = [{ t0: 0, t1: 40, data }];
  expect(columnAt(pieces, 0)?.index).toBe(0);
  expect(columnAt(pieces, 19)?.index).toBe(1);
  expect(columnAt(pieces, 39)?.index).toBe(2);
  expect(columnAt(pieces, 41)).toBeNull();
});

describe("columns on pixels", () => {
  const clip = { x0: 10, x1: 14 };
  const part = (height: number[], t: number[]) => ({ t0: 0, t1: 1e9, t, height });
  it("show the highest of those that share a pixel", () => {
    const pixels = onPixels([part([1, 9, 2, 3, 3, 3, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8])], (t) => 10 + t / 2, clip, 1);
    expect([...pixels.index]).toEqual([1, 3, 4, 6]);
  });
  it("give every column a pixel, however narrow it is", () => {
    const pixels = onPixels([part([1, 50, 1], [0, 3.01, 3.02, 8])], (t) => 10 + t / 2, clip, 1);
    expect([...pixels.index]).toEqual([0, 1, 2, 2]);
  });
  it("join neighbors of one height, and leave out what is not known", () => {
    const rects: number[][] = [];
    const pixels = onPixels([part([5, 5, 7], [0, 1, 2, 3])], (t) => 10 + t, clip, 1);
    runs(pixels, clip.x0, 1, (_, i) => 100 - [5, 5, 7][i]!, (x, y, width) => rects.push([x, y, width]));
    expect(rects).toEqual([[10, 95, 2], [12, 93, 1]]);
  });
});
