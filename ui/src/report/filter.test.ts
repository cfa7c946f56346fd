// A filter that is wrong gets the same answer from a report as from the program (tests/analyze/filter_test.cpp).
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compileFilter } from "./filter";

const lines = readFileSync("../tests/analyze/filter_errors.tsv", "utf8").trimEnd().split("\n").map((line) => line.split("\t") as [filter: string, message: string]);

function errorOf(filter: string): string {
  try { compileFilter(filter); } catch (error) { return (error as Error).message; }
  return "";
}

it("takes quoted text as the program writes it", () => {
  const matches = compileFilter(String.raw`layer:"say \"hi\" a\\b"`);
  const block = (layer: string) => ({ text: (field: string) => (field === "layer" ? layer : ""), granted: 1, requested: 1 });
  expect(matches(block(String.raw`say "hi" a\b`))).toBe(true);
  expect(matches(block(String.raw`say \"hi\" a\\b`))).toBe(false);
});

describe("errors of a filter", () => {
  it("finds the list", () => expect(lines.length).toBe(12));
  it.each(lines)("%s", (filter, message) => expect(errorOf(filter).slice(0, message.length)).toBe(message));
  it("are not found in one that is right", () => expect(errorOf('category:"optimizer state" or not (category:xla_temporaries and size>1MiB)')).toBe(""));
});
