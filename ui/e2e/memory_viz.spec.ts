// The exported snapshot in PyTorch's memory_viz: its own script reads the file and draws it, with the d3 that it asks for. Both come
// from CDNs where PyTorch's pages load them, and from this machine here.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, test, type Page } from "@playwright/test";
import { build as bundle } from "vite";
import { build, noTensorFlow, root, trace, vramscope } from "./program";

const SCRIPT = path.join(root, ".cache/memory_viz/MemoryViz.js");
const PAGE = `<!doctype html><head></head><body><script type="module">
  import { add_remote_files } from "/MemoryViz.js";
  add_remote_files([{ name: "exported", url: "/exported" }]);
</script></body>`;

let folder: string;
let d3: string;

test.beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "memory-viz-"));
  const made = await bundle({ configFile: false, logLevel: "silent", build: { write: false, lib: { entry: path.join(root, "ui/node_modules/d3/index.js"), formats: ["es"] } } });
  const [output] = Array.isArray(made) ? made : [made];
  if (!output || !("output" in output)) throw new Error("d3 was not bundled");
  d3 = output.output[0].code;
});
test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Opens a snapshot, and reports what the script could not do with it. */
async function open(page: Page, snapshot: string): Promise<string[]> {
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  await page.route("**/*", (route) => {
    const { host, pathname } = new URL(route.request().url());
    const script = { contentType: "text/javascript", headers: { "Access-Control-Allow-Origin": "*" } };
    // One copy for all of its parts, so that they share the event that is being handled.
    if (host === "cdn.skypack.dev" && pathname === "/d3@5") return route.fulfill({ ...script, body: d3 });
    if (host === "cdn.skypack.dev") return route.fulfill({ ...script, body: 'export * from "/d3@5";' });
    if (pathname === "/MemoryViz.js") return route.fulfill({ ...script, path: SCRIPT });
    if (pathname === "/exported") return route.fulfill({ path: snapshot });
    return pathname === "/" ? route.fulfill({ contentType: "text/html", body: PAGE }) : route.fulfill({ status: 404 });
  });
  await page.goto("http://memory-viz.test/");
  await expect.poll(async () => problems.length > 0 || (await page.locator("svg polygon").count()) > 0).toBe(true);
  return problems;
}

/** The highest upper edge of the bands that it has drawn, in bytes, and what it says of the block that reaches it. */
function highest(page: Page): Promise<{ bytes: number; said: string }> {
  return page.evaluate(() => {
    interface Band { offsets: number[]; size: number | number[] }
    let bytes = 0, top: Element | null = null;
    for (const polygon of document.querySelectorAll("svg polygon")) {
      const band = (polygon as unknown as { __data__?: Band }).__data__;
      band?.offsets.forEach((offset, at) => {
        const edge = offset + (Array.isArray(band.size) ? band.size[at] ?? 0 : band.size);
        if (edge > bytes) [bytes, top] = [edge, polygon];
      });
    }
    top!.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    return { bytes, said: [...document.querySelectorAll("pre")].map((text) => text.textContent).join("\n") };
  });
}

/** What it says of the last event in its other view, after it has gone back from the end to the first one: it fails where a block has no segment. */
async function atEnd(page: Page): Promise<string> {
  await page.locator("select").nth(1).selectOption("Allocator State History");
  const events = page.locator("pre").filter({ hasText: /^(alloc|free|segment)/ });
  await events.first().dispatchEvent("mousedown");
  await events.last().dispatchEvent("mousedown");
  return page.locator("pre").filter({ hasText: "reserved)" }).innerText();
}

interface Truth { peak: number }

/** Of a recording, what the trace says, which other tests compare with TensorFlow's own counters. */
function recorded(): Truth {
  const [row] = execFileSync(vramscope, ["export", trace("graph"), "--to", "jsonl", "--table", "places", "-o", "-"], { encoding: "utf8" })
    .split("\n").filter((line) => line).map((line) => JSON.parse(line) as Truth & { place: string });
  return row!;
}

for (const kind of ["autotune", "killed", "recorded"])
  test(`memory_viz opens the snapshot of ${kind}`, async ({ page }) => {
    test.skip(!existsSync(SCRIPT) && process.env.VRAMSCOPE_REQUIRE_ALL !== "1", `there is no ${SCRIPT}: run 'make environments'`);
    test.skip(kind === "recorded" && noTensorFlow !== "", noTensorFlow);
    expect(existsSync(SCRIPT)).toBe(true);
    const file = path.join(folder, `${kind}.vram`), snapshot = path.join(folder, `${kind}.pickle`);
    const source = kind === "recorded" ? trace("graph") : file;
    const truth = kind === "recorded" ? recorded()
      : JSON.parse(execFileSync(path.join(build, "tracegen"), [kind, file, "seed=7"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })) as Truth;
    execFileSync(vramscope, ["export", source, "--to", "torch-snapshot", "-o", snapshot], { stdio: "pipe" });

    const problems = await open(page, snapshot);
    const { bytes, said } = await highest(page);
    expect(bytes).toBe(truth.peak);
    expect(said).toContain(`Total memory used after allocation: ${said.match(/allocation: (\S+) \(/)?.[1]} (${truth.peak} bytes)`);
    expect(await atEnd(page)).toMatch(/\(\d+ bytes\) allocated/);
    expect(problems).toEqual([]);
  });
