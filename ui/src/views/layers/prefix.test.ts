import { expect, it } from "vitest";
import { PARTS_OF_LAYER } from "./prefix";

it("has the parts of a layer in the order of stacks", () => {
  expect(PARTS_OF_LAYER).toEqual(["parameters", "optimizer_state", "inputs", "activations", "gradients", "activation_gradients", "temporaries", "other"]);
});
