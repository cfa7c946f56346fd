// The report: one file, opened from a file, with the network cut.
import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { test as base, expect } from "@playwright/test";
import { settled, watch } from "./page";
import { data, json, root, serve, trace, vramscope } from "./program";

const REPORT = `file://${path.join(data, "train.html")}`;
const test = base.extend({
  page: async ({ page, context }, use) => {
    await context.setOffline(true);
    const problems = watch(page);
    await use(page);
    expect(problems).toEqual([]);
  },
});

test("is small and opens at once", async ({ page }) => {
  expect(statSync(path.join(data, "train.html")).size).toBeLessThan(5_000_000);
  // In processor time of the page, which does not depend on what else runs on the machine.
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => (await session.send("Performance.getMetrics")).metrics.find((each) => each.name === "TaskDuration")!.value;
  await page.goto("about:blank");
  const before = await busy();
  await page.goto(REPORT);
  await settled(page);
  expect(await busy() - before, "seconds until everything is drawn").toBeLessThan(1);
});

for (const view of ["overview", "timeline", "peak", "peak?at=peak&mode=flame", "steps", "layers", "leaks", "map?at=peak", "oom", "whatif", "source"]) {
  test(`has ${view}`, async ({ page }) => {
    await page.goto(`${REPORT}#${view}`);
    await settled(page);
    await expect(page.locator("main h1").first()).not.toBeEmpty();
    await expect(page.locator("main [role=alert]")).toHaveCount(0);
    await expect(page.locator("main")).not.toContainText("not in this report");
  });
}

test("shows the figures of the command line", async ({ page }) => {
  const peak = json("peak", trace("train")) as { total: number };
  await page.goto(`${REPORT}#peak`);
  await settled(page);
  expect(Number(await page.locator("[data-total]").getAttribute("data-total"))).toBe(peak.total);
});

test("of one run offers no controls of a diff, but says how to get one", async ({ page }) => {
  await page.goto(`${REPORT}#diff`);
  await settled(page);
  await expect(page.locator("[data-note]")).toContainText("Only one run is open");
  await expect(page.locator("main select, main button")).toHaveCount(0);
});

test("is readable by everybody", async ({ page }) => {
  await page.goto(REPORT);
  await settled(page);
  expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => v.id)).toEqual([]);
});

test("says what it does not hold, and where it is", async ({ page }) => {
  await page.goto(`${REPORT}#map?at=moment:17`);
  await settled(page);
  await expect(page.locator("[data-note]")).toContainText("not in this report");
  await expect(page.locator("[data-note]")).toContainText("vramscope serve");
});

test("no link of it leads to what it does not hold", async ({ page }) => {
  for (const view of ["overview", "timeline", "peak", "steps", "layers", "leaks", "map", "oom", "source"]) {
    await page.goto(`${REPORT}#${view}`);
    await page.reload();
    await settled(page);
    const links = await page.locator("main a[href]").evaluateAll((all) => [...new Set(all.map((a) => a.getAttribute("href") ?? ""))]);
    // Of many rows the first and the last: all others are made the same way.
    for (const link of links.length > 12 ? [...links.slice(0, 6), ...links.slice(-6)] : links) {
      await page.goto(`${REPORT}${link}`);
      await settled(page);
      await expect(page.locator("main"), `${view}: ${link}`).not.toContainText("not in this report");
    }
  }
});

test("every finding's proof is in it", async ({ page }) => {
  await page.goto(REPORT);
  await settled(page);
  const links = await page.locator("[data-finding] a.proof").evaluateAll((all) => all.map((a) => a.getAttribute("href") ?? ""));
  for (const link of links) {
    await page.goto(`${REPORT}${link}`);
    await page.reload();
    await settled(page);
    await expect(page.locator("main"), link).not.toContainText("not in this report");
  }
});

// --- what nobody asked when the report was written: the truth is the program's on the same trace ---

const FILTERS = ["category:activations", "dense_2", "layer:dense_1 or op:/MatMul/", "size>=1MiB not category:parameters", "line:train.py", '(known:reported or known:named) phase:forward', "step:1", "category:optimizer_state and dtype:float32", "requested<100KiB"];

