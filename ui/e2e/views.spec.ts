import { expect, settled, test, visit } from "./page";
import { json, trace } from "./program";

const VIEWS = ["overview", "timeline", "peak", "steps", "layers", "leaks", "map", "oom", "whatif", "source"];
const bytesOf = async (locator: import("@playwright/test").Locator, name: string) => Number(await locator.getAttribute(name));

for (const view of VIEWS) {
  test(`${view} says its answer first`, async ({ open, page }) => {
    await open(view);
    await expect(page.locator("main h1").first()).not.toBeEmpty();
    await expect(page.locator("main [role=alert]")).toHaveCount(0);
  });
}

test("figures are those of the command line", async ({ open, page }) => {
  const peak = json("peak", trace("train")) as { total: number };
  await open("peak?at=steady");
  const total = peak.total;
  expect(total).toBeGreaterThan(0);
  expect(await bytesOf(page.locator("[data-total]"), "data-total")).toBe(total);
  await open("timeline?at=steady");
  expect(await bytesOf(page.locator("aside [data-total]"), "data-total")).toBe(total);
});

test("a link opens the same place, back returns", async ({ open, page }) => {
  await open("peak?at=peak&mode=tree");
  await page.getByRole("button", { name: "Flame" }).click();
  expect(page.url()).toContain("mode=flame");
  await page.getByRole("button", { name: "End" }).click();
  await settled(page);
  const address = page.url();
  expect(address).toContain("at=end");
  const sentence = await page.locator("[data-sentence]").textContent();
  await page.reload();
  await settled(page);
  expect(page.url()).toBe(address);
  await expect(page.locator("[data-sentence]")).toHaveText(sentence ?? "");
  await page.goBack();
  await expect(page.getByRole("button", { name: "Peak", exact: true })).toHaveAttribute("aria-pressed", "true");
});

test("the timeline zooms, pans, brushes and keeps an instant", async ({ open, page }) => {
  await open("timeline");
  const canvas = page.getByRole("img", { name: /^Live memory over time/ });
  const box = (await canvas.boundingBox())!;
  const middle = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const shown = page.locator("[data-view-text]");
  const before = await shown.textContent();
  await page.mouse.move(middle.x, middle.y);
  await page.mouse.wheel(0, -900);
  await expect(shown).not.toHaveText(before ?? "");
  await expect.poll(() => page.url()).toContain("r=");
  await page.mouse.click(middle.x, middle.y);
  await expect.poll(() => page.url()).toMatch(/at=step:\d+%2B[\d.]+ms/);
  await page.mouse.move(middle.x - 100, box.y + 8);
  await page.mouse.down();
  await page.mouse.move(middle.x + 100, box.y + 8, { steps: 4 });
  await page.mouse.up();
  await expect(page.locator("[data-range]")).toContainText("allocated");
  await page.keyboard.press("Escape");
  await expect(page.locator("[data-range]")).toHaveCount(0);
});

test("two fingers zoom around what is between them", async ({ open, page }) => {
  await open("timeline");
  const box = (await page.getByRole("img", { name: /^Live memory over time/ }).boundingBox())!;
  const session = await page.context().newCDPSession(page);
  const y = Math.round(box.y + box.height / 2), middle = box.x + 100 + (box.width - 116) / 2;
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", half: number) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints: type === "touchEnd" ? [] : [{ x: middle - half, y, id: 1 }, { x: middle + half, y, id: 2 }] });
  await touch("touchStart", 50);
  for (const half of [80, 120, 160, 200]) await touch("touchMove", half);
  await touch("touchEnd", 0);
  const whole = 0.0156;
  const range = () => (page.url().match(/r=([\d.]+)\.\.([\d.]+)/)?.slice(1).map(Number) ?? [0, whole]) as [number, number];
  await expect.poll(() => range()[1] - range()[0]).toBeLessThan(whole * 0.3); // the address follows a moment later
  const [from, to] = range();
  expect(to - from).toBeGreaterThan(whole * 0.2);
  expect((from + to) / 2).toBeGreaterThan(whole * 0.45);
  expect((from + to) / 2).toBeLessThan(whole * 0.55);
});

test("a finding of another trace stays in that trace", async ({ open, page }) => {
  await open("overview?trace=1");
  const link = page.locator("[data-finding] a.proof").first();
  await expect(link).toHaveAttribute("href", /trace=1/);
  await link.click();
  await expect.poll(() => page.url()).toContain("trace=1");
  await settled(page);
  await expect(page.locator("main h1").first()).not.toBeEmpty();
});

