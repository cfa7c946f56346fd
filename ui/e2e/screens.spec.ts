// Large models, many processes, small screens, the timeline's bands and gestures, and what everybody needs to read it.
import { AxeBuilder } from "@axe-core/playwright";
import { expect, settled, test as base } from "./page";
import { generate, json, serve, trace, type Served } from "./program";

const RANKS = [0, 1, 2, 3, 4, 5];
const test = base.extend<object, { large: Served; ranks: Served }>({
  large: [async ({}, use, { workerIndex }) => {
    const name = `transformer-${workerIndex}`; // two workers must not write the same file
    generate(name, "transformer");
    const served = await serve(trace(name));
    await use(served);
    served.stop();
  }, { scope: "worker" }],
  ranks: [async ({}, use, { workerIndex }) => {
    const name = (rank: number) => `rank${rank}-${workerIndex}`;
    for (const rank of RANKS) generate(name(rank), rank === 4 ? "leak" : "clean", `rank=${rank}`, rank === 2 ? "layers=9" : "layers=4", "steps=30");
    const served = await serve(...RANKS.map((rank) => trace(name(rank))));
    await use(served);
    served.stop();
  }, { scope: "worker" }],
});
const go = async (page: import("@playwright/test").Page, served: Served, hash: string) => {
  await page.goto(`${served.address}#${hash}`);
  await page.reload();
  await settled(page);
};

test("200 layers are groups that a person can tell apart, and the rest is at most a tenth", async ({ page, large }) => {
  await go(page, large, "timeline?by=layer&table=1");
  const heads = await page.getByRole("region", { name: "Live memory over time" }).locator("thead th").allTextContents();
  expect(heads.some((head) => /^encoder\/layer_\d+ to \d+/.test(head)), heads.join()).toBe(true);
  expect(heads.length).toBeLessThanOrEqual(14);
  const rows = await page.getByRole("region", { name: "Live memory over time" }).locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => Number(cell.textContent!.replace(/,/g, "")))));
  const other = heads.findIndex((head) => head.startsWith("other"));
  const highest = rows.reduce((a, b) => (b[1]! > a[1]! ? b : a));
  expect(other < 0 ? 0 : highest[other]! / highest[1]!).toBeLessThanOrEqual(0.1);
  await go(page, large, "layers");
  await expect(page.getByRole("region", { name: "Layers" }).locator("tbody tr")).toHaveCount(60);
});

test("layers can be groups by prefix, in the order of the model, and a group leads to its blocks", async ({ page, large }, { workerIndex }) => {
  const truth = json("layers", trace(`transformer-${workerIndex}`)) as { rows: { name: string; total: number }[] };
  const total = truth.rows.filter((row) => row.name.startsWith("encoder/layer_7/")).reduce((sum, row) => sum + row.total, 0);
  await go(page, large, "layers");
  await page.getByRole("group", { name: "Rows" }).getByRole("button", { name: "Groups" }).click();
  await expect.poll(() => page.url()).toContain("mode=groups");
  const table = page.getByRole("region", { name: "Layers" });
  const names = await table.locator("tbody tr td:first-child").allTextContents();
  const order = names.filter((name) => name.startsWith("encoder/layer_")).map((name) => Number(name.trim().slice("encoder/layer_".length)));
  expect(order.length).toBeGreaterThan(20);
  expect(order).toEqual([...order].sort((a, b) => a - b));
  await table.getByRole("link", { name: "encoder/layer_7", exact: true }).click();
  await settled(page);
  expect(Number(await page.locator("[data-total]").getAttribute("data-total"))).toBe(total);
});

for (const width of [1024, 390]) {
  test(`at ${width} pixels no control of a view is cut off`, async ({ page, open }) => {
    await page.setViewportSize({ width, height: 900 });
    for (const view of ["timeline", "peak", "map", "diff?with=1"]) {
      await open(view);
      const hidden = await page.locator("main .toolbar").evaluate((bar) => {
        const bottom = bar.getBoundingClientRect().bottom;
        return [...bar.querySelectorAll("button, select")].filter((each) => each.getBoundingClientRect().bottom > bottom + 1).map((each) => each.textContent);
      });
      expect(hidden, view).toEqual([]);
    }
  });
}

