import { expect, it } from "vitest";
import type { Layers } from "../../gen/rpc";
import { byPrefix, PARTS_OF_LAYER, rowsOf } from "./prefix";

it("has the parts of a layer in the order of stacks", () => {
  expect(PARTS_OF_LAYER).toEqual(["parameters", "optimizer_state", "inputs", "activations", "gradients", "activation_gradients", "temporaries", "other"]);
});

it("filters a group as the program filters its layers", () => {
  const names = ["encoder", "encoder/dense", "encoder/norm", "my block/a", "my block/b c", "head"];
  const filters = ["layer:encoder", "layer:encoder/dense", "layer:encoder/norm", 'layer:"my block/a"', 'layer:"my block/b c"', "layer:head"];
  const layers = { rows: names.map((name) => ({ name })), own_peaks: [], filters } as unknown as Layers;
  expect(byPrefix(rowsOf(layers)).map((row) => row.filter)).toEqual(["layer:encoder/*", 'layer:"my block/*"', "layer:head"]);
});