test("any filter works in Peak and in the timeline, as on the command line", async ({ page }) => {
  await page.goto(`${REPORT}#peak?at=steady`);
  await settled(page);
  const box = page.getByRole("combobox", { name: "Filter" });
  for (const filter of FILTERS) {
    const truth = json("peak", trace("train"), "--at", "steady", "--where", filter) as { total: number; count: number };
    await box.fill(filter);
    await expect.poll(() => decodeURIComponent(page.url())).toContain(filter);
    await settled(page);
    if (truth.count > 0) expect(Number(await page.locator("[data-total]").getAttribute("data-total")), filter).toBe(truth.total);
    else await expect(page.locator("main"), filter).toContainText("No block matches the filter");
  }
  await box.fill("category:activations and (");
  await expect(page.locator("#filter-problem")).toContainText("expected a term");
  await box.fill("age>2steps");
  await expect(page.locator("#filter-problem")).toContainText("open the trace with 'vramscope serve'");
});

/** The same picture from a report and from a server; the address of a picture begins with its view. */
async function drawn(page: import("@playwright/test").Page, address: string, chart: string): Promise<string> {
  await page.goto(address);
  await page.reload();
  await settled(page);
  await expect(page.locator("main")).not.toContainText("not in this report");
  return page.locator(chart).first().evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
}

test("every order of Open by, every filter and every zoom is drawn as a server draws it", async ({ page, context }) => {
  const server = await serve(trace("train"));
  const pictures = [
    ...["layer", "op,line", "dtype,category,shape", "line,step,known,pool", "phase,layer,op", "category,op"].map((open) => [`peak?at=peak&open=${open}`, ".chart canvas"]),
    ["peak?at=steady&open=layer,category&f=category%3Aactivations&mode=tree", ".chart canvas"],
    ["timeline?at=steady&f=category%3Aactivations", ".lanes canvas"],
    ["timeline?at=steady&by=layer&f=size%3E64KiB", ".lanes canvas"],
    ["timeline?at=steady&r=0.004000..0.004600", ".lanes canvas"],
  ];
  const ofReport: string[] = [];
  for (const [view, chart] of pictures) ofReport.push(await drawn(page, `${REPORT}#${view}`, chart!));
  expect(new Set(ofReport).size).toBe(pictures.length);
  await context.setOffline(false);
  await page.goto(server.address);
  await settled(page);
  for (const [i, [view, chart]] of pictures.entries()) expect((await drawn(page, `${server.origin}/#${view}`, chart!)) === ofReport[i], view).toBe(true);
  server.stop();
});

test("every instant that can be clicked is there", async ({ page }) => {
  await page.goto(`${REPORT}#timeline?r=0.004000..0.004600`);
  await settled(page);
  const box = (await page.locator(".lanes canvas").boundingBox())!;
  for (const share of [0.15, 0.33, 0.5, 0.71, 0.93]) {
    const before = page.url();
    await page.mouse.click(box.x + box.width * share, box.y + box.height / 2);
    await expect.poll(() => page.url()).not.toBe(before);
    await settled(page);
    const at = decodeURIComponent(page.url().match(/at=([^&]+)/)![1]!);
    const truth = json("peak", trace("train"), "--at", at) as { total: number };
    expect(Number(await page.locator("aside [data-total]").getAttribute("data-total")), at).toBe(truth.total);
    await page.reload();
    await settled(page);
    expect(Number(await page.locator("aside [data-total]").getAttribute("data-total")), at).toBe(truth.total);
  }
});

// One row for each view that a filter, a range or a jump changes: what a server shows is what the report shows.
const FILTERED: [view: string, what: string][] = [
  ["steps?table=1&f=category%3Aactivations", "main td:nth-child(-n+6)"], ["steps?table=1&f=layer%3Adense_2", "main td:nth-child(-n+6)"], ["layers?f=category%3Aactivations", "main table td"], ["layers?at=peak&f=size%3E64KiB", "main table td"],
  ["layers?at=step:5%2B0.300ms", "main table td"], ["source?f=category%3Aactivations", "main [data-sentence], main nav a, main .file td"], ["source?at=step:7%2B0.300ms", "main [data-sentence], main nav a, main .file td"],
  ["map?at=peak&table=1&f=category%3Aactivations", "main .legend, main td"], ["timeline?brush=0.002000..0.008000", "[data-range], aside .block"], ["timeline?brush=0.002000..0.008000&f=category%3Aactivations", "[data-range], aside .block"],
];

