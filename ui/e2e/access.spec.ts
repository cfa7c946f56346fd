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
  const token = new URL(served.address).searchParams.get("token") ?? "";
  const secret = { "X-Vramscope-Token": token };
  expect((await ask(`${served.origin}/api/hello`, secret)).status).toBe(200);
  expect((await ask(`${served.origin}/api/hello`)).status).toBe(401);
  expect((await ask(`${served.origin}/`)).status).toBe(401);
  expect((await ask(`${served.origin}/events`)).status).toBe(401);
  expect((await ask(`${served.origin}/api/hello`, { ...secret, Host: "evil.example" })).status).toBe(403);
  expect((await ask(`${served.origin}/api/hello`, { ...secret, Origin: "http://evil.example" })).status).toBe(403);
  expect((await ask(`${served.origin}/api/hello`, secret, "POST")).status).toBe(405);
  expect((await ask(`${served.origin}/etc/passwd`, secret)).status).toBe(404);
  expect((await ask(`${served.origin}/api/source?trace=0&at=peak&file=%2Fetc%2Fpasswd`, secret)).body).not.toContain("root:");
});

test("the page is told to trust nothing else, and answers are packed", async ({ served }) => {
  const page = await ask(served.address, { "Accept-Encoding": "gzip" });
  expect(page.headers["content-encoding"]).toBe("gzip");
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(page.headers["set-cookie"]?.[0]).toMatch(/HttpOnly; SameSite=Strict/);
});

test("the token leaves the address bar, and a reload still works", async ({ page, open }) => {
  await open("overview");
  expect(page.url()).not.toContain("token");
  await page.reload();
  await expect(page.locator("main h1")).toBeVisible();
});
