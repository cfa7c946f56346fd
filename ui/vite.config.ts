import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { viteSingleFile } from "vite-plugin-singlefile";
import type { Plugin, ProxyOptions } from "vite";
import { defineConfig } from "vitest/config";

// src/gen follows from schema/rpc and is written anew by whatever reads this file: build, unit tests, `npm run dev`.
execFileSync("npm", ["run", "--silent", "generate"], { stdio: "inherit" });

/** Names the page's own script and style by their hashes: nothing else runs in it, neither served nor opened from a file. */
function contentSecurityPolicy(): Plugin {
  return {
    name: "content-security-policy",
    apply: "build",
    closeBundle() {
      const file = "dist/index.html";
      const html = readFileSync(file, "utf8");
      const hashes = (tag: string) =>
        [...html.matchAll(new RegExp(`<${tag}\\b([^>]*)>([\\s\\S]*?)</${tag}>`, "g"))]
          .filter((m) => !m[1]!.includes("text/plain"))
          .map((m) => `'sha256-${createHash("sha256").update(m[2]!).digest("base64")}'`)
          .join(" ");
      const policy = `default-src 'none'; script-src ${hashes("script")}; style-src ${hashes("style")}; img-src data:; font-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
      writeFileSync(file, html.replace("<head>", `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`));
    },
  };
}

function serverProxy(): Record<string, ProxyOptions> {
  const address = process.env.VRAMSCOPE_SERVER;
  if (!address) return {};
  const { origin, hash } = new URL(address);
  const options: ProxyOptions = { target: origin, changeOrigin: true, headers: { "X-Vramscope-Token": hash.replace("#token=", "") } };
  return { "/api": options, "/events": options };
}

// One HTML file with everything inside: the report is that file with its data put in, the server sends it as it is.
export default defineConfig({
  plugins: [svelte(), viteSingleFile({ removeViteModuleLoader: true }), contentSecurityPolicy()],
  // `npm run dev` with the address that `vramscope serve` printed in VRAMSCOPE_SERVER: the page reloads while it is edited.
  server: { proxy: serverProxy() },
  build: { target: "es2022", assetsInlineLimit: 1_000_000, cssCodeSplit: false, modulePreload: false, reportCompressedSize: false },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
