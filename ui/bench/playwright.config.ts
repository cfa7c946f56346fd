import { defineConfig } from "@playwright/test";
import tests from "../playwright.config";

// One after the other and without haste: it measures.
const { use, reporter } = tests;
export default defineConfig({ use: use!, reporter: reporter!, testDir: ".", outputDir: "../../build/ui-bench", workers: 1, timeout: 900_000 });
