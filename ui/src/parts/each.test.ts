// Svelte discards a whole view if two entries of a list have the same key, and names in a trace can be anything. Therefore lists
// that come from an answer are keyed by position.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

// Lists written by the page itself, and keys that are unique by construction.
const FIXED = ["LEVELS", "LANES", "GROUPINGS", "GROUPS", "views", "KEYS", "keys", "PARTS"];
const UNIQUE = ["traces as t (t.id)", "traces as trace (trace.id)", "rows as row, i (row.number)"];

const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".svelte"));
const heads = files.flatMap((file) => [...readFileSync(`src/${file}`, "utf8").matchAll(/\{#each ([\s\S]*?\))\}/g)].map((m) => ({ file, head: m[1]! })));

describe("keys of lists", () => {
  it("finds the lists", () => expect(heads.length).toBeGreaterThan(40));
  it.each(heads)("$file: $head", ({ head }) => {
    if (UNIQUE.includes(head)) return;
    const [, list, index, key] = head.match(/^([\s\S]*?) as (?:\[[^\]]*\]|\w+)(?:, (\w+))? \(([\s\S]*)\)$/) ?? [];
    if (FIXED.includes(list ?? "")) return;
    expect(key, "keyed by the place in the list").toBe(index);
    expect(index).toBeDefined();
  });
});
