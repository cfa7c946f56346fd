import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CATEGORIES } from "../gen/texts";
import { contrast, groundOf, inkOn, over, slotOf, strength } from "./tokens";

/** The colours of both themes, as app.css gives them. */
function themes(): Record<"light" | "dark", Record<string, string>> {
  const css = readFileSync(new URL("../app.css", import.meta.url), "utf8");
  const [light = "", dark = ""] = css.split(':root[data-theme="dark"]');
  const read = (text: string) => Object.fromEntries([...text.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map((m) => [m[1]!, m[2]!]));
  return { light: read(light), dark: read(dark) };
}

describe("contrast", () => {
  it("is that of WCAG", () => {
    expect(contrast("#ffffff", "#000000")).toBeCloseTo(21, 5);
    expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
    expect(contrast("rgb(119 119 119)", "#ffffff")).toBeCloseTo(4.48, 2);
    expect(contrast("hsl(0 0% 46.667%)", "#ffffff")).toBeCloseTo(4.48, 2);
    expect(contrast("#777", "#fff")).toBeCloseTo(4.48, 2);
    expect(over("#ff0000", "#00f", 0.5)).toBe("rgb(128 0 128)");
  });
  it("shows that what is unknown is hatched, in both themes", () => {
    expect(groundOf("unknown")).toContain("repeating-linear-gradient");
    expect(groundOf("of another version")).toBe(groundOf("unknown"));
    expect(groundOf("activations")).toBe("var(--c-activations)");
    for (const [name, tokens] of Object.entries(themes())) expect(contrast(tokens["h-unknown"]!, tokens["c-unknown"]!), name).toBeGreaterThanOrEqual(1.8);
  });
  it("is enough for names on every category, at every depth of the peak, in light and dark", () => {
    for (const [name, tokens] of Object.entries(themes())) {
      const categories = Object.keys(tokens).filter((key) => key.startsWith("c-"));
      expect(categories).toEqual(CATEGORIES.map((category) => `c-${slotOf(category)}`));
      for (const category of categories) {
        for (const depth of [0, 1, 2, 3]) {
          const ground = over(tokens[category]!, tokens.surface!, strength(depth, name === "dark"));
          expect(contrast(inkOn(ground), ground), `${name}, ${category}, depth ${depth}`).toBeGreaterThanOrEqual(4.5);
        }
      }
    }
  });
  it("is enough for names on shades of rank and of age, which are no hex colours", () => {
    for (const fill of ["hsl(205 48% 38%)", "hsl(205 48% 86%)", "hsl(205 45% 24%)", "hsl(205 45% 62%)", "rgb(68 1 84)", "rgb(253 231 37)"]) {
      expect(contrast(inkOn(fill), fill), fill).toBeGreaterThanOrEqual(4.5);
    }
  });
});