test("tree map and flame graph zoom with a click, and Escape goes back", async ({ page, large }) => {
  for (const mode of ["tree", "flame"]) {
    await go(page, large, `peak?mode=${mode}`);
    const chart = page.locator(".chart canvas");
    const box = (await chart.boundingBox())!;
    await page.mouse.click(box.x + 40, box.y + 8);
    await expect.poll(() => page.url()).toContain("in=");
    const path = page.getByRole("navigation", { name: "Shown part" });
    await expect(path).toContainText("All");
    const address = page.url();
    await page.reload();
    await settled(page);
    expect(page.url()).toBe(address);
    await expect(path.locator("b")).toBeVisible();
    await page.locator("main h1").click();
    await page.keyboard.press("Escape");
    await expect.poll(() => page.url()).not.toContain("in=");
    await page.goBack();
    await expect.poll(() => page.url()).toBe(address);
  }
});

test("parts that are no categories have shades of one hue, the largest the strongest, and names that can be read", async ({ page, large }) => {
  await page.addInitScript(() => {
    const written: string[] = [];
    Object.assign(globalThis, { written });
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text: string, x: number, y: number) { written.push(text); draw.call(this, text, x, y); };
  });
  for (const mode of ["tree", "flame", "stack"]) {
    await go(page, large, `peak?mode=${mode}&open=layer,op`);
    const shades = await page.locator(".chart canvas").evaluate((element) => {
      const picture = element as HTMLCanvasElement;
      const { data } = picture.getContext("2d")!.getImageData(0, 0, picture.width, picture.height);
      const seen = new Map<string, number>();
      for (let i = 0; i < data.length; i += 4) if (data[i + 2]! > data[i]! + 20) { const key = `${data[i]} ${data[i + 1]} ${data[i + 2]}`; seen.set(key, (seen.get(key) ?? 0) + 1); }
      return [...seen.values()].filter((pixels) => pixels > 300).length;
    });
    expect(shades, mode).toBeGreaterThan(5);
    const written = await page.evaluate(() => (globalThis as unknown as { written: string[] }).written);
    expect(written.length, mode).toBeGreaterThan(10);
    expect(written.filter((text) => text.includes("…") && text.length < 6), mode).toEqual([]);
  }
});

test("a run of many processes lists them, trouble and outliers first, one click to each", async ({ page, ranks }) => {
  await go(page, ranks, "start");
  await expect(page.locator("main h1")).toContainText("6 processes were recorded; rank 4 needs attention: memory grows");
  const order = await page.locator("[data-process]").evaluateAll((all) => all.map((card) => Number(card.getAttribute("data-process"))));
  expect(order.slice(0, 2)).toEqual([4, 2]); // the leak, then the one that needs more than the others
  expect(order.length).toBe(6);
  await page.locator("[data-process='2']").click();
  await settled(page);
  await expect.poll(() => page.url()).toContain("#overview?trace=2");
});

test("passes are bands in the timeline, and gestures can be found", async ({ page, open }) => {
  await open("timeline?at=step:5&r=0.002500..0.003600");
  const bands = await page.evaluate(async () => {
    const token = sessionStorage.getItem("vramscope-token");
    const answer = await fetch("/api/marks?trace=0&level=12&tile=0", { headers: { Authorization: `Bearer ${token}` } });
    return new TextDecoder("latin1").decode(await answer.arrayBuffer());
  });
  for (const pass of ["forward", "backward", "optimizer"]) expect(bands).toContain(`"name":"${pass}"`);
  await expect(page.locator("[data-hint]")).toContainText("drag on the ruler selects a range");
  await page.getByRole("button", { name: /All keys and gestures/ }).click();
  const help = page.getByRole("dialog");
  await expect(help).toContainText("zoom at the pointer");
  await expect(help).toContainText("layer:conv2d_1");
});

