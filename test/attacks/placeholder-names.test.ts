/** Owns: that nobody guesses a held result from the placeholder that stands for it. */
import { hash, randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import { findHeldBackName } from "../../src/agents/coordination/gates/placeholder.ts";
import type { Gate } from "../../src/agents/coordination/contracts/verification.ts";
import { accessGateMemory, type GatedNow } from "../../src/plugins/openclaw/runtime-access/gate-memory.ts";
import { keepTextBack } from "../../src/plugins/openclaw/withholding/text-transforms.ts";

const A = "agent:main:subagent:a" as SessionKey;
const B = "agent:main:subagent:b" as SessionKey;
const memory = accessGateMemory();
const { key } = memory;

function nameOf(session: SessionKey, text: string): string | undefined {
  const gated = { session, isStrict: true, gate: { withhold: "strict" } as unknown as Gate } as GatedNow;
  return findHeldBackName(keepTextBack(gated, text));
}

afterEach(() => {
  memory.key = key;
});

describe("the name in a placeholder", () => {
  it("is no hash that somebody without the key could compute from a guess", () => {
    const name = nameOf(A, "yes");
    const guesses = ["yes", `${A} yes`, `${A}\0yes`].map((guess) => hash("sha256", guess));
    expect(name).toMatch(/^[0-9a-f]{64}$/u);
    expect(guesses).not.toContain(name);
  });

  it("differs for the same words of another session, so that no agent learns what a sibling said", () => {
    expect(nameOf(A, "yes")).not.toBe(nameOf(B, "yes"));
  });

  it("differs under another key, and is the same again under the same one", () => {
    const before = nameOf(A, "yes");
    memory.key = randomBytes(32);
    expect(nameOf(A, "yes")).not.toBe(before);
    memory.key = key;
    expect(nameOf(A, "yes")).toBe(before);
  });
});
