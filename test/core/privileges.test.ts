import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  AgentId,
  CoordinationId,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import { privilegeSchema, type Privilege } from "../../src/agents/coordination/contracts/privilege.ts";
import { listOfferedTools } from "../../src/agents/coordination/privileges/offered-tools.ts";
import {
  listBoundsOfStep,
  type PrivilegeBound,
} from "../../src/agents/coordination/privileges/privilege-bound.ts";
import { describeRefusedCall } from "../../src/agents/coordination/privileges/privilege-sentence.ts";
import { findToolRefusal, isMatchingTool } from "../../src/agents/coordination/privileges/tool-rule.ts";
import {
  isGlobOfAll,
  isWithinGlobs,
  splitGlob,
} from "../../src/agents/coordination/privileges/write-rule.ts";

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  "group:fs": ["read", "write", "edit", "apply_patch"],
};
const HOST_TOOLS = [
  "read",
  "write",
  "edit",
  "apply_patch",
  "exec",
  "sessions_spawn",
  "sessions_send",
  "web_fetch",
];

/** As the host does it: one spelling, an alias, groups. */
const expand = (entries: readonly string[]): readonly string[] =>
  entries
    .map((entry) => entry.trim().toLowerCase())
    .map((entry) => (entry === "bash" ? "exec" : entry))
    .flatMap((entry) => GROUPS[entry] ?? [entry]);

function createBound(privilege: Privilege, stepId = "step-1"): PrivilegeBound {
  return {
    privilege,
    by: "spawn",
    coordinationId: "co-1" as CoordinationId,
    stepId: stepId as StepId,
    agentId: "main" as AgentId,
    session: `agent:main:subagent:${stepId}` as SessionKey,
  };
}

const isAllowed = (tool: string, ...privileges: readonly Privilege[]): boolean =>
  findToolRefusal(
    privileges.map((privilege) => createBound(privilege)),
    tool,
    expand,
  ) === undefined;

describe("the tools of a session", () => {
  it("are all where nobody says anything, and those that are allowed where somebody does", () => {
    expect(isAllowed("exec")).toBe(true);
    expect(isAllowed("exec", { tools: { allow: ["read"] } })).toBe(false);
    expect(isAllowed("read", { tools: { allow: ["read"] } })).toBe(true);
    expect(isAllowed("read", { tools: { allow: [] } })).toBe(false);
    expect(isAllowed("exec", { write: [] })).toBe(true);
  });

  it("are named by groups, by beginnings and in any spelling of the host", () => {
    expect(isAllowed("edit", { tools: { allow: ["group:fs"] } })).toBe(true);
    expect(isAllowed("sessions_spawn", { tools: { allow: ["sessions_*"] } })).toBe(true);
    expect(isAllowed("web_fetch", { tools: { allow: ["sessions_*"] } })).toBe(false);
    for (const spelled of ["exec", "EXEC", " Exec ", "bash", "Bash"])
      expect(isAllowed(spelled, { tools: { deny: ["exec"] } })).toBe(false);
  });

  it("include those of the coordination and the way to hidden ones, unless they are denied by name", () => {
    const usable = ["coordination_report", "coordination_escalate", "structured_output", "tool_call"];
    for (const tool of [...usable, "tool_search"]) {
      expect(isAllowed(tool, { tools: { allow: ["read"] } })).toBe(true);
      expect(isAllowed(tool, { tools: { allow: [], deny: ["*"] } })).toBe(true);
      expect(isAllowed(tool, { tools: { deny: [tool] } })).toBe(false);
    }
    expect(isAllowed("coordination_report", { tools: { deny: ["coordination_*"] } })).toBe(false);
    expect(isAllowed("coordination_plan", { tools: { allow: ["read"] } })).toBe(false);
  });

  it("are told in one sentence, with what is allowed and who said so", () => {
    const bound = createBound({ tools: { allow: ["read", "sessions_*"] } });
    expect(describeRefusedCall({ tool: "exec", rule: "tools.allow", bound })).toBe(
      "Coordination refused this call: this session may not use exec; it may use read, sessions_* (set by the spawn of step step-1 of coordination co-1).",
    );
  });
});

describe("a privilege as somebody wrote it", () => {
  it.each([
    { tools: { allow: ["se*s_spawn"] } },
    { tools: { deny: ["group:plugins"] } },
    { tools: { allow: "read" } },
    { tools: { allow: ["read"], also: ["exec"] } },
    { write: ["!secret/**"] },
    { write: [""] },
    { write: ["a\0b"] },
    { write: "src" },
    { tools: { allow: Array.from({ length: 129 }, (_, index) => `tool_${index}`) } },
  ])("is refused where it could not be held to: %j", (value) => {
    expect(privilegeSchema.safeParse(value).success).toBe(false);
  });
});

