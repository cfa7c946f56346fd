import { describe, expect, it } from "vitest";
import { splitToken } from "./token";

describe("splitToken", () => {
  it("takes the secret and leaves the rest of the address", () => {
    expect(splitToken("#token=abc")).toEqual({ token: "abc", rest: "" });
    expect(splitToken("#token=abc#peak?at=end")).toEqual({ token: "abc", rest: "#peak?at=end" });
    expect(splitToken("#token=a%20b#")).toEqual({ token: "a b", rest: "#" });
  });
  it("leaves other addresses alone", () => {
    for (const hash of ["", "#", "#peak", "#token=", "#peak?f=token=abc", "#token=#peak"]) expect(splitToken(hash)).toBeNull();
  });
});
