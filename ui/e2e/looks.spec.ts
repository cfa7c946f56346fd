// Light and dark, wide and narrow, for eyes and for screen readers. The pictures are those of the guide.
import { mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { expect, test, visit } from "./page";
import { build, noTensorFlow, root } from "./program";

const PICTURES = path.join(build, "ui-pictures");
const GUIDE = process.env.VRAMSCOPE_PICTURES; // `make pictures` renews those of the guide
for (const folder of [PICTURES, GUIDE]) if (folder) mkdirSync(folder, { recursive: true });

// Name of the picture, and the view: of a real training, or of traces that were made to have a problem.
const REAL: Record<string, string> = {
  overview: "overview", timeline: "timeline", "timeline-steps": "timeline?mode=steps", peak: "peak", "peak-tree": "peak?mode=tree", "peak-flame": "peak?mode=flame", steps: "steps", layers: "layers",
  source: "source", diff: "diff?trace=0&with=1",
};
const MADE: Record<string, string> = {
  leaks: "leaks?trace=1", "pool-map": "map?at=peak", "pool-map-age": "map?at=peak&mode=age", oom: "oom?trace=4", start: "start", "no-steps": "steps?trace=3", autotuning: "overview",
};

for (const [name, view] of [...Object.entries(REAL), ...Object.entries(MADE)]) {
  test(`${name} in light and dark`, async ({ page, served, real }) => {
    if (name in REAL) test.skip(noTensorFlow !== "", noTensorFlow);
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await visit(page, name in REAL ? real : served, view);
      const found = await new AxeBuilder({ page }).analyze();
      expect(found.violations.map((v) => `${scheme} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`)).toEqual([]);
      await page.screenshot({ path: path.join(PICTURES, `${name}-${scheme}.png`) });
      if (GUIDE && (scheme === "light" || name === "overview")) await page.screenshot({ path: path.join(GUIDE, `${name}-${scheme}.png`) });
    }
  });
}

test("every picture is in the guide", () => {
  const guide = readFileSync(path.join(root, "docs/guide/looking.md"), "utf8");
  for (const name of [...Object.keys(REAL), ...Object.keys(MADE)]) {
    expect(guide, name).toContain(`pictures/${name}-light.png`);
    expect(readFileSync(path.join(root, `docs/guide/pictures/${name}-light.png`)).length, name).toBeGreaterThan(10_000);
  }
});

test("a narrow window loses nothing", async ({ open, page }) => {
  for (const width of [600, 390]) {
    await page.setViewportSize({ width, height: 900 });
    for (const view of ["overview", "timeline", "peak", "map", "layers", "steps", "leaks?trace=1", "oom?trace=2", "source", "diff?with=1", "start"]) {
      await open(view);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), view).toBeLessThanOrEqual(width);
      await page.screenshot({ path: path.join(PICTURES, `${view.replace(/\?.*/, "")}-${width === 600 ? "narrow" : "phone"}.png`) });
    }
  }
});

test("on a phone the ledger names its parts, every view can be reached, nothing is cut or covered", async ({ open, page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await open("overview");
  const categories = page.locator("[data-ledger=Categories]");
  for (const name of ["activations", "gradients"]) await expect(categories.getByText(name).first()).toBeVisible();
  // No view is out of reach, and no sentence of a verdict is cut.
  expect(await page.locator("nav").evaluate((nav) => nav.scrollWidth - nav.clientWidth)).toBe(0);
  await open("oom?trace=2");
  const card = page.locator("main .card").first();
  expect(await card.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
  const evidence = (await page.locator("[data-cause] .why").first().boundingBox())!;
  expect(evidence.x + evidence.width).toBeLessThanOrEqual(390); // below its cause, not beside it and outside
  await open("peak?trace=1");
  const figure = (await page.getByRole("region", { name: /blocks/i }).getByRole("columnheader", { name: /MiB/ }).boundingBox())!;
  expect(figure.x + figure.width).toBeLessThanOrEqual(390);
  await open("overview?trace=1");
  const missing = page.locator("[data-ledger='Driver level'] .missing em");
  expect(await missing.evaluate((words) => words.scrollWidth - words.clientWidth)).toBe(0);
  await open("map?at=peak");
  const map = page.getByRole("img", { name: /regions/ });
  const legend = page.locator(".legend").filter({ hasText: "free" });
  const [above, below] = [(await legend.boundingBox())!, (await map.boundingBox())!];
  expect(above.y + above.height).toBeLessThanOrEqual(below.y);
});

/** Every text that is drawn, and where: what lies outside its canvas is never seen. */
function recordOutside(): void {
  const outside: string[] = [];
  Object.assign(globalThis, { outside });
  const draw = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text: string, x: number, y: number) {
    const wide = this.measureText(text).width;
    const left = this.textAlign === "right" ? x - wide : this.textAlign === "center" ? x - wide / 2 : x;
    const [w, h] = [this.canvas.width / devicePixelRatio, this.canvas.height / devicePixelRatio];
    if (left < -2 || left + wide > w + 2 || y < 0 || y > h + 1) outside.push(`${text} at ${Math.round(left)}, ${Math.round(y)} of ${w} x ${h}`);
    draw.call(this, text, x, y);
  };
}

test("text on a canvas has the page's font and stays inside, from the first picture on and in every later one", async ({ page, served }) => {
  await page.addInitScript(recordOutside);
  for (const view of ["overview", "steps", "timeline", "peak", "peak?mode=tree", "leaks?trace=1", "map?at=peak"]) {
    await visit(page, served, view);
    await page.evaluate(() => document.fonts.ready);
    const pictures = () => page.locator("main canvas").evaluateAll((all) => all.map((canvas) => (canvas as HTMLCanvasElement).toDataURL()).join());
    const first = await pictures();
    const theme = page.getByRole("button", { name: "Light or dark" });
    await theme.click(); // all fonts are there by now: what is drawn anew is right
    await expect.poll(pictures, view).not.toBe(first);
    await theme.click();
    await expect.poll(pictures, view).toBe(first);
    expect(await page.evaluate(() => (globalThis as unknown as { outside: string[] }).outside), view).toEqual([]);
  }
});

test("the legend of the timeline names every color of its chart", async ({ open, page }) => {
  await open("timeline?at=steady"); // when nothing of the workspace of step 1 is live any more
  await expect(page.locator("[data-share=activations]")).toBeVisible();
  await expect(page.locator("[data-absent=workspace]")).toContainText("0.0");
});

test("the mark of a failure, which ends a run, stays inside the chart", async ({ page, served }) => {
  await page.addInitScript(recordOutside);
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await visit(page, served, "timeline?trace=2");
    expect(await page.evaluate(() => (globalThis as unknown as { outside: string[] }).outside), `${width}`).toEqual([]);
  }
});