describe("files that may be changed", () => {
  const isWithin = (path: string, ...globs: readonly string[]): boolean =>
    isWithinGlobs(path, globs.map(splitGlob));

  it("fit a glob from its real beginning on", () => {
    expect(isWithin("/w/src/a/b.ts", "/w/src/**")).toBe(true);
    expect(isWithin("/w/src/a.ts", "/w/src/*.ts")).toBe(true);
    expect(isWithin("/w/src/a/b.ts", "/w/src/*.ts")).toBe(false);
    expect(isWithin("/w/src/a/b.ts", "/w/src/**/*.ts")).toBe(true);
    expect(isWithin("/w/srcs/a.ts", "/w/src/**")).toBe(false);
    expect(isWithin("/w/src/x/[id]/p.ts", "/w/src/x/[id]/*")).toBe(true);
    expect(isWithin("/w/a.ts")).toBe(false);
  });

  it("are a file, or all that is below a folder, where there is no wildcard", () => {
    expect(isWithin("/w/out", "/w/out")).toBe(true);
    expect(isWithin("/w/out/a/b", "/w/out")).toBe(true);
    expect(isWithin("/w/outer", "/w/out")).toBe(false);
  });

  it("are all where a glob catches everything, which narrows nothing", () => {
    for (const glob of ["/**", "/", "//**", "/**/**", "/**/*", "/*/**", "//", "/./**", "/.."])
      expect(isGlobOfAll(glob), glob).toBe(true);
    for (const glob of ["**", "src/**", "/w/**", "/*", "/**/*/*", "/**/*.md", "/...", "."])
      expect(isGlobOfAll(glob), glob).toBe(false);
  });

  it("are told in time that a glob of many wildcards cannot stretch", () => {
    const glob = `/${"*a".repeat(500)}b`;
    const start = performance.now();
    expect(isWithin(`/${"a".repeat(1_000)}`, glob)).toBe(false);
    expect(performance.now() - start).toBeLessThan(500);
  });
});

const entry = fc.constantFrom(
  "read",
  "write",
  "exec",
  "bash",
  "sessions_*",
  "s*",
  "*",
  "group:fs",
  "web_fetch",
);
const entries = fc.array(entry, { maxLength: 4 });
const arbitraryPrivilege: fc.Arbitrary<Privilege> = fc.record(
  {
    tools: fc.record({ allow: entries, deny: entries }, { requiredKeys: [] }),
    write: fc.array(fc.constantFrom("/w/**", "/w/src/*", "/w/a", "/**"), { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
const tool = fc.constantFrom(...HOST_TOOLS, "coordination_plan", "coordination_report", "tool_call");

describe("privileges along the way from a child to the owner", () => {
  it("never give a child more than whoever it works for, at any depth", () => {
    fc.assert(
      fc.property(
        fc.array(arbitraryPrivilege, { maxLength: 6 }),
        arbitraryPrivilege,
        tool,
        (above, added, name) => {
          if (isAllowed(name, added, ...above)) expect(isAllowed(name, ...above)).toBe(true);
        },
      ),
    );
  });

  it("do not depend on their order", () => {
    fc.assert(
      fc.property(fc.array(arbitraryPrivilege, { maxLength: 6 }), tool, (privileges, name) => {
        expect(isAllowed(name, ...privileges.toReversed())).toBe(isAllowed(name, ...privileges));
      }),
    );
  });

  it("let deny beat allow", () => {
    fc.assert(
      fc.property(arbitraryPrivilege, entry, fc.constantFrom(...HOST_TOOLS), (privilege, denied, name) => {
        const tools = { ...privilege.tools, deny: [...(privilege.tools?.deny ?? []), denied] };
        if (expand([denied]).some((one) => isMatchingTool(one, name)))
          expect(isAllowed(name, { ...privilege, tools })).toBe(false);
      }),
    );
  });

  it("show every tool that may be called, and of the host's own none that may not", () => {
    fc.assert(
      fc.property(
        fc.array(arbitraryPrivilege, { maxLength: 4 }),
        fc.constantFrom(...HOST_TOOLS),
        (privileges, name) => {
          const offered = listOfferedTools(
            privileges.map((one) => createBound(one)),
            expand,
            { hostTools: HOST_TOOLS, ownTools: [] },
          );
          const isShown = offered === undefined || offered.some((one) => isMatchingTool(one, name));
          const isReadOnly =
            privileges.some(({ write }) => write?.length === 0) && GROUPS["group:fs"]?.includes(name);
          if (!isReadOnly && isAllowed(name, ...privileges)) expect(isShown).toBe(true);
          // A name that is denied below an allowed beginning cannot be taken out of it.
          const isExact = offered?.includes(name) ?? true;
          if (!isAllowed(name, ...privileges)) expect(isExact).toBe(false);
        },
      ),
    );
  });
});

describe("the tools of the coordination", () => {
  it("are shown where they may be called, and only there", () => {
    const ownTools = ["coordination_plan", "coordination_report"];
    const list = (tools: Privilege["tools"]) =>
      listOfferedTools([createBound({ tools })], expand, { hostTools: HOST_TOOLS, ownTools });
    expect(list({ allow: ["read"] })).toContain("coordination_report");
    expect(list({ allow: ["read"] })).not.toContain("coordination_plan");
    expect(list({ allow: ["coordination_plan"] })).toContain("coordination_plan");
    expect(list({ deny: ["coordination_report"] })).not.toContain("coordination_report");
  });
});

describe("what a step adds", () => {
  it("is what its plan or spawn asks and the operator's rule for its agent, where they narrow anything", () => {
    const { coordinationId, stepId, agentId, session } = createBound({});
    const step = { coordinationId, stepId, agentId, session, isPlanned: true };
    expect(listBoundsOfStep(step)).toEqual([]);
    expect(listBoundsOfStep({ ...step, privilege: { asked: { tools: { deny: [] } } } })).toEqual([]);
    const both = { asked: { write: [] }, policy: { tools: { allow: ["read"] } } };
    expect(listBoundsOfStep({ ...step, privilege: both }).map(({ by }) => by)).toEqual(["step", "policy"]);
    expect(listBoundsOfStep({ ...step, isPlanned: false, privilege: both })[0]?.by).toBe("spawn");
  });
});
