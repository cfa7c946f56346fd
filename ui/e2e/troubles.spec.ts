// From the start page, which lists all runs, to the proof of each trouble: at most two clicks. The truth is that of the trace's maker.
import path from "node:path";
import { expect, settled, test as base, watch } from "./page";
import { data, generate, json, serve, trace, type Served } from "./program";
import type { Page } from "@playwright/test";

interface Trouble {
  make: [kind: string, ...settings: string[]];
  /** In the page's own words, on the page that opens first. */
  says: RegExp;
  /** The second click; the first one, on the start page, opens the run. */
  click: (page: Page) => Promise<void>;
  proof: (page: Page) => Promise<void>;
}

const way = (page: Page) => page.locator("[data-way] a").click();
const finding = (text: RegExp) => (page: Page) => page.locator("[data-finding]").filter({ hasText: text }).locator("a.proof").click();
const view = (name: RegExp) => (page: Page) => page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click();
const holes = async (page: Page) => page.locator("[data-hole]").evaluateAll((all) => all.map((hole) => Number(hole.getAttribute("data-hole"))));
const MIB = 1024 ** 2;

const TROUBLES: Record<string, Trouble> = {
  leak: {
    make: ["leak", "steps=40"], says: /^Leak: 64\.0 KiB per step/, click: way,
    proof: async (page) => {
      await expect(page.locator("[data-verdict=growing]")).toBeVisible();
      await expect(page.getByRole("region", { name: "What grows" })).toContainText("train.py:31");
    },
  },
  "too big": {
    make: ["toobig"], says: /^Out of memory in step 1/, click: way,
    proof: async (page) => { await expect(page.locator("[data-cause='too big']")).toHaveAttribute("data-holds", "true"); },
  },
  "out of memory by a leak": {
    make: ["killed"], says: /^Out of memory in step 41.* Leak: 1\.0 MiB per step/, click: way,
    proof: async (page) => {
      await expect(page.locator("[data-cause=leak]")).toHaveAttribute("data-holds", "true");
      await expect(page.locator("[data-remedy]").first()).toContainText("train.py:31"); // what to do, not which command to run
      await expect(page.getByRole("region", { name: "What was live" })).toContainText("train.py:31");
      // The whole pool is there: a region that is cut would look smaller than it was.
      expect(await page.getByRole("region", { name: "The pool at that instant" }).evaluate((map) => map.scrollHeight - map.clientHeight)).toBe(0);
      await expect(page.getByRole("table", { name: "The request and the holes" })).toContainText("256.0"); // not 0.3
    },
  },
  "out of memory in pieces": {
    make: ["fragmented"], says: /^Out of memory in step 4: a request for 6\.0 MiB at train\.py:40/, click: way,
    proof: async (page) => {
      await expect(page.locator("[data-cause=fragmentation]")).toHaveAttribute("data-holds", "true");
      await expect(page.locator("[data-remedy]").first()).not.toContainText("as one region"); // it is one already
      expect(await holes(page)).toEqual(Array<number>(6).fill(4 * MIB)); // at that instant: six holes of 4 MiB for a request of 6
      await expect(page.getByRole("table", { name: "The request and the holes" })).toContainText("6.0");
      const live = page.getByRole("region", { name: "What was live" });
      await expect(live).toContainText("[1024,1024]");
      await expect(live).toContainText("float");
      await expect(live).toContainText("train.py:11");
    },
  },
  "a pool that grew although enough was free": {
    make: ["grown"], says: /\d/, click: finding(/yet|free/),
    proof: async (page) => {
      await expect(page.locator("main h1")).toHaveText(/^6\.0 MiB did not fit although 32\.0 MiB was free: the largest of 8 holes was 4\.0 MiB/);
      expect(await holes(page)).toEqual(Array<number>(8).fill(4 * MIB));
    },
  },
  autotuning: {
    make: ["autotune", "steps=24", "layers=6"], says: /peak was autotuning in step 1/, click: finding(/autotuning/),
    proof: async (page) => { await expect.poll(() => page.url()).toContain("at=peak"); await expect(page.locator("main h1")).toContainText("64.0 MiB"); },
  },
  "an empty region": {
    make: ["autotune", "steps=24", "layers=6"], says: /64\.0 MiB of the pool has been empty since step 1/, click: finding(/empty since/),
    proof: async (page) => { await expect(page.getByRole("img", { name: /regions/ })).toBeVisible(); await expect.poll(() => page.url()).toMatch(/#map\?.*at=end/); },
  },
  "a pool that took the card": {
    make: ["clean", "growth=0", "limit=17179869184", "card=17716740096"], says: /The pool holds 16,384\.0 MiB, the model needs 8\.0 MiB|the pool has held 16,384\.0 MiB/, click: finding(/The pool holds 16,384\.0 MiB/),
    proof: async (page) => { // the ledger at the end: what the pool holds of the card, and what of it is live
      await expect.poll(() => page.url()).toMatch(/#overview\?.*at=end/);
      await expect(page.locator("[data-ledger='Pool regions'] [data-bytes]").first()).toHaveAttribute("data-bytes", String(16_384 * MIB));
      await expect(page.locator("[data-ledger='This process']")).toContainText("was not recorded"); // a level without parts says why
      await expect(page.locator("[data-ledger=Categories]")).toContainText(/drawn \d,\d{3} times larger/);
    },
  },
  "a killed program": {
    make: ["clean", "signal=9"], says: /^The program was killed by SIGKILL/, click: way,
    proof: async (page) => { await expect.poll(() => page.url()).toMatch(/#timeline\?.*at=end/); await expect(page.locator("aside [data-total]")).toBeVisible(); },
  },
  "XLA temporaries": {
    make: ["xla"], says: /^Training needs 9\.8 MiB/, click: finding(/XLA temporaries, one block per executable/),
    proof: async (page) => {
      const row = page.getByRole("region", { name: /blocks/i }).getByRole("row").filter({ hasText: "XLA temporaries" }).first();
      await expect(row).toContainText("dense_3");
      await expect(row.getByTitle(`${(3 * MIB).toLocaleString("en-US")} bytes`)).toBeVisible();
    },
  },
  "steps that differ": {
    make: ["shapes"], says: /6\.5 MiB to 12\.2 MiB/, click: view(/^Steps/),
    proof: async (page) => { await expect(page.getByRole("region", { name: "Steps" }).locator("tbody tr")).toHaveCount(48); },
  },
  "no steps": {
    make: ["nomarks", "steps=2"], says: /\d/, click: view(/^Steps/),
    proof: async (page) => { await expect(page.locator("[data-note]")).toContainText("call vramscope.step()"); },
  },
};

const slug = (name: string) => `trouble-${name.replace(/ /g, "-")}`;
// Each worker makes its own: two of them must not write the same file.
const fileOf = (name: string, worker: number) => `${slug(name)}-${worker}`;
const test = base.extend<object, { troubles: Served }>({
  troubles: [async ({}, use, { workerIndex }) => {
    for (const [name, { make }] of Object.entries(TROUBLES)) generate(fileOf(name, workerIndex), ...make);
    const served = await serve(...Object.keys(TROUBLES).map((name) => trace(fileOf(name, workerIndex))));
    await use(served);
    served.stop();
  }, { scope: "worker" }],
});

expect(Object.keys(TROUBLES).length).toBe(12);
for (const [name, trouble] of Object.entries(TROUBLES)) {
  test(`${name}: from the start page, the proof is two clicks away`, async ({ page, troubles }) => {
    for (const width of [1440, 1024, 390]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`${troubles.address}#start`);
      await page.reload();
      await settled(page);
      await page.locator(`[data-process='${Object.keys(TROUBLES).indexOf(name)}']`).click();
      await settled(page);
      await expect(page.locator("main h1")).toHaveText(trouble.says);
      await trouble.click(page);
      await settled(page);
      for (const scheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme: scheme });
        await settled(page);
        await trouble.proof(page);
        expect(await page.evaluate(() => document.documentElement.scrollWidth), `${width}`).toBeLessThanOrEqual(width);
      const tall = await page.locator("nav a > span").evaluateAll((all) => all.filter((name) => name.getBoundingClientRect().height > 24).map((name) => name.textContent));
      expect(tall, "names of views in one line").toEqual([]);
        await page.screenshot({ path: path.join(data, "../ui-pictures", `${slug(name)}-${scheme}-${width}.png`) });
      }
    }
  });
}

test("the start page says of each run what is wrong with it, trouble first", async ({ page, troubles }, { workerIndex }) => {
  await page.goto(`${troubles.address}#start`);
  await page.reload();
  await settled(page);
  const card = (name: string) => page.locator(`[data-process='${Object.keys(TROUBLES).indexOf(name)}']`);
  for (const [name, says] of [["leak", "grows"], ["too big", "out of memory"], ["a killed program", "killed by SIGKILL"], ["XLA temporaries", "no failure, no growth"], ["no steps", "no failure"]] as const) {
    await expect(card(name)).toContainText(says);
    await expect(page.getByRole("region", { name: "Traces" }).getByRole("row").filter({ hasText: fileOf(name, workerIndex) })).toContainText(says);
  }
  await expect(card("no steps")).not.toContainText("no growth"); // without steps, nobody knows
  const cut = await page.locator("[data-process] .head b").evaluateAll((all) => all.filter((name) => name.scrollWidth > name.clientWidth + 1 && name.clientWidth < 190).map((name) => name.textContent));
  expect(cut, "a name goes before its verdict").toEqual([]);
  const order = await page.locator("[data-process]").evaluateAll((all) => all.map((each) => Number(each.getAttribute("data-process"))));
  // What is not known is no figure: this run's parameters have no names.
  await card("no steps").click();
  await settled(page);
  await expect(page.locator("main")).not.toContainText("0 B of parameters");
  expect(order.indexOf(Object.keys(TROUBLES).indexOf("a killed program"))).toBeLessThan(order.indexOf(Object.keys(TROUBLES).indexOf("XLA temporaries")));
});

test("the pool map names the instants that matter, and each is about itself", async ({ page, troubles }, { workerIndex }) => {
  const at = Object.keys(TROUBLES).indexOf("out of memory in pieces");
  await page.goto(`${troubles.address}#map?trace=${at}&at=oom:1`);
  await page.reload();
  await settled(page);
  const truth = json("oom", trace(fileOf("out of memory in pieces", workerIndex))) as { events: { sentence: string; time_us: number }[] };
  await expect(page.locator("main h1")).toHaveText(truth.events[0]!.sentence);
  // One failure has one time, wherever it is named.
  const seconds = `${(truth.events[0]!.time_us / 1e6).toFixed(6)} s`;
  await expect(page.locator("[data-instant]")).toContainText(seconds);
  const { sentence } = json("fragmentation", trace(fileOf("out of memory in pieces", workerIndex))) as { sentence: string };
  expect(sentence).toContain(`failed at ${truth.events[0]!.time_us} µs`);
  const instants = page.getByRole("combobox", { name: "Instant" });
  await expect(instants.locator("option").first()).toHaveText("out of memory, step 4: 6.0 MiB requested");
  await instants.selectOption("peak");
  await settled(page);
  await expect(page.locator("main h1")).toContainText("All 48.0 MiB of the pool is in use at this instant.");
  await page.goBack();
  await expect(page.locator("main h1")).toHaveText(truth.events[0]!.sentence);
});

test("a ledger's bar leads to its category, a step's bar to its moment", async ({ page, troubles }, { workerIndex }) => {
  const problems = watch(page);
  await page.goto(`${troubles.address}#overview?trace=${Object.keys(TROUBLES).indexOf("autotuning")}`);
  await page.reload();
  await settled(page);
  await page.locator("[data-ledger=Categories] a.part.category").filter({ hasText: "activations" }).first().click();
  await settled(page);
  await expect.poll(() => page.url()).toContain("#peak?");
  expect(page.url()).toContain("f=category:activations");
  const truth = json("peak", trace(fileOf("autotuning", workerIndex)), "--at", "steady", "--where", "category:activations") as { total: number };
  expect(Number(await page.locator("[data-total]").getAttribute("data-total"))).toBe(truth.total);
  await page.goBack();
  await settled(page);
  const bars = page.getByRole("img", { name: /Steps 2 to 24/ });
  const box = (await bars.boundingBox())!;
  await page.mouse.click(box.x + 36 + (box.width - 36) * (4.5 / 24), box.y + box.height / 2);
  await expect.poll(() => page.url()).toContain("#timeline");
  expect(page.url()).toContain("at=step:5");
  expect(problems).toEqual([]);
});