test("filter, range and grouping are in the address, and a reload comes back to them", async ({ open, page, served }) => {
  await open("timeline?by=layer&f=category%3Aactivations&r=0.004000..0.009000");
  const text = await page.locator("[data-view-text]").textContent();
  const total = await page.locator("aside [data-total]").getAttribute("data-total");
  const address = page.url();
  await visit(page, served, new URL(address).hash.slice(1));
  expect(page.url()).toBe(address);
  await expect(page.locator("[data-view-text]")).toHaveText(text ?? "");
  await expect(page.locator("aside [data-total]")).toHaveAttribute("data-total", total ?? "");
  await expect(page.getByRole("combobox", { name: "Filter" })).toHaveValue("category:activations");
});

test("everything works with the keyboard", async ({ open, page }) => {
  await open("overview");
  for (const [key, view] of [["t", "timeline"], ["p", "peak"], ["s", "steps"], ["l", "layers"], ["k", "leaks"], ["m", "map"], ["x", "oom"], ["w", "whatif"], ["u", "source"], ["o", "overview"]] as const) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await expect.poll(() => page.url()).toContain(`#${view}`);
  }
  await open("timeline");
  const shown = page.locator("[data-view-text]");
  const whole = await shown.textContent();
  for (let i = 0; i < 4; i++) await page.keyboard.press("+");
  await expect(shown).not.toHaveText(whole ?? "");
  await page.keyboard.press("f");
  await expect(shown).toHaveText(whole ?? "");
  await page.keyboard.press("p");
  await expect.poll(() => page.url()).toMatch(/at=step:\d+%2B[\d.]+ms/);
  await page.keyboard.press("b");
  await expect(page.locator("[data-range]")).toBeVisible();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.url()).toContain("#peak");
  await page.keyboard.press("t");
  await expect(page.locator("main canvas")).toHaveCount(0);
  await page.keyboard.press("t");
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
  await page.keyboard.press("/");
  await expect(page.getByRole("combobox", { name: "Filter" })).toBeFocused();
});

test("every chart has a table with the same numbers", async ({ open, page }) => {
  await open("timeline?table=1");
  await expect(page.getByRole("region", { name: "Live memory over time" }).locator("tbody tr").first()).toBeVisible();
  await open("map?table=1");
  await expect(page.getByRole("region", { name: "Blocks by address" }).locator("tbody tr").first()).toBeVisible();
  await open("leaks?table=1");
  await expect(page.getByRole("region", { name: "Left after each step" }).locator("tbody tr").first()).toBeVisible();
});

test("a filter narrows, a wrong one is underlined and keeps the last good result", async ({ open, page }) => {
  await open("peak?at=steady");
  const all = await bytesOf(page.locator("[data-total]"), "data-total");
  const box = page.getByRole("combobox", { name: "Filter" });
  await box.fill("category:activations");
  await expect.poll(async () => bytesOf(page.locator("[data-total]"), "data-total")).toBeLessThan(all);
  const some = await bytesOf(page.locator("[data-total]"), "data-total");
  await box.fill("category:activations and (");
  await expect(page.locator("#filter-problem")).toBeVisible();
  expect(await bytesOf(page.locator("[data-total]"), "data-total")).toBe(some);
  await box.press("Escape");
  await box.press("Escape");
  await expect.poll(async () => bytesOf(page.locator("[data-total]"), "data-total")).toBe(all);
});

test("groupings of the timeline add up to the same total", async ({ open, page }) => {
  for (const by of ["layer", "op", "dtype"]) {
    await open(`timeline?at=steady&by=${by}`);
    await expect(page.locator("main [role=alert]")).toHaveCount(0);
  }
});

test("layers are counted as the command line counts them, and inputs are distinguished", async ({ open, page }) => {
  const truth = json("layers", trace("train")) as { layers: number; rows: { name: string; inputs: number }[] };
  await open("layers");
  await expect(page.locator("[data-nav=layers]")).toHaveText(String(truth.layers));
  const input = truth.rows.find((row) => row.inputs > 0)!;
  await expect(page.getByRole("row").filter({ has: page.getByRole("link", { name: input.name, exact: true }) }).getByTitle(`${input.inputs.toLocaleString("en-US")} bytes`).first()).toBeVisible();
  await expect(page.locator(".legend")).toContainText("inputs");
});

test("the legend of the pool map is that of its colours", async ({ open, page }) => {
  const legend = page.locator(".legend");
  await open("map?at=peak");
  await expect(legend).toContainText("parameters");
  await page.getByRole("button", { name: "Age", exact: true }).click();
  await expect(legend).toContainText("oldest");
  await expect(legend).not.toContainText("parameters");
  await page.getByRole("button", { name: "Layer", exact: true }).click();
  await expect(legend).toContainText("dense_0 Relu");
  await expect(legend).toContainText("other");
  await expect(legend).not.toContainText("oldest");
});
