// Light and dark, wide and narrow, for eyes and for screen readers. The pictures are those of the guide.
import { mkdirSync } from "node:fs";
import path from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { expect, test } from "./page";
import { build } from "./program";

const PICTURES = process.env.VRAMSCOPE_PICTURES ?? path.join(build, "ui-pictures");
mkdirSync(PICTURES, { recursive: true });
const VIEWS: Record<string, string> = {
  overview: "overview", timeline: "timeline", peak: "peak", "peak-tree": "peak?mode=tree", "peak-flame": "peak?mode=flame", steps: "steps", layers: "layers", leaks: "leaks?trace=1",
  "pool-map": "map?at=peak", oom: "oom?trace=2", source: "source", diff: "diff?trace=0&with=1", start: "start", "no-steps": "steps?trace=3",
};

for (const [name, view] of Object.entries(VIEWS)) {
  test(`${name} in light and dark`, async ({ open, page }) => {
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await open(view);
      const found = await new AxeBuilder({ page }).analyze();
      expect(found.violations.map((v) => `${scheme} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`)).toEqual([]);
      await page.screenshot({ path: path.join(PICTURES, `${name}-${scheme}.png`) });
    }
  });
}

test("a narrow window loses nothing", async ({ open, page }) => {
  await page.setViewportSize({ width: 600, height: 900 });
  for (const view of ["overview", "timeline", "peak", "map", "layers"]) {
    await open(view);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), view).toBeLessThanOrEqual(600);
    await page.screenshot({ path: path.join(PICTURES, `${view}-narrow.png`) });
  }
});
