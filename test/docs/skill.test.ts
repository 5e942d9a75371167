/** Owns: that the bundled skill is small, is only for gateways with the flag on, and names what there is. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { formatPlaceholder } from "../../src/agents/coordination/gates/placeholder.ts";
import type {
  AgentId,
  CoordinationId,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import type { PrivilegeBound } from "../../src/agents/coordination/privileges/privilege-bound.ts";
import { describeRefusedCall } from "../../src/agents/coordination/privileges/privilege-sentence.ts";
import { TOOL_DECLARATIONS, TOOL_NAMES } from "../../src/plugins/openclaw/declarations/tool-declarations.ts";

const FOLDER = new URL("../../", import.meta.url);
/** About 800 tokens: the model reads all of it before it plans. */
const CHARS_MAX = 3_500;
/** The host puts the description into the prompt of every session. */
const DESCRIPTION_CHARS_MAX = 120;

const BOUND: PrivilegeBound = {
  privilege: { tools: { deny: ["exec"] } },
  by: "policy",
  coordinationId: "co-1" as CoordinationId,
  stepId: "notes" as StepId,
  agentId: "main" as AgentId,
  session: "agent:main:subagent:1" as SessionKey,
};

const text = readFileSync(new URL("skills/coordination/SKILL.md", FOLDER), "utf8");
const [, head = "", body = ""] = /^---\n(.*?)\n---\n(.*)$/su.exec(text) ?? [];

interface SkillHead {
  readonly name: string;
  readonly description: string;
  readonly "user-invocable": boolean;
  readonly metadata: { readonly openclaw: { readonly requires: { readonly config: readonly string[] } } };
}

const { name, description, metadata, "user-invocable": isCommand } = parse(head) as SkillHead;

describe("the skill", () => {
  it("is small, and its description smaller", () => {
    expect(text.length).toBeLessThan(CHARS_MAX);
    expect(description.length).toBeLessThan(DESCRIPTION_CHARS_MAX);
  });

  it("is shown to models only where the flag is on", () => {
    expect(metadata.openclaw.requires.config).toEqual([
      "plugins.entries.coordination.config.coordination.phase1.enabled",
    ]);
  });

  it("is no command of its own, which would take /coordination from the plugin", () => {
    expect(name).toBe("coordination");
    expect(isCommand).toBe(false);
  });

  it("names only tools that there are, but for the progress of a step all of them", () => {
    const named = new Set(body.match(/coordination_[a-z]+/gu));
    expect([...named].toSorted()).toEqual(
      TOOL_NAMES.filter((tool) => tool !== "coordination_progress").toSorted(),
    );
  });

  it("names only fields that the tools have", () => {
    const declared = JSON.stringify(TOOL_DECLARATIONS);
    const fields = [
      "resources",
      "outputSchema",
      "dependsOn",
      "isolate",
      "tools",
      "write",
      "confidence",
      "outputs",
    ];
    for (const field of fields) {
      expect(body).toContain(field);
      expect(declared).toContain(`"${field}":`);
    }
  });

  it("quotes what models are told as they are told it", () => {
    const quotes = [...body.replaceAll(/\s+/gu, " ").matchAll(/"([A-Z][a-z][^"]+)"/gu)].map(
      ([, words = ""]) => words,
    );
    expect(quotes).toEqual([
      "Coordination refused this call ... is held by ...",
      "This result is held back until it is ruled on",
    ]);
    expect(describeRefusedCall({ tool: "exec", rule: "tools.deny", bound: BOUND })).toMatch(
      /^Coordination refused this call/u,
    );
    expect(formatPlaceholder("")).toContain("this result is held back until it is ruled on");
  });
});
