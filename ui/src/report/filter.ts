// The filter language of src/analyze/query/filter.h, for what a report contains. Its errors are those of the program.
import {
  CATEGORIES, filterComparesText, FILTER_ENDS_EARLY, filterInvalidExpression, FILTER_LACKS_PARENTHESIS, filterLacksQuote, FILTER_LACKS_TERM, filterLacksValue,
  filterNeedsNumber, filterUnexpected, filterUnknownCategory, filterUnknownField,
} from "../gen/texts";

export interface Filterable {
  text(field: string): string;
  granted: number;
  requested: number;
}
export type Matches = (block: Filterable) => boolean;

const TEXTS = ["category", "layer", "op", "line", "dtype", "shape", "phase", "step", "pool", "owner", "region", "name", "known"];
const SIZES: Record<string, (b: Filterable) => number> = { size: (b) => b.granted, granted: (b) => b.granted, requested: (b) => b.requested, slack: (b) => b.granted - Math.min(b.granted, b.requested) };
const ONLY_IN_THE_TRACE = ["age", "lifetime", "born", "live", "id", "stack", "stream", "device"];

interface Word { type: "(" | ")" | "and" | "or" | "not" | "term"; field: string; op: string; value: string; text: string }

function split(text: string): Word[] {
  const words: Word[] = [];
  let at = 0;
  for (;;) {
    while (/\s/.test(text[at] ?? "")) at++;
    if (at >= text.length) return words;
    const start = at;
    const word: Word = { type: "term", field: "", op: "", value: "", text: "" };
    if (text[at] === "(" || text[at] === ")") word.type = text[at++] as "(" | ")";
    else {
      const field = /^([A-Za-z0-9_]+)([:=@]|[<>]=?)/.exec(text.slice(at));
      if (field) { word.field = field[1]!.toLowerCase(); word.op = field[2]!; at += field[0].length; }
      const value = /^(?:"(?:\\.|[^"\\])*"|\/(?:\\.|[^/\\])*\/)/s.exec(text.slice(at));
      if (!value && (text[at] === '"' || text[at] === "/")) throw new Error(filterLacksQuote(text.slice(at)));
      const raw = value?.[0] ?? /^[^\s()]*/.exec(text.slice(at))![0];
      at += raw.length;
      word.value = raw.startsWith('"') ? raw.slice(1, -1).replace(/\\(["\\])/g, "$1") : raw;
      const bare = word.value.toLowerCase();
      if (!word.field && (bare === "and" || bare === "or" || bare === "not")) word.type = bare;
    }
    word.text = text.slice(start, at);
    words.push(word);
  }
}

/** Throws an Error with a message for the person who typed it. */
export function compileFilter(text: string): Matches {
  const words = split(text);
  let at = 0;
  const any = (): Matches => {
    const parts = [all()];
    while (words[at]?.type === "or") { at++; parts.push(all()); }
    return (b) => parts.some((part) => part(b));
  };
  const all = (): Matches => {
    const parts: Matches[] = [];
    do {
      parts.push(one());
      if (words[at]?.type === "and" && ++at === words.length) throw new Error(FILTER_LACKS_TERM);
    } while (at < words.length && words[at]!.type !== "or" && words[at]!.type !== ")");
    return (b) => parts.every((part) => part(b));
  };
  const one = (): Matches => {
    const word = words[at++];
    if (!word) throw new Error(FILTER_ENDS_EARLY);
    if (word.type === "not") { const inner = one(); return (b) => !inner(b); }
    if (word.type === "(") {
      const inner = any();
      if (words[at++]?.type !== ")") throw new Error(FILTER_LACKS_PARENTHESIS);
      return inner;
    }
    if (word.type === "term") return term(word);
    throw new Error(filterUnexpected(word.text));
  };
  if (words.length === 0) return () => true;
  const root = any();
  if (at < words.length) throw new Error(filterUnexpected(words[at]!.text));
  return root;
}

function matcher(value: string, anywhere: boolean): (text: string) => boolean {
  let pattern = value.length >= 2 && value.startsWith("/") && value.endsWith("/") ? value.slice(1, -1) : null;
  if (pattern === null) {
    const glob = value.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("[^]*");
    pattern = anywhere ? glob : `^${glob}$`;
  }
  let expression: RegExp;
  try { expression = new RegExp(pattern, "i"); } catch { throw new Error(filterInvalidExpression(value)); }
  return (text) => expression.test(text);
}

function term({ field, op, value, text }: Word): Matches {
  if (!field) {
    const match = matcher(value, true);
    return (b) => match(b.text("op")) || match(b.text("line")) || match(b.text("layer")) || (b.text("name") !== "" && match(b.text("name")));
  }
  if (!value) throw new Error(filterLacksValue(field, op));
  const size = SIZES[field];
  if (size) return comparison(op, bytesOf(value, text, op), size);
  const name = field === "kind" ? "category" : field;
  if (ONLY_IN_THE_TRACE.includes(name) || (name === "step" && op !== ":") || (name === "region" && /^\d+$/.test(value)))
    throw new Error(`filter: "${field}" does not work in a report; open the trace with 'vramscope serve'`);
  if (!TEXTS.includes(name)) throw new Error(filterUnknownField(field, [...TEXTS, ...Object.keys(SIZES)].join(", ")));
  if (op !== ":" && op !== "=") throw new Error(filterComparesText(text, field, value));
  const match = matcher(value, false);
  if (name === "category" && !CATEGORIES.some((category) => formsOf(name, category).some(match)))
    throw new Error(filterUnknownCategory(value, CATEGORIES.map(categoryWord).join(", ")));
  return textTerm(name, match);
}

const categoryWord = (category: string) => category.replace(/ /g, "_");

// As in the program, an op matches by its path or its last part, and a line with or without folders and number.
function formsOf(field: string, text: string): string[] {
  const last = (path: string) => path.slice(path.lastIndexOf("/") + 1);
  const file = (line: string) => (line.includes(":") ? line.slice(0, line.lastIndexOf(":")) : line);
  if (field === "op") return [text, last(text)];
  if (field === "line") return [text, file(text), last(text), file(last(text))];
  return field === "category" ? [text, categoryWord(text)] : [text];
}

function textTerm(field: string, match: (text: string) => boolean): Matches {
  const known = new Map<string, boolean>();
  return (b) => {
    const text = b.text(field);
    let yes = known.get(text);
    if (yes === undefined) known.set(text, (yes = formsOf(field, text).some(match)));
    return yes;
  };
}

function bytesOf(value: string, text: string, op: string): number {
  const found = /^(\d+(?:\.\d*)?(?:e\d+)?) *(?:([kmgt])(i?b)?|b)?$/i.exec(value);
  if (!found) throw new Error(filterNeedsNumber(text, op));
  const power = found[2] ? "kmgt".indexOf(found[2].toLowerCase()) + 1 : 0;
  return Math.floor(Number(found[1]) * (found[3]?.toLowerCase() === "b" ? 1000 : 1024) ** power);
}

function comparison(op: string, limit: number, of: (b: Filterable) => number): Matches {
  const tests: Record<string, Matches> = { ">": (b) => of(b) > limit, "<": (b) => of(b) < limit, ">=": (b) => of(b) >= limit, "<=": (b) => of(b) <= limit };
  return tests[op] ?? ((b) => of(b) === limit);
}
