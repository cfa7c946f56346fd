// The single state of the page: place, server, theme. Views read and write it; the address follows.
import { shown } from "../format/names";
import type { Hello, Overview } from "../gen/rpc";
import type { Client } from "../rpc/client";
import { formatAddress, HOME, parseAddress, viewNamed, type Place } from "./address";

type Theme = "light" | "dark";

class App {
  place = $state<Place>({ ...HOME });
  client = $state.raw<Client>(undefined as unknown as Client);
  hello = $state.raw<Hello | null>(null);
  overview = $state.raw<Overview | null>(null);
  error = $state("");
  theme = $state<Theme>("light");
  help = $state(false);
  /** Grows when a live run has new data; queries read it and ask again. */
  revision = $state(0);
  live = $state(false);
  /** It was live, and the recording has ended. */
  ended = $state(false);
  /** False while the user looks at an older place of a live run. */
  following = $state(true);
  notice = $state("");
  /** Grows when fonts have come: text on a canvas does not change by itself. */
  fonts = $state(0);

  get info() {
    return this.hello?.traces[this.place.trace] ?? null;
  }
  get inReport(): boolean {
    return this.client.transport.kind === "report";
  }

  /** Goes somewhere; `keep` = a step in the history that the back button returns to. */
  go(change: Partial<Place>, keep = true): void {
    Object.assign(this.place, change);
    const address = formatAddress(this.place);
    if (address === location.hash) return;
    if (keep) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  /** The same place in the trace that is shown: answers do not know which of several they speak of. */
  here(address: string): string {
    return formatAddress({ ...parseAddress(address), trace: this.place.trace });
  }

  follow(address: string): void {
    this.place = parseAddress(this.here(address));
    history.pushState(null, "", formatAddress(this.place));
  }

  link(change: Partial<Place>): string {
    return formatAddress({ ...this.place, ...change });
  }

  readAddress(): void {
    this.place = parseAddress(location.hash);
  }

  /** For the tab and the history: which view of which run. */
  get title(): string {
    const view = viewNamed(this.place.view).title;
    const run = this.place.view === "start" || !this.info ? "" : this.info.name;
    return [view, shown(run, 60), "vramscope"].filter(Boolean).join(" · ");
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    document.documentElement.dataset.theme = theme;
  }
}

export const app = new App();

export function watchTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  app.setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => app.setTheme(dark.matches ? "dark" : "light"));
  // In the frame of a notebook, whose colors need not be the system's: python/vramscope/notebook.py.
  addEventListener("message", (event: MessageEvent<{ vramscopeTheme?: unknown } | null>) => {
    const theme = event.source === parent && parent !== window ? event.data?.vramscopeTheme : undefined;
    if (theme === "light" || theme === "dark") app.setTheme(theme);
  });
  let before: Theme = app.theme;
  addEventListener("beforeprint", () => { before = app.theme; app.setTheme("light"); });
  addEventListener("afterprint", () => app.setTheme(before));
}

export function watchFonts(): void {
  document.fonts.addEventListener("loadingdone", () => { app.fonts++; });
}