test("a filter, a range and any instant give what a server gives, in every view", async ({ page, context }) => {
  const server = await serve(trace("train"));
  const texts = async (origin: string, view: string, what: string) => {
    const address = `${origin}#${view}`;
    await page.goto(address);
    await page.reload();
    await settled(page);
    await expect(page.locator("[data-unfiltered]"), address).toHaveCount(0);
    const found = await page.locator(what).allInnerTexts();
    expect(found.length, address).toBeGreaterThan(0);
    return view.startsWith("timeline") ? found.sort() : found; // rows of equal size have no order of their own
  };
  const ofReport: string[][] = [];
  for (const [view, what] of FILTERED) ofReport.push(await texts(REPORT, view, what));
  await context.setOffline(false);
  await page.goto(server.address);
  await settled(page);
  for (const [i, [view, what]] of FILTERED.entries()) expect(ofReport[i], view).toEqual(await texts(`${server.origin}/`, view, what));
  server.stop();
});

test("a view that cannot filter in a report shows everything and says so", async ({ page }) => {
  await page.goto(`${REPORT}#leaks`);
  await settled(page);
  const all = await page.locator("[data-sentence]").textContent();
  await page.goto(`${REPORT}#leaks?f=category%3Aactivations`);
  await page.reload();
  await settled(page);
  await expect(page.locator("[data-sentence]")).toHaveText(all ?? "");
  await expect(page.locator("[data-unfiltered]")).toContainText("is not applied here");
});

test("the proof of a leak is about the leak alone", async ({ page }) => {
  const report = path.join(data, "leak.html");
  execFileSync(vramscope, ["report", trace("leak"), "-o", report], { stdio: "pipe" });
  await page.goto(`file://${report}`);
  await settled(page);
  await page.locator("[data-way] a").click();
  await settled(page);
  await expect.poll(() => page.url()).toContain("#leaks?");
  await expect(page.locator("[data-unfiltered]")).toHaveCount(0);
  await expect(page.locator("[data-verdict=growing]")).toBeVisible();
});

test("no key and no button of the timeline is dead", async ({ page }) => {
  await page.goto(`${REPORT}#timeline?at=step:5%2B0.300ms`);
  await page.reload();
  await settled(page);
  for (const key of ["p", "P", "n", "N", "]", "["]) {
    const before = page.url();
    await page.keyboard.press(key);
    await expect.poll(() => page.url(), key).not.toBe(before);
    const at = decodeURIComponent(page.url().match(/at=([^&]+)/)![1]!);
    await settled(page);
    expect(Number(await page.locator("aside [data-total]").getAttribute("data-total")), `${key}: ${at}`).toBe((json("peak", trace("train"), "--at", at) as { total: number }).total);
  }
});

test("a block that is not among the largest has its details too", async ({ page }) => {
  await page.goto(`${REPORT}#map?at=peak&table=1`);
  await page.reload();
  await settled(page);
  const row = page.getByRole("region", { name: "Blocks by address" }).locator("tbody tr").last();
  await row.click();
  await expect(page.locator("[data-block]")).toContainText("bytes");
});

test("works in the frame of a notebook's output, which has no origin, in the notebook's colors", async ({ page }) => {
  const script = readFileSync(path.join(root, "python/vramscope/notebook.py"), "utf8").split('_TELL_THEME = """')[1]!.split('"""')[0]!;
  await page.setContent(`<body data-jp-theme-light="false"><iframe title="report" style="width:1000px;height:700px" src="data:text/html;base64,${readFileSync(path.join(data, "train.html")).toString("base64")}"></iframe>${script}</body>`);
  const frame = page.frameLocator("iframe");
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.evaluate(() => { document.body.dataset.jpThemeLight = "true"; });
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "light");
  // Scrolled away, an output may leave the document: its frame loads again when it comes back, and follows the notebook as before.
  const chooseTheme = (light: boolean) => page.evaluate((text) => { document.body.dataset.jpThemeLight = text; }, String(light));
  await page.evaluate(() => { const { body } = document, frame = document.querySelector("iframe")!; frame.remove(); body.dataset.jpThemeLight = "false"; setTimeout(() => body.prepend(frame)); });
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "dark");
  await chooseTheme(true);
  await expect(frame.locator("html")).toHaveAttribute("data-theme", "light");
  await frame.getByRole("navigation", { name: "Views" }).getByRole("link", { name: /^Peak/ }).click();
  await frame.getByRole("button", { name: "Flame" }).click();
  await expect(frame.locator("[data-total]")).toHaveAttribute("data-total", String((json("peak", trace("train")) as { total: number }).total));
});
