import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import {
  convertToBasisPointsDown,
  parseConfidence,
  readConfidenceOfCutText,
  readStatedConfidence,
} from "../../src/agents/coordination/gates/stated-confidence.ts";

const UNREADABLE = { confidenceUnreadable: true };

describe("what an agent states on the last line of its answer", () => {
  it.each([
    ['{"confidence":0.3}', 3_000],
    ['All is done.\n{"confidence": 0.3}', 3_000],
    ['All is done.\r\n{"confidence": 0.3}\r\n\n  ', 3_000],
    ['```json\n{"outcome":"ok","confidence":0.75}\n```', 7_500],
    ['```json\n{"confidence":1}\n```  \n', 10_000],
    ['Done.\n  {"confidence": 0.3}', 3_000],
    ['{"confidence":0}', 0],
    ['{"confidence":-0}', 0],
    ['{"confidence":1e-9}', 0],
    ['{"confidence":0.9}\n{"confidence":0.2}', 2_000],
    ['{"confidence":0.9,"confidence":0.2}', 2_000],
  ])("%j is %i", (text, confidence) => {
    expect(readStatedConfidence(text)).toEqual({ confidence });
  });

  it.each([
    '{"confidence":"0.9"}',
    '{"confidence":"high"}',
    '{"confidence":null}',
    '{"confidence":true}',
    '{"confidence":[0.9]}',
    '{"confidence":{"value":0.9}}',
    '{"confidence":NaN}',
    '{"confidence":Infinity}',
    '{"confidence":1e400}',
    '{"confidence":-0.1}',
    '{"confidence":1.0001}',
    '{"confidence":90}',
    '{"confidence":0.9',
    '{"confidence":',
    '{"confidence"',
    '{"outcome":"ok","confidence":0.9} and so on',
    "{'confidence':0.9, \"confidence\":1}",
  ])("%j states something that is no confidence", (text) => {
    expect(readStatedConfidence(text)).toEqual(UNREADABLE);
  });

  it.each([
    "",
    "\n\n",
    "I am quite sure, confidence 0.9",
    "confidence: 0.9",
    '["confidence", 0.9]',
    '{"outcome":"ok"}',
    '{"inner":{"confidence":0.9}}',
    '{"__proto__":{"confidence":0.9}}',
    '{"text":"my \\"confidence\\" is high"}',
    '{"confidence":0.9}\nThat was all.',
    '"confidence"',
    "{\n  no JSON\n}",
    'I say {\n"confidence": 0.1\n}',
  ])("%j states nothing", (text) => {
    expect(readStatedConfidence(text)).toEqual({});
  });

  it.each([
    '{\n  "outcome": "ok",\n  "confidence": 0.1\n}',
    '```json\n{\n  "outcome": "ok",\n  "confidence": 0.1\n}\n```',
    'Here it is:\n\n```json\n{\n  "outcome": "ok",\n  "confidence": 0.1\n}\n```',
    ' {\n  "outcome": "ok",\n  "confidence": 0.1}',
  ])("%j states it over several lines, as its outputs do", (text) => {
    expect(readStatedConfidence(text)).toEqual({ confidence: 1_000 });
  });

  it("in a line as long as a reply may be is read, and not in a longer one", () => {
    const fillLine = (length: number): string => `${'{"confidence":0.1'.padEnd(length - 1)}}`;
    expect(readStatedConfidence(fillLine(BOUNDS.replyCharsMax))).toEqual({ confidence: 1_000 });
    expect(readStatedConfidence(fillLine(BOUNDS.replyCharsMax + 1))).toEqual(UNREADABLE);
  });

  it("in one line that is too long to read states something that is no confidence", () => {
    const text = `{"a":"${"x".repeat(1_000_000)}","confidence":0.1}`;
    const begun = performance.now();
    expect(readStatedConfidence(text)).toEqual(UNREADABLE);
    expect(performance.now() - begun).toBeLessThan(100);
  });

  it("a last line of spaces and fences takes no time that grows with its square", () => {
    const begun = performance.now();
    readStatedConfidence(`${" `".repeat(500_000)}x`);
    readStatedConfidence(`${" ".repeat(1_000_000)}x`);
    expect(performance.now() - begun).toBeLessThan(100);
  });

  it("is read from any text without throwing, and what it says is a share or nothing", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => `{"confidence":${json}}`),
        ),
        (text) => {
          const { confidence } = readStatedConfidence(text);
          if (confidence === undefined) return;
          expect(Number.isInteger(confidence) && confidence >= 0 && confidence <= 10_000).toBe(true);
        },
      ),
    );
  });
});

describe("what an agent states at the end of an answer that was cut", () => {
  it.each([
    ["words", 'more words\n{"confidence": 0.1}', { confidence: 1_000 }],
    [
      '{"confidence": 0.9}\nwords',
      'more words\n```json\n{\n"confidence": 0.1\n}\n```',
      { confidence: 1_000 },
    ],
    ["words", "more words\n{'confidence': 0.1, \"confidence\": 1}", UNREADABLE],
    ["words", 'the end of a long line, "confidence": 0.9}', UNREADABLE],
    ["words", '{"confidence": 0.9}', UNREADABLE],
    ['{"confidence": 0.1, "words": "', 'more words"}', UNREADABLE],
    ['words\n```json\n{\n"confidence": 0.1, "words": "', 'more words"\n}\n```', UNREADABLE],
    ['{"words": "', 'more words"}', {}],
    ["words", "more\nwords", {}],
    ['{"confidence": 0.9}', "", UNREADABLE],
    ['my "confidence" is high\nwords', "more\nwords", {}],
  ])("%j ... %j is %j", (beginning, end, expected) => {
    expect(readConfidenceOfCutText(beginning, end)).toEqual(expected);
  });
});

describe("a confidence that came as a value", () => {
  it.each([Number.NaN, Infinity, -Infinity, -0.0001, 1.0001, "0.9", "", null, undefined, true, [0.9], {}])(
    "%j is none",
    (value) => {
      expect(parseConfidence(value)).toEqual(UNREADABLE);
    },
  );

  it("from 0 to 1 counts", () => {
    expect(parseConfidence(0)).toEqual({ confidence: 0 });
    expect(parseConfidence(1)).toEqual({ confidence: 10_000 });
  });
});

describe("a share in basis points", () => {
  it.each([
    [0.7, 7_000],
    [0.29, 2_900],
    [0.57, 5_700],
    [0.1 + 0.2, 3_000],
    [0.69999, 6_999],
    [0.49999999, 4_999],
    [0.5, 5_000],
    [1 / 3, 3_333],
  ])("%d is %i: rounded down, without what binary fractions add", (share, expected) => {
    expect(convertToBasisPointsDown(share)).toBe(expected);
  });

  it("that has four decimals is that number, and more is never rounded up", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000 }), fc.integer({ min: 0, max: 999 }), (whole, rest) => {
        expect(convertToBasisPointsDown(whole / 10_000)).toBe(whole);
        expect(convertToBasisPointsDown(Math.min(1, (whole + rest / 1_000) / 10_000))).toBe(
          Math.min(10_000, whole),
        );
      }),
    );
  });
});
