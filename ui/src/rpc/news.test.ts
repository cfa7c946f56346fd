import { describe, expect, it } from "vitest";
import { takeMessages } from "./news";

describe("takeMessages", () => {
  it("takes whole messages and keeps the rest", () => {
    expect(takeMessages('data: {"a":1}\n\n:\n\ndata: {"b":')).toEqual({ messages: ['{"a":1}'], left: 'data: {"b":' });
    expect(takeMessages("")).toEqual({ messages: [], left: "" });
    expect(takeMessages("data: x\n\n")).toEqual({ messages: ["x"], left: "" });
  });
});