test("a first step that takes half of the run does not squeeze all others", async ({ page, open }) => {
  const axis = page.getByRole("group", { name: "Axis" });
  await open("timeline");
  await expect(axis.getByRole("button", { name: "Time" })).toHaveAttribute("aria-pressed", "true"); // the first step is short here
  await axis.getByRole("button", { name: "Steps" }).click();
  await expect.poll(() => page.url()).toContain("mode=steps");
  await page.goBack();
  await expect(axis.getByRole("button", { name: "Time" })).toHaveAttribute("aria-pressed", "true");
});

const SHOWN = ["GPU 0", "TensorFlow 2.21.0", "complete", "lost"];
for (const width of [1440, 1024, 390]) {
  test(`at ${width} pixels the run's state, device and framework are there, and every view has its name`, async ({ page, open }) => {
    await page.setViewportSize({ width, height: 900 });
    await open("overview");
    const header = page.locator("header").first();
    for (const text of SHOWN) await expect(header.getByText(text).first()).toBeInViewport({ ratio: 0.9 });
    for (const name of ["Overview", "Timeline", "Peak", "Steps", "Layers", "Leaks", "Pool map", "OOM", "Source", "Diff"])
      await expect(page.getByRole("navigation", { name: "Views" }).getByText(name, { exact: true })).toBeInViewport();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    if (width >= 1024) await expect(page.locator("[data-nav=peak]")).toBeVisible();
  });
}

const EVERY = ["overview", "timeline", "timeline?by=layer", "peak", "peak?mode=tree", "peak?mode=flame", "steps", "layers", "leaks?trace=1", "map?at=peak", "map?at=peak&mode=layer", "oom?trace=2", "source", "diff?with=1", "start", "steps?trace=3", "overview?f=category%3Aactivations"];
for (const [scheme, width] of [["light", 1440], ["dark", 1440], ["light", 1024], ["dark", 390]] as const) {
  test(`axe finds nothing on any view, and targets are large enough: ${scheme}, ${width}`, async ({ page, open }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    for (const view of EVERY) {
      await open(view);
      const found = await new AxeBuilder({ page }).options({ rules: { "target-size": { enabled: true } } }).analyze();
      expect(found.violations.map((v) => `${view} ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 140)).join(" | ")}`)).toEqual([]);
    }
  });
}

test("forced colors keep the legend and every text readable", async ({ page, open }) => {
  await page.emulateMedia({ forcedColors: "active", colorScheme: "dark" });
  await open("overview");
  const swatches = await page.locator(".legend i").evaluateAll((all) => all.map((swatch) => getComputedStyle(swatch).backgroundColor));
  expect(new Set(swatches).size).toBe(swatches.length);
  expect(swatches.length).toBeGreaterThan(3);
  // Bars have edges and what is chosen has a frame: their grounds are the page's.
  for (const bar of [page.locator("[data-ledger='Pool regions'] .part").first(), page.locator("[aria-pressed=true]").first(), page.locator("nav [aria-current=page]")])
    expect(await bar.evaluate((element) => getComputedStyle(element).outlineStyle)).toBe("solid");
  // Text on a canvas has the color that the system has for text.
  const ink = await page.evaluate(() => { const probe = document.body.appendChild(document.createElement("i")); probe.style.color = "CanvasText"; const value = getComputedStyle(probe).color; probe.remove(); return value; });
  const canvas = await page.locator("main canvas").first().evaluate((element) => {
    const picture = element as HTMLCanvasElement;
    const { data } = picture.getContext("2d")!.getImageData(0, 0, 30, picture.height);
    const seen = new Set<string>();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) seen.add(`rgb(${data[i]}, ${data[i + 1]}, ${data[i + 2]})`);
    return [...seen];
  });
  expect(canvas).toContain(ink);
});
