// Each state of the page: loading, empty, lost, not recorded, damaged, at least, refused by the server, hostile names.
import { readFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Hello, Instant, Marks, Overview, Peak, Tracks } from "../src/gen/rpc";
import { expect, settled, test } from "./page";
import { data, serve, trace } from "./program";
import { tamper } from "./tamper";

test("loading: the frame is there before the answer", async ({ page, served }) => {
  await page.route(/\/api\/overview/, async (route) => { await new Promise((done) => setTimeout(done, 1500)); await route.continue(); });
  await page.goto(`${served.address}#overview`);
  await expect(page.locator("nav [aria-current]")).toBeVisible();
  await expect(page.locator("[data-note]")).toContainText("Reading the overview");
  await expect(page.locator("main h1")).toBeVisible();
});

test("lost events and missing devices are drawn and said", async ({ page, open }) => {
  await tamper<Marks>(page, "marks", (answer) => { answer.losses = [{ t0: 2000, t1: 9000, count: 212, cause: "the spool reached its limit" }]; });
  await tamper<Tracks>(page, "tracks", (answer) => { for (const track of answer.tracks) if (track.id === "device") { track.missing = "not recorded, no NVML"; track.t = new Float64Array(); } });
  await open("timeline");
  await page.screenshot({ path: path.join(data, "lost.png") });
});

test("a peak that is a lower bound is marked", async ({ page, open }) => {
  await tamper<Overview>(page, "overview", (answer) => { for (const figure of answer.figures) figure.at_least = figure.label === "Peak"; });
  await tamper<Instant>(page, "instant", (answer) => { answer.at_least = true; });
  await open("overview");
  await page.reload();
  await expect(page.locator("[data-figure=Peak]")).toContainText("≥");
  await open("timeline");
  await expect(page.locator("aside h2")).toContainText("≥");
});

test("an answer that fails is said in its place, other views go on", async ({ page, open }) => {
  test.info().annotations.push({ type: "expected", description: "a refused answer" });
  await open("overview");
  await page.route(/\/api\/leaks/, (route) => route.fulfill({ status: 200, contentType: "application/octet-stream", body: "nonsense" }));
  await open("leaks");
  await expect(page.getByRole("alert")).toContainText("reload");
  await open("peak");
  await expect(page.locator("main h1")).toBeVisible();
});

test("hostile names do no harm", async ({ page, open }) => {
  const names = ["<img src=x onerror=\"window.hacked=1\">", "</script><script>window.hacked=1</script>", "a\u0000\u0007\u001b[31m", "\u202Egnp.exe\u202C", "x".repeat(10_000), "{@html 'x'}", "`code`"];
  await tamper<Peak>(page, "peak", (answer) => {
    answer.rows.forEach((row, i) => { row.layer = names[i % names.length]!; row.op = names[(i + 1) % names.length]!; row.line = `${names[(i + 2) % names.length]}:1`; });
    answer.nodes.forEach((node, i) => { node.name = names[i % names.length]!; });
    answer.sentence = names.join(" ");
  });
  await tamper<Hello>(page, "hello", (answer) => { answer.traces[0]!.name = names[0]!; answer.traces[0]!.command = names[3]!; });
  await open("peak");
  await page.reload();
  await settled(page);
  expect(await page.evaluate(() => (window as { hacked?: number }).hacked)).toBeUndefined();
  await expect(page.locator("main img")).toHaveCount(0);
  expect(await page.locator("main table").textContent()).toContain("\\u202e");
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(1440);
});

test("a damaged trace says what can still be seen", async ({ page }) => {
  const cut = path.join(data, "cut.vram");
  writeFileSync(cut, readFileSync(trace("train")));
  truncateSync(cut, Math.floor(readFileSync(cut).length * 0.9));
  utimesSync(cut, new Date(0), new Date(0)); // written long ago: nobody records into it
  const none = path.join(data, "none.vram");
  writeFileSync(none, "this is no trace");
  const served = await serve(cut, none);
  try {
    await page.goto(`${served.address}#overview`);
    await expect(page.locator("[data-damage], [role=alert]").first()).toBeVisible();
    await page.goto(`${served.address}#overview?trace=1`);
    await page.reload();
    await expect(page.getByRole("alert")).toContainText(/none\.vram|not a/i);
  } finally {
    served.stop();
  }
});
