/** In which folder a check for a file looks: with the real verifier, ledger and worktrees, and agents that are scripted. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { ChildRequest, ChildRun } from "../../src/agents/coordination/contracts/fact-fields.ts";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import type { RunningCoordinator } from "../../src/plugins/compose.ts";
import { OWNER, spawnOf } from "../support/fake-clock-host.ts";
import { createScriptedRunner, endDone } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { AGENT, plan, step } from "../core/planned-world.ts";
import { createRepository } from "../contract/git-scene.ts";
import { composeWith } from "./composed-coordinator.ts";

const FILE = "report.md";
const PROGRAM = join(import.meta.dirname, "../support/acp-agent.ts");

const checks = ["written"];
const gates = {
  verifiers: { written: { kind: "file", path: FILE } },
  agents: { main: { checks }, program: { checks } },
};

function readRuling(event: RunEvent): string | undefined {
  if (event.type === "result.verified") return event.payload.verdict;
  return event.type === "verification.failed" ? event.payload.because : undefined;
}

interface CheckScene extends AsyncDisposable {
  readonly coordinator: RunningCoordinator;
  folderOf(name: string): string;
  /** Puts the file into a folder, which it returns. */
  putFile(name: string): string;
  /** Resolves with the verdict of the check, or with why there is none. */
  readonly ruling: Promise<string>;
}

/** Every agent's results are held against a file; agents of the host write it into the folder that their order names. */
async function createChecked(): Promise<CheckScene> {
  const temporary = createTempFolder();
  const ruling = Promise.withResolvers<string>();
  const runner = createScriptedRunner(({ folder }) => {
    if (folder !== undefined) writeFileSync(join(folder, FILE), "# Report\n");
    return endDone();
  });
  const putFile = (name: string): string => {
    mkdirSync(temporary.file(name), { recursive: true });
    writeFileSync(temporary.file(`${name}/${FILE}`), "# Report\n");
    return temporary.file(name);
  };
  for (const name of ["workspace", "agent", "program"])
    createRepository(temporary.file(name), { "a.txt": "a\n" });
  const program = { command: process.execPath, args: [PROGRAM], cwd: temporary.file("program") };
  const acpAgents = { program };
  const coordinator = await composeWith({
    temporary,
    phase1: { gates, acpAgents },
    runner,
    onEvents: (events) => {
      for (const event of events) {
        const answer = readRuling(event);
        if (answer !== undefined) ruling.resolve(answer);
      }
    },
    workingFolder: "agent",
  });
  await coordinator.start();
  return {
    coordinator,
    folderOf: (name) => temporary.file(name),
    putFile,
    ruling: ruling.promise,
    [Symbol.asyncDispose]: async () => {
      await coordinator.close();
      temporary[Symbol.dispose]();
    },
  };
}

it.each([
  ["of its own", "agent", "main"],
  ["of a program", "program", "program"],
])("looks in the working folder %s, which is not the agent's workspace", async (_, name, agent) => {
  await using checked = await createChecked();
  checked.putFile(name);
  const { coordinator } = checked;
  expect(
    await coordinator.submitPlan({ plan: plan([step("a", { agent })]), ownerAgent: AGENT }),
  ).toMatchObject({
    kind: "accepted",
  });
  expect(await checked.ruling).toBe("pass");
});

it("does not look in the workspace of an agent that works elsewhere", async () => {
  await using checked = await createChecked();
  checked.putFile("workspace");
  await checked.coordinator.submitPlan({ plan: plan([step("a")]), ownerAgent: AGENT });
  expect(await checked.ruling).toBe("fail");
});

it("looks in the worktree of a step that has one, before its work is merged", async () => {
  await using checked = await createChecked();
  const isolated = step("a", { isolate: "worktree" });
  await checked.coordinator.submitPlan({ plan: plan([isolated]), ownerAgent: AGENT });
  expect(await checked.ruling).toBe("pass");
});

/** A spawn of a model that asks for something, and runs as the host says. */
async function endSpawn({ coordinator }: CheckScene, requested: ChildRequest, ran?: ChildRun): Promise<void> {
  const { spawn, ...request } = spawnOf({ task: "t" });
  const admission = await coordinator.admitSpawn({ ...request, spawn: { ...spawn, requested } });
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId } = admission.envelope;
  const childSessionKey = "agent:main:subagent:1" as SessionKey;
  const claim = { coordinationId, stepId, sourceSession: OWNER, toolCallId: "t" };
  await coordinator.confirmSpawn(claim, { childSessionKey, childRunId: "run-1" });
  const watched = await coordinator.childWatch.find(childSessionKey);
  if (watched && ran) await coordinator.childWatch.observe(watched, { ran });
  await coordinator.report(childSessionKey, { outcome: "completed", outputs: { n: 1 } });
  await coordinator.endChild(childSessionKey, { outcome: "completed" });
}

it("looks in the folder that a spawn asked for", async () => {
  await using checked = await createChecked();
  await endSpawn(checked, { folder: checked.putFile("asked") });
  expect(await checked.ruling).toBe("pass");
});

it("looks in the folder in which the host says that a child ran, whatever was asked", async () => {
  await using checked = await createChecked();
  await endSpawn(checked, { folder: checked.folderOf("agent") }, { folder: checked.putFile("ran") });
  expect(await checked.ruling).toBe("pass");
  await using other = await createChecked();
  await endSpawn(other, { folder: other.putFile("asked") }, { folder: other.folderOf("agent") });
  expect(await other.ruling).toBe("fail");
});
