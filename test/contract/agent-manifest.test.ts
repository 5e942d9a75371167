/** Owns: that our schema of a manifest accepts what the official one does, and nothing else. */
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { readAgentManifest } from "../../src/agents/coordination/contracts/workflows/agent-manifest.ts";
import { findSchemaProblems } from "../openwop/levels-schemas.ts";

const VALID = {
  agentId: "vendor.acme.pack.writer",
  persona: "Writer",
  modelClass: "writing",
  systemPrompt: "Write.",
};

const WRONG: readonly (readonly [what: string, manifest: unknown])[] = [
  ["nothing", {}],
  ["no object", "vendor.acme.writer"],
  ["an agent of a host", { ...VALID, agentId: "host:writer" }],
  ["an id of two words", { ...VALID, agentId: "vendor.writer" }],
  ["an id with a capital in its first words", { ...VALID, agentId: "vendor.Acme.writer" }],
  ["an id that is too long", { ...VALID, agentId: `vendor.a.${"b".repeat(250)}` }],
  ["no persona", { ...VALID, persona: "" }],
  ["a persona that is too long", { ...VALID, persona: "x".repeat(201) }],
  ["a class that is not there", { ...VALID, modelClass: "chat" }],
  ["both prompts", { ...VALID, systemPromptRef: "p.md" }],
  ["no prompt", { ...VALID, systemPrompt: undefined }],
  ["an empty prompt", { ...VALID, systemPrompt: "" }],
  ["a tool that has no name", { ...VALID, toolAllowlist: [""] }],
  ["a need twice", { ...VALID, requiresCapabilities: ["memory", "memory"] }],
  ["a shape of memory that is not there", { ...VALID, memoryShape: { forever: true } }],
  ["a threshold above 1", { ...VALID, confidence: { defaultThreshold: 1.1 } }],
  ["a label that is too long", { ...VALID, label: "x".repeat(101) }],
  ["a description that is too long", { ...VALID, description: "x".repeat(501) }],
  ["an override of another kind", { ...VALID, promptOverrides: { other: "prompt:a" } }],
  ["a reference that is none", { ...VALID, promptOverrides: { user: "writer" } }],
  ["a reference with more", { ...VALID, promptOverrides: { user: { templateId: "a", more: 1 } } }],
  ["a key that is not there", { ...VALID, tools: [] }],
  ["a handoff with more", { ...VALID, handoff: { taskSchema: {} } }],
];

const RIGHT: readonly (readonly [what: string, manifest: unknown])[] = [
  ["what it needs", VALID],
  ["a prompt in a file", { ...VALID, systemPrompt: undefined, systemPromptRef: "prompts/w.md" }],
  ["an empty allowlist", { ...VALID, toolAllowlist: [] }],
  ["capitals in the last words", { ...VALID, agentId: "core.acme.myWriter" }],
  [
    "texts of as many characters as there may be, none of one code unit",
    { ...VALID, persona: "😀".repeat(200) },
  ],
  [
    "everything",
    {
      ...VALID,
      evalSuiteRef: "e.json",
      toolAllowlist: ["openwop:x", "mcp:y"],
      requiresCapabilities: ["memory"],
      memoryShape: { longTerm: true, scratchpad: false },
      confidence: { defaultThreshold: 0 },
      handoff: { taskSchemaRef: "t.json", returnSchemaRef: "r.json" },
      label: "W",
      description: "",
      promptLibraryRef: "lib",
      promptOverrides: { user: "prompt:a@1.0.0", "few-shot": { templateId: "b", version: "1.0.0-rc.1" } },
    },
  ],
];

const copyPlain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const isOurs = (value: unknown): boolean => readAgentManifest(copyPlain(value)).ok;
const isTheirs = (value: unknown): boolean =>
  findSchemaProblems("agent-manifest", copyPlain(value)).length === 0;

describe("a manifest", () => {
  it.each(RIGHT)("is one with %s", (_what, manifest) => {
    expect(isOurs(manifest)).toBe(true);
    expect(findSchemaProblems("agent-manifest", copyPlain(manifest))).toEqual([]);
  });

  it.each(WRONG)("is none with %s", (_what, manifest) => {
    expect(isOurs(manifest)).toBe(false);
  });
});

/** Whether the official schemas lie beside this repository. */
const isThere = !isTheirs({});

test.runIf(isThere)("the official schema says the same of the wrong ones", () => {
  expect(WRONG.filter(([, manifest]) => isTheirs(manifest)).map(([subject]) => subject)).toEqual([]);
});

const values: fc.Arbitrary<unknown> = fc.oneof(
  fc.string(),
  fc.constantFrom("prompt:a", "a.b", "core.a.b", "reasoning", ""),
  fc.double({ min: -1, max: 2, noNaN: true }),
  fc.boolean(),
  fc.array(fc.string(), { maxLength: 3 }),
  fc.constant({}),
  fc.record({ longTerm: fc.boolean() }),
  fc.record({ defaultThreshold: fc.double({ min: -0.5, max: 1.5, noNaN: true }) }),
);
const KEYS = [
  ...["agentId", "persona", "modelClass", "systemPrompt", "systemPromptRef", "evalSuiteRef", "toolAllowlist"],
  ...[
    "requiresCapabilities",
    "memoryShape",
    "confidence",
    "handoff",
    "label",
    "description",
    "promptLibraryRef",
  ],
  ...["promptOverrides", "other"],
];

test.runIf(isThere)("the official schema says the same of any manifest that was changed in any way", () => {
  const change = fc.record({ key: fc.constantFrom(...KEYS), value: fc.option(values, { nil: undefined }) });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 4 }), (changes) => {
      const manifest = changes.reduce<object>((made, { key, value }) => ({ ...made, [key]: value }), VALID);
      expect(isOurs(manifest)).toBe(isTheirs(manifest));
    }),
    { numRuns: 1_000 },
  );
});
