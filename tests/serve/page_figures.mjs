// The figures of the page's answers, written by the page's own code: answers in base64 on stdin, texts on stdout, both JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const ui = new URL("../../ui/", import.meta.url);
const typescript = createRequire(new URL("package.json", ui))("typescript");

/** A module of the page that imports only types and its neighbors. */
function load(path) {
  const exports = {};
  const source = typescript.transpileModule(readFileSync(new URL(path, ui), "utf8"), { compilerOptions: { module: "commonjs", target: "es2022" } });
  new Function("exports", "require", source.outputText)(exports, (name) => load(`${path.slice(0, path.lastIndexOf("/"))}/${name.slice(2)}.ts`));
  return exports;
}

const { decodeAnswer } = load("src/rpc/decode.ts");
const { inUnit, size } = load("src/format/numbers.ts");
const { unitOfLayers, unitOfLedger, unitOfPeak } = load("src/format/tables.ts");
const LAYER_PARTS = ["parameters", "gradients", "optimizer_state", "activations", "activation_gradients", "temporaries", "total", "own_peak"];

function figures({ overview, peak, steady, layers }) {
  const ledger = overview.ledgers.find((each) => each.at === "peak");
  const inLedger = (bytes) => inUnit(bytes, unitOfLedger(ledger));
  return {
    figures: overview.figures.map((each) => [each.label, size(each.bytes)]),
    sentences: { overview: overview.sentence, peak: peak.sentence, steady: steady.sentence, layers: layers.sentence },
    ledger: (ledger?.lines ?? []).map((line) => [line.name, inLedger(line.bytes), line.parts.map((part) => [part.name, inLedger(part.bytes)])]),
    categories: peak.nodes.filter((node) => node.depth === 0).map((node) => [node.name, inUnit(node.bytes, unitOfPeak(peak))]),
    layers: layers.rows.map((row) => [row.name, ...LAYER_PARTS.map((part) => inUnit(row[part], unitOfLayers(layers)))]),
  };
}

const asked = JSON.parse(readFileSync(0, "utf8"));
const decoded = asked.map((each) => Object.fromEntries(Object.entries(each).map(([name, text]) => [name, decodeAnswer(new Uint8Array(Buffer.from(text, "base64")))])));
process.stdout.write(JSON.stringify(decoded.map(figures)));
