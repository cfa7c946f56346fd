// One state: filter, instant, grouping and selection are in the address, every view obeys them or says that it does not.
import { expect, settled, test } from "./page";
import { json, trace } from "./program";

const number = async (locator: import("@playwright/test").Locator, name: string) => Number(await locator.getAttribute(name));
const chart = /^Live memory over time/;

test("a link holds time and step, and opens the same instant anew", async ({ open, page }) => {
  await open("timeline");
  const box = (await page.getByRole("img", { name: chart }).boundingBox())!;
  const seen = new Set<string>();
  for (const share of [0.3, 0.45, 0.6, 0.75, 0.9]) {
    await page.mouse.click(box.x + 100 + (box.width - 116) * share, box.y + box.height / 2);
    await expect.poll(() => page.url()).toMatch(/at=(step:\d+%2B[\d.]+ms|[\d.]+s)(%23\d+)?(&|$)/);
    await settled(page);
    const [address, total, panel] = [page.url(), await number(page.locator("aside [data-total]"), "data-total"), await page.locator("aside .soft").first().textContent()];
    expect(seen.has(address)).toBe(false);
    seen.add(address);
    await page.reload();
    await settled(page);
    expect(await number(page.locator("aside [data-total]"), "data-total"), address).toBe(total);
    await expect(page.locator("aside .soft").first()).toHaveText(panel ?? "");
    // The command line understands the same instant.
    const at = decodeURIComponent(address.match(/at=([^&]+)/)![1]!);
    expect((json("peak", trace("train"), "--at", at) as { total: number }).total, at).toBe(total);
  }
  for (const address of [...seen].reverse().slice(1)) {
    await page.goBack();
    await expect.poll(() => page.url()).toBe(address);
  }
});

test("a click on a plateau chooses the event that began it", async ({ open, page }) => {
  await open("timeline?r=0.004000..0.004060");
  const box = (await page.getByRole("img", { name: chart }).boundingBox())!;
  await page.mouse.click(box.x + 100 + (box.width - 116) * 0.5, box.y + box.height / 2);
  await settled(page);
  const at = decodeURIComponent(page.url().match(/at=([^&]+)/)![1]!);
  const time = Number((await page.locator("aside .soft").first().textContent())!.match(/^([\d.]+) s/)![1]) * 1e6;
  expect(time).toBeLessThanOrEqual(4030.5); // not after the pointer
  expect(time).toBeGreaterThan(4030 - 6); // events are three microseconds apart
  await expect(page.locator("aside")).toContainText("This event");
  expect((json("peak", trace("train"), "--at", at) as { total: number }).total).toBe(await number(page.locator("aside [data-total]"), "data-total"));
});

test("every view obeys the filter or says that it does not", async ({ open, page }) => {
  const filter = "category:activations";
  const asked = `f=${encodeURIComponent(filter)}`;
  for (const view of ["overview", "start"]) {
    await open(`${view}?${asked}`);
    await expect(page.locator("[data-unfiltered]")).toContainText("is not applied here");
    await expect(page.getByRole("combobox", { name: "Filter" })).toHaveValue(filter);
  }
  for (const view of ["timeline", "peak", "steps", "layers", "leaks", "map", "oom", "source", "diff"]) {
    await open(`${view}?${asked}`);
    await expect(page.locator("[data-unfiltered]"), view).toHaveCount(0);
  }
  const steps = json("steps", trace("train"), "--where", filter) as { steps: { steps: { peak: number }[] } };
  await open(`steps?${asked}`);
  await expect(page.getByRole("region", { name: "Steps" }).getByTitle(`${steps.steps.steps[1]!.peak.toLocaleString("en-US")} bytes`).first()).toBeVisible();
  const leaks = json("leaks", trace("leak"), "--where", filter) as { verdict: string };
  await open(`leaks?trace=1&${asked}`);
  await expect(page.locator(`[data-verdict='${leaks.verdict}']`)).toBeVisible();
  expect(leaks.verdict).not.toBe("growing"); // what grows is something else
  await open(`map?at=peak&${asked}`);
  await expect(page.locator(".legend")).toContainText("does not match the filter");
  await page.locator("[data-unfiltered]").waitFor({ state: "detached" });
  await open(`overview?${asked}`);
  await page.getByRole("button", { name: "Clear it" }).click();
  await expect(page.locator("[data-unfiltered]")).toHaveCount(0);
  await page.goBack();
  await expect(page.locator("[data-unfiltered]")).toBeVisible();
});

test("a filter that nothing matches is said, not shown as an empty answer", async ({ open, page }) => {
  for (const view of ["steps", "leaks"]) {
    await open(`${view}?f=layer%3Anowhere`);
    await expect(page.locator("main h1")).toHaveText("No block matches the filter.");
    await expect(page.locator("main")).toContainText("nowhere");
  }
});

test("a typed filter is one step back, however many letters it has", async ({ open, page }) => {
  await open("peak?at=steady");
  const before = page.url();
  const box = page.getByRole("combobox", { name: "Filter" });
  await box.click();
  await box.pressSequentially("category:activations", { delay: 30 });
  await expect.poll(() => page.url()).toContain("f=category:activations");
  await page.goBack();
  await expect.poll(() => page.url()).toBe(before);
  await expect(box).toHaveValue("");
});

test("the title of the tab names run and view", async ({ open, page }) => {
  await open("peak?trace=1");
  await expect(page).toHaveTitle("Peak · leak.vram · vramscope");
  await open("oom?trace=2");
  await expect(page).toHaveTitle("OOM · oom.vram · vramscope");
  await open("start");
  await expect(page).toHaveTitle("All runs · vramscope");
});

test("a category shown alone and a chosen block stay over a reload and in other views", async ({ open, page }) => {
  await open("timeline");
  await page.locator("[data-share=activations]").click();
  await expect.poll(() => page.url()).toContain("only=activations");
  const block = page.locator("aside button.block").first();
  await block.click();
  await expect.poll(() => page.url()).toMatch(/sel=\d+/);
  const id = page.url().match(/sel=(\d+)/)![1]!;
  await page.reload();
  await settled(page);
  await expect(page.locator("[data-share=activations]")).toHaveAttribute("aria-pressed", "true");
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: /^Pool map/ }).click();
  await settled(page);
  await expect(page.locator(`[data-block='${id}']`)).toBeVisible();
});
