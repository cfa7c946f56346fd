import { defineConfig } from "@playwright/test";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

// The system's own Chromium; nothing is downloaded.
export default defineConfig({
  testDir: "e2e",
  fullyParallel: true,
  workers: 2,
  timeout: 600_000, // only to end a test that hangs: the machine may be building something beside it
  expect: { timeout: 120_000 },
  reporter: [["line"]],
  outputDir: "../build/ui-test",
  globalSetup: "./e2e/setup.ts",
  use: {
    viewport: { width: 1440, height: 900 },
    colorScheme: "light",
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS },
  },
});
