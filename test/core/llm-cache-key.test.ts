import { hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  formatCanonicalJson,
  findCanonicalProblem,
} from "../../src/agents/coordination/std/canonical-json.ts";
import {
  LLM_CACHE_KEY_RECIPE,
  createLlmCacheKeyText,
  readSemanticRequest,
  type SemanticRequest,
} from "../../src/agents/coordination/openwop/llm-cache-key.ts";

type Json = Readonly<Record<string, unknown>>;

const hello = [{ role: "user", content: "hello" }];
const base = { provider: "anthropic", model: "claude-x", messages: hello };
const createRequest = (...contents: readonly string[]) => ({
  ...base,
  messages: contents.map((content, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content })),
});
const createTools = (...names: readonly string[]) => names.map((name) => ({ name, parameters: {} }));

/** Digests that the protocol publishes with recipe v2. */
const VECTORS: readonly (readonly [what: string, input: Json, digest: string])[] = [
  ["the least there can be", base, "c92498949e9cc0e38bb2887e88e55b6936932e219b8344f0a7059b1de960073d"],
  [
    "a stop sequence",
    { ...base, stop: ["END"] },
    "2103c61f7b0e1e05c6535e562f52335649beae49e266b8264e60bc93c169dd87",
  ],
  ["a seed", { ...base, seed: 7 }, "fb942dce9de88688c89d048499f4a4e5a19427775da08d0d5a7ad709c10b42d0"],
  [
    "a bound of the answer",
    { ...base, maxOutputTokens: 256 },
    "96f74b752619868e3b7fad15f093c03b86b223974ea3e2b89a1831d22a4845ad",
  ],
  [
    "tools",
    { ...base, tools: createTools("zeta", "alpha") },
    "afb590dd7bf6c78915852e15318fd4c9d6d6e0d473288283f413e5e425ba0cd6",
  ],
  [
    "the same tools the other way round",
    { ...base, tools: createTools("alpha", "zeta") },
    "afb590dd7bf6c78915852e15318fd4c9d6d6e0d473288283f413e5e425ba0cd6",
  ],
  [
    "tools whose order depends on the alphabet",
    { ...base, tools: createTools("get_weather", "getWeather") },
    "8ddc711c24f17c75efa8fd61e4060573461973ed0ae3fc79c056533d6bb1d0d0",
  ],
  [
    "these the other way round",
    { ...base, tools: createTools("getWeather", "get_weather") },
    "8ddc711c24f17c75efa8fd61e4060573461973ed0ae3fc79c056533d6bb1d0d0",
  ],
  ["messages", createRequest("a", "b"), "06eb9873af60fb5c98222161bafdaec8f13a0f59b7b2c62a608a82a09520a74a"],
  [
    "messages the other way round",
    { ...base, messages: createRequest("a", "b").messages.toReversed() },
    "896b9d814f5d9fe5da72fa50e2d2ea9751d9e2b78da324729dcfbd3c8bb09109",
  ],
  [
    "what only the provider knows",
    { ...base, providerOptions: { "vendor.anthropic.reasoningEffort": "high" } },
    "fa34555d16eb6fedb2c587a4c4ac7e2cbeec8d0e8be0299b60910fe79c4055bf",
  ],
  [
    "a letter and its accent",
    createRequest("e\u0301"),
    "7365573baec75c4eeda16eed9d60a17aa18cd44871f652d7dd25e602941956e9",
  ],
  [
    "a letter with its accent",
    createRequest("\u00e9"),
    "a4a0d2077fa984fe50411e671a77ee4cdab81911cf6bffe33b4f680c696b01af",
  ],
];

function textOf(input: Json): string {
  const request = readSemanticRequest(input);
  const made = request && createLlmCacheKeyText(request);
  return made?.ok ? made.text : expect.fail("it has no key");
}

describe("the key of a request to a model", () => {
  test.each(VECTORS)("is the published one: %s", (_what, input, digest) => {
    expect(hash("sha256", textOf(input))).toBe(digest);
  });

  test("is over a text of known form", () => {
    expect(textOf(base)).toBe(
      `{"model":"claude-x","provider":"anthropic","recipe":"${LLM_CACHE_KEY_RECIPE}",` +
        '"request":{"messages":[{"content":"hello","role":"user"}]}}',
    );
  });

  test("tells null from absent where null is a value, and takes it for absent where it is none", () => {
    for (const field of ["responseFormat", "safetySettings", "providerOptions"])
      expect(textOf({ ...base, [field]: null })).not.toBe(textOf(base));
    for (const field of ["temperature", "seed", "stop", "tools"])
      expect(textOf({ ...base, [field]: null })).toBe(textOf(base));
  });

  test("is not there for what no recipe can be over", () => {
    for (const wrong of [
      { ...base, provider: "" },
      { ...base, model: 1 },
      { ...base, messages: "hello" },
    ])
      expect(readSemanticRequest(wrong)).toBeUndefined();
    const torn = readSemanticRequest(createRequest("\ud800"));
    expect(torn && createLlmCacheKeyText(torn)).toMatchObject({ ok: false });
  });
});

