import { expect, it } from "vitest";
import { formatChanges, parseChanges } from "./changes";

it("keeps the controls in the address", () => {
  const changes = parseChanges("batch:64,optimizer:sgd,card:H100-80GB");
  expect(changes).toEqual({ batch: "64", accumulate: "", precision: "", optimizer: "sgd", allocator: "", card: "H100-80GB" });
  expect(formatChanges(changes)).toBe("batch:64,optimizer:sgd,card:H100-80GB");
});

it("ignores what another view left there", () => {
  expect(formatChanges(parseChanges("flame"))).toBe("");
  expect(formatChanges(parseChanges("depth:3,batch:8"))).toBe("batch:8");
});
