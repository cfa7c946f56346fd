// Each state of the page: loading, empty, lost, not recorded, damaged, at least, refused by the server, hostile names.
import { readFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Hello, Instant, Marks, Overview, Peak, Tracks } from "../src/gen/rpc";
import { expect, settled, test, visit } from "./page";
import { build, data, json, serve, trace } from "./program";
import { tamper } from "./tamper";

const pictures = path.join(build, "ui-pictures");

test("loading: the frame is there before the answer", async ({ page, served }) => {
  let answer = () => {};
  const asked = new Promise<void>((release) => { answer = release; });
  await page.route(/\/api\/overview/, async (route) => { await asked; await route.continue(); });
  await page.goto(`${served.address}#overview`);
  await expect(page.locator("nav [aria-current]")).toBeVisible();
  await expect(page.locator("[data-note]")).toContainText("Reading the overview");
  answer();
  await expect(page.locator("main h1")).toBeVisible();
});

test("lost events and missing devices are drawn and said", async ({ page, open }) => {
  await tamper<Marks>(page, "marks", (answer) => { answer.losses = [{ t0: 2000, t1: 9000, count: 212, cause: "the spool reached its limit" }]; });
  await tamper<Tracks>(page, "tracks", (answer) => { for (const track of answer.tracks) if (track.id === "device") { track.missing = "not recorded: no NVML"; track.t = new Float64Array(); } });
  await open("timeline");
  const chart = page.getByRole("img", { name: /^Live memory over time/ });
  await expect(chart).toHaveAccessibleName(/212 events lost in 7\.0 ms: the spool reached its limit\./);
  await expect(chart).toHaveAccessibleName(/Device used: not recorded: no NVML\./);
  await page.screenshot({ path: path.join(pictures, "state-lost.png") });
});

test("hover: total first, and what it is made of", async ({ page, open }) => {
  await open("timeline?by=category");
  const box = (await page.getByRole("img", { name: /^Live memory over time/ }).boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2);
  const panel = page.locator(".hover");
  await expect(panel).toContainText(/^\s*[\d.,]+ MiB/);
  await expect(panel).toContainText("parameters");
  await expect(panel).toContainText("Click to keep");
  const place = (await panel.boundingBox())!;
  expect(place.x + place.width, "never under the pointer").toBeLessThan(box.x + box.width * 0.7);
  await page.screenshot({ path: path.join(pictures, "state-hover.png") });
});

test("brush: what happened in the range, and a link opens it again", async ({ page, open, served }) => {
  await open("timeline?brush=0.002000..0.008000");
  const range = page.locator("[data-range]");
  await expect(range).toContainText("allocated");
  await expect(range).toContainText("freed");
  const said = await range.textContent();
  await page.screenshot({ path: path.join(pictures, "state-brush.png") });
  await visit(page, served, "timeline?brush=0.002000..0.008000");
  await expect(range).toHaveText(said ?? "");
});

test("focus is visible, and a chosen row stands out", async ({ page, open }) => {
  await open("peak?at=steady");
  const row = page.locator("main table tbody tr").nth(1);
  await row.focus();
  expect(await row.evaluate((element) => getComputedStyle(element).outlineStyle)).toBe("solid");
  await page.keyboard.press("Enter");
  await expect.poll(() => page.url()).toContain("sel=");
  await expect(row).toHaveAttribute("aria-selected", "true");
  const address = page.url();
  await page.reload();
  await settled(page);
  expect(page.url()).toBe(address);
  await expect(page.locator("main table tbody tr").nth(1)).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Escape");
  await expect.poll(() => page.url()).not.toContain("sel=");
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

/** Every entry of every list is called the same, every number of a step is the same. */
function equalise(value: unknown): void {
  if (value === null || typeof value !== "object") return;
  if (Array.isArray(value)) value.forEach((each, i) => { if (typeof each === "string") value[i] = "peak"; else equalise(each); });
  const fields = value as Record<string, unknown>;
  for (const [key, field] of Object.entries(fields)) {
    if (Array.isArray(value)) break;
    if (["name", "label", "title", "path"].includes(key) && typeof field === "string") fields[key] = "peak";
    else if (key === "number" && field instanceof Float64Array) field.fill(7);
    else equalise(field);
  }
}

test("equal names blank no view", async ({ page, open }) => {
  test.setTimeout(120_000);
  for (const name of ["overview", "steps", "peak", "layers", "leaks", "map", "ooms", "source", "diff", "instant", "range"] as const) await tamper(page, name, equalise);
  for (const view of ["overview", "steps", "steps?table=1", "peak", "peak?table=1", "peak?open=op,op", "layers", "leaks", "map?at=peak", "oom?trace=2", "source", "diff?with=1", "timeline?at=peak"]) {
    await open(view);
    await expect(page.locator("main h1, main [data-note]").first(), view).toBeVisible();
    await expect(page.locator("nav [aria-current=page]"), view).toBeVisible();
  }
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
  writeFileSync(cut, readFileSync(trace("long")));
  truncateSync(cut, Math.floor(readFileSync(cut).length * 0.9));
  utimesSync(cut, new Date(0), new Date(0)); // written long ago: nobody records into it
  const none = path.join(data, "none.vram");
  writeFileSync(none, "this is no trace");
  const served = await serve(cut, none);
  try {
    await page.goto(`${served.address}#overview`);
    const damage = page.locator("[data-damage], [role=alert]").first();
    await expect(damage).toContainText(/ends at|ends before|incomplete|missing|damaged/i);
    const readable = json("summary", cut) as { events: number };
    expect(readable.events).toBeGreaterThan(60_000);
    await expect(page.locator("[data-state=incomplete]")).toContainText(`${readable.events.toLocaleString("en-US")} events`);
    await expect(page.locator("main h1"), "what can be read is shown").toContainText("9.3 MiB");
    await page.screenshot({ path: path.join(pictures, "state-damaged.png") });
    await page.goto(`${served.address}#overview?trace=1`);
    await page.reload();
    await expect(page.getByRole("alert")).toContainText(/none\.vram|not a/i);
  } finally {
    served.stop();
  }
});
