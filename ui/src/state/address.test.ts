import { describe, expect, it } from "vitest";
import { formatAddress, HOME, parseAddress } from "./address";

describe("the address", () => {
  it("comes back as it was written", () => {
    const place = { ...HOME, view: "timeline" as const, trace: 3, at: "step:20+6.318ms", range: [6237800, 6257200] as [number, number], by: "layer", filter: "layer:conv2d_1 and size>1MiB", selected: "9821", solo: "activations", into: "activations›dense_1", table: true };
    expect(parseAddress(formatAddress(place))).toEqual(place);
  });
  it("writes only what differs", () => {
    expect(formatAddress(HOME)).toBe("#overview");
    expect(formatAddress({ ...HOME, view: "peak", at: "peak" })).toBe("#peak?at=peak");
  });
  it("takes a bare time in seconds", () => {
    expect(parseAddress("#timeline?t=6.244485").at).toBe("6.244485s");
  });
  it.each(["", "#", "#nothing", "#timeline?r=a..b", "#timeline?r=5..1&trace=-1&with=x", "#<script>"])("makes the best of %j", (text) => {
    const place = parseAddress(text);
    expect(place.range).toBeNull();
    expect(place.trace).toBe(0);
    expect(place.other).toBe(-1);
  });
});
