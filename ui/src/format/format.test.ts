import { describe, expect, it } from "vitest";
import { codeParts, shown } from "./names";
import { age, change, duration, inUnit, percent, sinceStep, size, unitFor } from "./numbers";

const MIB = 1024 ** 2;

describe("figures", () => {
  it("have one decimal, a comma for thousands and one unit", () => {
    expect(size(259.8 * MIB)).toBe("259.8 MiB");
    expect(size(2050 * MIB)).toBe("2,050.0 MiB");
    expect(size(143771 * MIB)).toBe("143,771.0 MiB");
    expect(size(1_100_000 * MIB)).toBe("1,074.2 GiB");
    expect(size(7_602_176)).toBe("7.3 MiB");
    expect(size(256 * 1024)).toBe("256.0 KiB");
    expect(size(0)).toBe("0 B");
    expect(size(null)).toBe("–");
  });
  it("round a half up", () => {
    expect([0.1225, 0.12251, 0.5, 1].map(percent)).toEqual(["12.3 %", "12.3 %", "50.0 %", "100.0 %"]);
  });
  it("use a real minus, and none before a zero", () => {
    expect(change(-97.8 * MIB, unitFor(MIB))).toBe("−97.8");
    expect(change(47.6 * MIB, unitFor(MIB))).toBe("+47.6");
    expect(inUnit(-1, unitFor(MIB))).toBe("0.0");
  });
  it.each([[60, "60 µs"], [6318, "6.3 ms"], [6350, "6.4 ms"], [999_960, "1,000.0 ms"], [8e6, "8.0 s"], [7200e6, "120.0 min"], [0, "0 µs"]])("write %d µs as %s", (us, text) => expect(duration(us)).toBe(text));
  it.each([[174, "0.174 ms"], [6318, "6.318 ms"], [1_200_000, "1.200000 s"]])("write %d µs into a step as the sentences do: %s", (us, text) => expect(sinceStep(us)).toBe(text));
  it("call a block of this instant new", () => expect([0, 60, null].map(age)).toEqual(["new", "60 µs", "–"]));
});

describe("foreign names", () => {
  it("show control and direction characters as escapes", () => {
    expect(shown("a\u0000b\u202Ec\nd")).toBe("a\\u0000b\\u202ec\\u000ad");
  });
  it("are cut", () => expect(shown("x".repeat(10_000))).toHaveLength(160));
  it("have their code marked", () => expect(codeParts("Set `A=1`, then")).toEqual(["Set ", "A=1", ", then"]));
});
