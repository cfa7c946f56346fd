import { expect, it } from "vitest";
import { VIEW_TABLE } from "../gen/views";

it("has a component for every view, and one key for each", () => {
  const components = Object.keys(import.meta.glob("./*.svelte"));
  for (const view of VIEW_TABLE) expect(components).toContain(`./${view.component}.svelte`);
  const keys = VIEW_TABLE.map((view) => view.key).filter((key) => key);
  expect(new Set(keys).size).toBe(keys.length);
});
