import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { Client, type Transport } from "./rpc/client";
import { EmbeddedTransport } from "./rpc/embedded";
import { HttpTransport } from "./rpc/http";
import { ReportTransport } from "./report/transport";
import { takeToken } from "./rpc/token";
import { app, watchFonts, watchTheme } from "./state/app.svelte";
import { follow } from "./state/live";
import { PROTOCOL } from "./gen/rpc";

async function transport(): Promise<Transport> {
  const payload = document.getElementById("payload")?.textContent?.trim() ?? "";
  if (payload) return new ReportTransport(await EmbeddedTransport.open(payload));
  return new HttpTransport();
}

async function start(): Promise<void> {
  watchTheme();
  watchFonts();
  takeToken();
  app.readAddress();
  mount(App, { target: document.getElementById("app") as HTMLElement }); // the frame appears at once, the data when it is unpacked
  try {
    app.client = new Client(await transport());
    const hello = await app.client.ask("hello", {});
    if (hello.protocol !== PROTOCOL) throw new Error(`The page uses protocol version ${PROTOCOL}, the program version ${hello.protocol}: reload the page.`);
    if (hello.traces.length === 0 && !hello.live) throw new Error("No trace found. Record one with `vramscope run -- python train.py`.");
    app.hello = hello;
    if (hello.traces.length > 1 && location.hash === "") app.place.view = "start";
    follow();
    if (!hello.traces[app.place.trace]) app.go({ trace: 0 }, false);
  } catch (problem) {
    app.error = (problem as Error).message;
  }
}

void start();
