import { describe, expect, it } from "vitest";
import { cut, fitName } from "./fit";

// Every character is one wide.
const ctx = { measureText: (text: string) => ({ width: text.length }) } as unknown as CanvasRenderingContext2D;

describe("a name in little room", () => {
  it.each([[30, "encoder/layer_48 to 49"], [15, "layer_48 to 49"], [10, "48 to 49"], [6, "48–49"]])("of %d is the longest form that tells it apart", (room, text) => {
    expect(fitName(ctx, "encoder/layer_48 to 49", room)).toBe(text);
  });
  it("is cut in the middle only if no form fits", () => {
    expect(fitName(ctx, "optimizer state", 9)).toBe("opti…tate");
    expect(fitName(ctx, "dense_1 Relu", 8, ["dense_1"])).toBe("dense_1");
    expect(cut(ctx, "abc", 1)).toBe("");
  });
  it("is left out where too few letters would remain to tell it from another", () => {
    expect(cut(ctx, "activations", 6)).toBe("act…ns");
    for (const room of [3, 4, 5]) expect(cut(ctx, "activations", room)).toBe("");
    expect(fitName(ctx, "encoder/layer_48 to 49", 5)).toBe("48–49");
  });
});
