import { svelte } from "@sveltejs/vite-plugin-svelte";
import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";

// One HTML file with everything inside: the report is that file with its data put in, the server sends it as it is.
export default defineConfig({
  plugins: [svelte(), viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2022", assetsInlineLimit: 1_000_000, cssCodeSplit: false, modulePreload: false, reportCompressedSize: false },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
