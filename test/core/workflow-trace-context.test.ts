/** Owns: how a trace context is read and written, and which trace headers of a request are passed on. */
import { describe, expect, it } from "vitest";
import {
  formatTraceparent,
  parseTraceparent,
  readTraceHeaders,
  createTraceHeaders,
} from "../../src/agents/coordination/workflow/trace-context.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const createParent = (span = SPAN, flags = "01"): string => `00-${TRACE}-${span}-${flags}`;

describe("a traceparent", () => {
  it.each([
    ["00", 0],
    ["01", 1],
    ["02", 2],
    ["ff", 3],
    ["fc", 0],
  ])("keeps of the flags %s those whose meaning is known", (flags, read) => {
    expect(parseTraceparent(createParent(SPAN, flags))).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      flags: read,
    });
  });

  it.each([
    [0, "00"],
    [3, "03"],
    [16, "10"],
  ])("is written with the flags %i as two digits", (flags, digits) => {
    expect(formatTraceparent({ traceId: TRACE, spanId: SPAN, flags })).toBe(createParent(SPAN, digits));
  });

  it.each([
    undefined,
    "",
    `ff-${TRACE}-${SPAN}-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    createParent("0".repeat(16)),
    `${createParent()}-more`,
    `01-${TRACE}-${SPAN}-01more`,
    createParent("B7AD6B7169203331"),
    createParent(SPAN, ""),
    ` ${createParent()}`,
  ])("is none where it cannot be: %j", (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

describe("the trace headers of a call", () => {
  it.each(["a=1", "~", "x".repeat(512)])("have a tracestate that a header takes", (tracestate) => {
    expect(createTraceHeaders({ traceparent: createParent(), tracestate })).toStrictEqual({
      traceparent: createParent(),
      tracestate,
    });
  });

  it.each([undefined, "", "x".repeat(513), "a=1\r\nx: y", "a=ä", "ä=1"])(
    "have no tracestate that a header does not take",
    (tracestate) => {
      expect(createTraceHeaders({ traceparent: createParent(), tracestate })).toStrictEqual({
        traceparent: createParent(),
      });
    },
  );

  it.each([undefined, "", "no"])("are none without a traceparent: %j", (traceparent) => {
    expect(createTraceHeaders({ traceparent, tracestate: "a=1" })).toStrictEqual({});
  });
});

describe("the trace headers of a request", () => {
  it("are written as this version writes them", () => {
    const traceparent = `cc-${TRACE}-${SPAN}-ff-more`;
    expect(readTraceHeaders({ traceparent, tracestate: "a=1" })).toStrictEqual({
      traceparent: createParent(SPAN, "03"),
      tracestate: "a=1",
    });
  });

  it("have no tracestate that cannot be passed on", () => {
    expect(readTraceHeaders({ traceparent: createParent(), tracestate: "a=ä" })).toStrictEqual({
      traceparent: createParent(),
    });
  });

  it.each([undefined, "no"])("are none without a traceparent: %j", (traceparent) => {
    expect(readTraceHeaders({ traceparent, tracestate: "a=1" })).toStrictEqual({});
  });
});
