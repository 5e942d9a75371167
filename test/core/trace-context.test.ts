import { describe, expect, it } from "vitest";
import {
  PARENT_HEADER,
  readParentHeader,
  formatParentHeader,
} from "../../src/agents/coordination/workflow/parent-header.ts";
import {
  parseTraceparent,
  createTraceHeaders,
} from "../../src/agents/coordination/workflow/trace-context.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const HEADER = `00-${TRACE}-${SPAN}-01`;

describe("a traceparent", () => {
  it("is read", () => {
    expect(parseTraceparent(HEADER)).toEqual({ traceId: TRACE, spanId: SPAN, flags: 1 });
  });

  it("of a later version is read by what this one knows", () => {
    expect(parseTraceparent(`cc-${TRACE}-${SPAN}-ff-more`)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      flags: 3,
    });
  });

  it.each([
    undefined,
    "",
    `ff-${TRACE}-${SPAN}-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}`,
    `${HEADER}\n`,
    ` ${HEADER}`,
  ])("is none where it cannot be: %j", (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });

  it("goes out with a tracestate that a header takes, and never a broken one", () => {
    expect(createTraceHeaders({ traceparent: HEADER, tracestate: "a=1" })).toEqual({
      traceparent: HEADER,
      tracestate: "a=1",
    });
    expect(createTraceHeaders({ traceparent: HEADER, tracestate: "a=1\r\nx: y" })).toEqual({
      traceparent: HEADER,
    });
    expect(createTraceHeaders({ traceparent: "no", tracestate: "a=1" })).toEqual({});
  });
});

describe(`the header ${PARENT_HEADER}`, () => {
  const parent = {
    runId: "run-ä-😀",
    hostId: "host \u0000 a",
    cause: "core.subWorkflow",
    wellKnownUrl: "https://a.example/.well-known/openwop",
  } as const;

  it("carries what it was given, as visible ASCII", () => {
    const text = formatParentHeader(parent);
    expect(text).toMatch(/^[\x20-\x7e]+$/);
    expect(readParentHeader(text)).toEqual(parent);
  });

  it.each([
    undefined,
    "",
    "null",
    "[]",
    "{",
    JSON.stringify({ ...parent, cause: "mine" }),
    JSON.stringify({ ...parent, runId: "" }),
    JSON.stringify({ ...parent, wellKnownUrl: undefined }),
    JSON.stringify({ ...parent, wellKnownUrl: "javascript:alert(1)" }),
    JSON.stringify({ ...parent, wellKnownUrl: `https://a.example/${"a".repeat(5_000)}` }),
  ])("is none where it cannot be: %s", (text) => {
    expect(readParentHeader(text)).toBeUndefined();
  });
});
