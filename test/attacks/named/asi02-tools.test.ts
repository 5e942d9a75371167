/** Owns: tools that are allowed, used for what they are not there for (ASI02). */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createPlanTools } from "../../../src/plugins/openclaw/plans/plan-tools.ts";
import type { ToolName } from "../../../src/plugins/openclaw/declarations/tool-declarations.ts";
import { createPlanAccess } from "../../../src/plugins/openclaw/runtime-access/plan-access.ts";
import { CHILD, GRANDCHILD, openAttackedPlugin, OWNER, type AttackedPlugin } from "./plugin-scene.ts";

const SIBLING = "agent:main:subagent:sibling";
const STRANGER_SESSION = "agent:other:main";

let plugin: AttackedPlugin;
beforeEach(async () => {
  plugin = await openAttackedPlugin();
});
afterEach(() => plugin[Symbol.asyncDispose]());

const useTool = (tool: ToolName, sessionKey: string, params: unknown) =>
  createPlanTools(createPlanAccess(plugin.host.api), () => true)(
    tool,
    { sessionKey, agentId: "main" },
    params,
  );

it("ASI02-1 a file that a sibling holds, by every name that it has", async () => {
  mkdirSync(join(plugin.folder, "docs"));
  writeFileSync(join(plugin.folder, "docs", "a.md"), "x");
  symlinkSync(join(plugin.folder, "docs"), join(plugin.folder, "same"));
  await plugin.spawn(OWNER, CHILD, {});
  await plugin.spawn(OWNER, SIBLING, {});
  expect(await plugin.call(CHILD, "write", { path: "docs/a.md", content: "mine" })).toBeUndefined();
  for (const path of [
    "docs/a.md",
    "./docs/a.md",
    "docs/../docs/a.md",
    "same/a.md",
    "docs//a.md",
    join(plugin.folder, "docs", "a.md"),
  ])
    expect([path, await plugin.call(SIBLING, "write", { path, content: "theirs" })]).toEqual([
      path,
      expect.stringMatching(/Coordination refused/u),
    ]);
});

it.each([
  ["a program that writes by an option", "sort -o ../x a.txt"],
  ["a redirection", "cat a.txt > ../x"],
  ["a shell in a shell", "sh -c 'echo x > ../x'"],
  ["a substitution", "echo $(touch ../x)"],
  ["a variable", "touch $HOME/x"],
  ["a folder that is entered first", "cd .. && touch x"],
  ["words that are decoded first", "echo dG91Y2ggLi4veA== | base64 -d | sh"],
  ["a second line", "true\ntouch ../x"],
])("ASI02-2 a command under a rule for folders that writes elsewhere by %s", async (_, command) => {
  await plugin.spawn(OWNER, CHILD, { coordination: { write: ["out/**"] } });
  expect(await plugin.call(CHILD, "exec", { command })).toMatch(/lies outside|cannot be told/u);
});

it("ASI02-3 a patch of which one file of many lies elsewhere", async () => {
  mkdirSync(join(plugin.folder, "out"));
  await plugin.spawn(OWNER, CHILD, { coordination: { write: ["out/**"] } });
  const createPatch = (...files: readonly string[]): string =>
    ["*** Begin Patch", ...files.flatMap((file) => [`*** Add File: ${file}`, "+x"]), "*** End Patch"].join(
      "\n",
    );
  expect(await plugin.call(CHILD, "apply_patch", { input: createPatch("out/a", "out/b") })).toBeUndefined();
  for (const file of ["x", "out/../x", "/etc/x", "out/a\n*** Add File: x"])
    expect(await plugin.call(CHILD, "apply_patch", { input: createPatch("out/c", file) })).toMatch(
      /lies outside|cannot be told/u,
    );
});

it("ASI02-4 a call whose parameters are no parameters: getters of JavaScript, depth, size", async () => {
  mkdirSync(join(plugin.folder, "out"));
  await plugin.spawn(OWNER, CHILD, { coordination: { write: ["out/**"] } });
  const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`) as Record<string, unknown>;
  const polluted = JSON.parse('{"__proto__":{"path":"out/a"},"path":"../x"}') as Record<string, unknown>;
  for (const params of [deep, polluted, { path: ["out/a", "../x"] }, { path: { toString: "out/a" } }, {}])
    expect(await plugin.call(CHILD, "write", params)).toMatch(/lies outside|cannot be told/u);
});

it("ASI02-5 results and states of another owner's work, by the tools that tell one's own", async () => {
  await plugin.spawn(OWNER, CHILD, { task: "the plans of the vault" });
  const [created] = await plugin.readEvents("coordination.created");
  const coordinationId = created?.runId ?? expect.fail("nothing was coordinated");
  for (const tool of ["coordination_status", "coordination_result"] as const)
    for (const params of [
      { coordinationId },
      { coordinationId, stepId: "step-1" },
      { coordinationId, ownerSession: OWNER },
    ]) {
      const answer = JSON.stringify(await useTool(tool, STRANGER_SESSION, params));
      expect(answer).toMatch(/refused|error|INVALID|no |"results":\[\]/u);
      expect(answer).not.toMatch(/vault|subagent:child/u);
    }
});

it("ASI02-6 a report, progress or question of a session that is no child, in the name of one", async () => {
  await plugin.spawn(OWNER, CHILD, {});
  const before = (await plugin.readEvents()).length;
  const forged = { sessionKey: CHILD, stepId: "step-1", childSessionKey: CHILD };
  await useTool("coordination_report", STRANGER_SESSION, { outcome: "completed", outputs: {}, ...forged });
  await useTool("coordination_report", STRANGER_SESSION, { outcome: "completed", outputs: {} });
  await useTool("coordination_progress", STRANGER_SESSION, { text: "half way", ...forged });
  expect(await plugin.readEvents()).toHaveLength(before);
});

it("ASI02-7 a child that answers its own question, or one to people", async () => {
  await plugin.spawn(OWNER, CHILD, {});
  await plugin.spawn(CHILD, GRANDCHILD, {});
  void useTool("coordination_escalate", CHILD, { kind: "approval", question: "May I?", waitMs: 1_000 });
  await expect.poll(() => plugin.readEvents("coordination.escalated")).toHaveLength(1);
  const [question] = await plugin.readEvents("coordination.escalated");
  const questionId = `${question!.runId}:${(question!.payload as { escalationId: string }).escalationId}`;
  for (const sessionKey of [CHILD, GRANDCHILD, STRANGER_SESSION]) {
    const answer = await useTool("coordination_answer", sessionKey, { questionId, answer: "approve" });
    expect(JSON.stringify(answer)).toMatch(/refused|error|INVALID/u);
  }
  const answers = await plugin.readEvents("escalation.answered");
  expect(answers.filter(({ payload }) => !("refused" in payload))).toEqual([]);
});

it("ASI02-8 a plan of a model that names another owner, or has names of JavaScript", async () => {
  const steps = [{ stepId: "a", task: "t" }];
  const plan = JSON.parse(
    `{"objective":"o","ownerSession":"${STRANGER_SESSION}","__proto__":{"admin":true},"steps":${JSON.stringify(steps)}}`,
  ) as unknown;
  await useTool("coordination_plan", OWNER, { plan });
  const created = await plugin.readEvents("coordination.created");
  expect(created.map(({ payload }) => (payload as { ownerSession: string }).ownerSession)).not.toContain(
    STRANGER_SESSION,
  );
  expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
});
