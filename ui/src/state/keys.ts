// Keys that work everywhere. A view adds its own through `viewKeys`.
import { app } from "./app.svelte";
import { VIEW_TABLE } from "../gen/views";
import type { View } from "./address";

const GO = new Map<string, View>(VIEW_TABLE.filter((view) => view.key).map((view) => [view.key, view.name]));
type Handler = (event: KeyboardEvent) => boolean;
let ofView: Handler | null = null;
let waiting = 0;

/** The keys of the view on the screen; the answer of a handler says whether the key was its own. */
export function viewKeys(handler: Handler): () => void {
  ofView = handler;
  return () => { if (ofView === handler) ofView = null; };
}

export function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) || target.closest("dialog[open]")) return;
  if (waiting) {
    clearTimeout(waiting);
    waiting = 0;
    const view = GO.get(event.key);
    if (view) { app.go({ view, mode: "", table: false }); event.preventDefault(); }
    return;
  }
  if (ofView?.(event)) { event.preventDefault(); return; }
  if (common(event.key)) event.preventDefault();
}

function common(key: string): boolean {
  switch (key) {
    case "g": waiting = window.setTimeout(() => (waiting = 0), 1200); return true;
    case "/": document.getElementById("filter")?.focus(); return true;
    case "?": app.help = true; return true;
    case "t": app.go({ table: !app.place.table }, false); return true;
    case "y":
      void copied(location.href, "Link copied.").then(say);
      return true;
    case "Escape":
      if (app.place.selected || app.place.brush) app.go({ selected: "", brush: null }, false);
      else if (app.place.filter) app.go({ filter: "" });
      return true;
    default: return false;
  }
}

/** Puts the text into the clipboard; what to say about that. A page without a secure context has no clipboard. */
export function copied(text: string, done: string): Promise<string> {
  return (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => done, () => "The browser did not allow copying.");
}

let quiet = 0;
export function say(text: string): void {
  app.notice = text;
  clearTimeout(quiet);
  quiet = window.setTimeout(() => (app.notice = ""), 2500);
}
