import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  PARENT_HEADER,
  readParentHeader,
  writeParentHeader,
} from "../../src/agents/coordination/workflow/parent-header.ts";
import {
  childOf,
  parseTraceparent,
  traceHeaders,
} from "../../src/agents/coordination/workflow/trace-context.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";
const HEADER = `00-${TRACE}-${SPAN}-01`;
const createHex = (digits: number): fc.Arbitrary<string> =>
  fc
    .array(fc.integer({ min: 0, max: 15 }), { minLength: digits, maxLength: digits })
    .map((each) => each.map((digit) => digit.toString(16)).join(""));

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
    expect(childOf(text, "a".repeat(16))).toBeUndefined();
  });

  it("has children of the same trace, with another span, the same for the same seed", () => {
    fc.assert(
      fc.property(createHex(32), createHex(16), createHex(64), (trace, span, seed) => {
        const parent = parseTraceparent(`00-${trace}-${span}-01`);
        fc.pre(parent !== undefined);
        const child = childOf(`00-${trace}-${span}-01`, seed);
        const read = parseTraceparent(child);
        expect(read).toMatchObject({ traceId: trace, flags: 1 });
        expect(read?.spanId).not.toBe(span);
        expect(childOf(`00-${trace}-${span}-01`, seed)).toBe(child);
      }),
    );
  });

  it.each(["0".repeat(16), SPAN, "f".repeat(16)])(
    "has a child with a span of its own for the seed %s",
    (seed) => {
      const read = parseTraceparent(childOf(HEADER, seed));
      expect(read?.spanId).toMatch(/^(?!0{16})[0-9a-f]{16}$/);
      expect(read?.spanId).not.toBe(SPAN);
    },
  );

  it("has no child without a seed", () => {
    expect(childOf(HEADER, "short")).toBeUndefined();
    expect(childOf(HEADER, "z".repeat(16))).toBeUndefined();
  });

  it("goes out with a tracestate that a header takes, and never a broken one", () => {
    expect(traceHeaders({ traceparent: HEADER, tracestate: "a=1" })).toEqual({
      traceparent: HEADER,
      tracestate: "a=1",
    });
    expect(traceHeaders({ traceparent: HEADER, tracestate: "a=1\r\nx: y" })).toEqual({ traceparent: HEADER });
    expect(traceHeaders({ traceparent: "no", tracestate: "a=1" })).toEqual({});
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
    const text = writeParentHeader(parent);
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