const text = fc.string({ unit: "binary" });
const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>;
const record = fc.dictionary(text, json, { maxKeys: 5 });
const tools = fc.uniqueArray(fc.record({ name: text, parameters: record }), {
  selector: ({ name }) => name,
  maxLength: 5,
});
const share = fc.double({ noNaN: true, noDefaultInfinity: true });
const requests: fc.Arbitrary<SemanticRequest> = fc.record(
  {
    provider: fc.string({ minLength: 1, unit: "binary" }),
    model: fc.string({ minLength: 1, unit: "binary" }),
    messages: fc.array(fc.record({ role: text, content: text }), { maxLength: 4 }),
    tools,
    temperature: share,
    topP: share,
    topK: fc.nat(),
    maxOutputTokens: fc.nat(),
    seed: fc.integer(),
    stop: fc.array(text, { minLength: 1, maxLength: 3 }),
    responseFormat: record,
    safetySettings: record,
    providerOptions: record,
  },
  { requiredKeys: ["provider", "model", "messages"] },
);

/** The same value, with the members of every object the other way round. */
function reverseKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reverseKeys);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).toReversed();
  return Object.fromEntries(members.map(([name, member]) => [name, reverseKeys(member)]));
}

describe("of every request the key", () => {
  test("does not depend on the order of members and tools, nor on what changes no answer", () => {
    fc.assert(
      fc.property(requests, record, fc.integer(), (request, metadata, seed) => {
        const ignored = { stream: true, metadata, user: "u", "x-request-id": `${seed}`, traceparent: "t" };
        const more = { tenantId: "t", runId: `run-${seed}`, timeoutMs: seed };
        const other = reverseKeys({ ...ignored, ...request, ...more }) as Json;
        const shuffled = request.tools ? { ...other, tools: request.tools.toReversed() } : other;
        expect(textOf(shuffled)).toBe(textOf({ ...request }));
      }),
    );
  });

  test("is another one with every field that is another one", () => {
    const other: Readonly<Record<string, unknown>> = {
      provider: "@p",
      model: "@m",
      messages: [{ role: "@", content: "@" }],
      tools: createTools("@other"),
      temperature: 0.123,
      topP: 0.123,
      topK: 123_456,
      maxOutputTokens: 123_456,
      seed: 123_456,
      stop: ["@other"],
      responseFormat: { "@": 1 },
      safetySettings: { "@": 1 },
      providerOptions: { "@": 1 },
    };
    fc.assert(
      fc.property(requests, fc.constantFrom(...Object.keys(other)), (request, field) => {
        const had = formatCanonicalJson(request[field as keyof SemanticRequest]);
        fc.pre(had !== formatCanonicalJson(other[field]));
        expect(textOf({ ...request, [field]: other[field] })).not.toBe(textOf({ ...request }));
      }),
    );
  });

  test("has a text that is JSON again, and as much of it as was asked", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { messages, provider } = request;
        const again = JSON.parse(textOf({ ...request })) as { provider: string; request: Json };
        expect([again.provider, again.request["messages"]]).toEqual([provider, messages]);
      }),
    );
  });
});

describe("canonical JSON", () => {
  test("orders members by UTF-16 code units, those that look like numbers too", () => {
    const value = {
      "\u20ac": 1,
      "\r": 2,
      "\ufb33": 3,
      "1": 4,
      "\ud83d\ude00": 5,
      "\u0080": 6,
      "\u00f6": 7,
      "10": 8,
    };
    expect(Object.keys(JSON.parse(formatCanonicalJson(value)) as object)).toHaveLength(8);
    expect(formatCanonicalJson(value)).toBe(
      '{"\\r":2,"1":4,"10":8,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
    );
  });

  test("writes numbers as ECMAScript does, and takes them as they come", () => {
    const numbers = [333333333.3333333, 1e30, 4.5, 2e-3, 0.000000000000000000000000001, -0, 0.0];
    expect(formatCanonicalJson(numbers)).toBe("[333333333.3333333,1e+30,4.5,0.002,1e-27,0,0]");
  });

  test("leaves out what is undefined, and keeps a member by any name", () => {
    const odd = JSON.parse('{"__proto__": {"a": 1}, "b": null}') as Json;
    expect(formatCanonicalJson({ ...odd, c: undefined })).toBe('{"__proto__":{"a":1},"b":null}');
  });

  test("tells what has no text", () => {
    expect(findCanonicalProblem({ a: ["\udc00"] })).toContain("surrogate");
    expect(findCanonicalProblem([Number.NaN])).toContain("finite");
    expect(findCanonicalProblem({ "\ud800": 1 })).toContain("surrogate");
    expect(findCanonicalProblem({ a: [1, "\ud83d\ude00", null] })).toBeUndefined();
  });

  test("is the same for equal values, and another one for others", () => {
    fc.assert(
      fc.property(json, json, (one, other) => {
        expect(formatCanonicalJson(reverseKeys(one))).toBe(formatCanonicalJson(one));
        const isSame =
          JSON.stringify(JSON.parse(formatCanonicalJson(one))) ===
          JSON.stringify(JSON.parse(formatCanonicalJson(other)));
        expect(formatCanonicalJson(one) === formatCanonicalJson(other)).toBe(isSame);
      }),
    );
  });
});
