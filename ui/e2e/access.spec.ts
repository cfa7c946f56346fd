// Who may read the traces.
import http from "node:http";
import { expect, test } from "./page";

function ask(url: string, headers: Record<string, string> = {}, method = "GET"): Promise<{ status: number; body: string; headers: http.IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers }, (response) => {
      let body = "";
      response.on("data", (part: Buffer) => { body += part.toString("latin1"); });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body, headers: response.headers }));
    });
    request.on("error", reject);
    request.end();
  });
}

test("a request without the token, for another host or from another page is refused", async ({ served }) => {
  const secret = { Authorization: `Bearer ${served.token}` };
  expect((await ask(`${served.origin}/api/hello`, secret)).status).toBe(200);
  expect((await ask(`${served.origin}/api/hello`, { "X-Vramscope-Token": served.token })).status).toBe(200);
  expect((await ask(`${served.origin}/api/hello`)).status).toBe(401);
  expect((await ask(`${served.origin}/api/hello?token=${served.token}`)).status, "an address is seen by others").toBe(401);
  expect((await ask(`${served.origin}/api/hello`, { Cookie: `token=${served.token}` })).status).toBe(401);
  expect((await ask(`${served.origin}/events`)).status).toBe(401);
  expect((await ask(`${served.origin}/api/hello`, { ...secret, Host: "evil.example" })).status).toBe(403);
  expect((await ask(`${served.origin}/api/hello`, { ...secret, Origin: "http://evil.example" })).status).toBe(403);
  expect((await ask(`${served.origin}/api/hello`, secret, "POST")).status).toBe(405);
  expect((await ask(`${served.origin}/etc/passwd`, secret)).status).toBe(404);
  expect((await ask(`${served.origin}/api/source?trace=0&at=peak&file=%2Fetc%2Fpasswd`, secret)).body).not.toContain("root:");
});

test("the page may load nothing from elsewhere, and answers are packed", async ({ served }) => {
  const page = await ask(served.address, { "Accept-Encoding": "gzip" });
  expect(page.headers["content-encoding"]).toBe("gzip");
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(page.headers["set-cookie"], "a cookie goes to every port of the host").toBeUndefined();
});

test("the token leaves the address bar, and a reload still works", async ({ page, open }) => {
  await open("overview");
  expect(page.url()).not.toContain("token");
  await page.reload();
  await expect(page.locator("main h1")).toBeVisible();
});

test("another port of this host is never sent the token", async ({ page, open }) => {
  const seen: string[] = [];
  const other = http.createServer((request, response) => { seen.push(JSON.stringify(request.headers) + request.url); response.end("hello"); });
  await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
  try {
    await open("overview");
    const { port } = other.address() as { port: number };
    const token = await page.evaluate(() => sessionStorage.getItem("vramscope-token"));
    expect(token).toMatch(/^[0-9a-f]{32}$/);
    await page.goto(`http://127.0.0.1:${port}/`);
    expect(await page.evaluate(() => sessionStorage.getItem("vramscope-token") ?? document.cookie)).toBe("");
    expect(seen.length).toBeGreaterThan(0);
    for (const request of seen) expect(request).not.toContain(token);
  } finally {
    other.close();
  }
});

test("without the token the page says where it is, and a new address in the same tab is taken", async ({ browser, served }) => {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${served.origin}/`);
  await expect(page.getByText("contains the token")).toBeVisible();
  await page.goto(`${served.address}#steps`);
  await expect(page.locator("main h1")).toBeVisible();
  expect(page.url()).toBe(`${served.origin}/#steps`);
});
