// Changes an answer on its way to the page: states that no small trace has.
import type { Page } from "@playwright/test";
import { decodeAnswer } from "../src/rpc/decode";

export function encodeAnswer(value: unknown): Buffer {
  const columns: Buffer[] = [];
  let offset = 0;
  const json = Buffer.from(JSON.stringify(value, (_key, part: unknown) => {
    if (!(part instanceof Float64Array)) return part;
    const bytes = Buffer.alloc(8 * part.length);
    part.forEach((number, i) => bytes.writeDoubleLE(number, 8 * i));
    const place = { $: [offset, part.length, "f"] };
    offset += bytes.length;
    columns.push(bytes);
    return place;
  }));
  const head = Buffer.alloc(8);
  head.write("VSA1");
  head.writeUInt32LE(json.length, 4);
  return Buffer.concat([head, json, ...columns]);
}

export async function tamper<T>(page: Page, request: string, change: (answer: T) => void): Promise<void> {
  await page.route(new RegExp(`/api/${request}(\\?|$)`), async (route) => {
    const response = await route.fetch();
    const answer = decodeAnswer(new Uint8Array(await response.body())) as T;
    change(answer);
    await route.fulfill({ status: 200, contentType: "application/octet-stream", body: encodeAnswer(answer) });
  });
}
