/** Isolated steps that wait for isolated steps: with the real ledger, git and files, and agents that are scripted. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { RunEvent } from "../../src/agents/coordination/contracts/run-event.ts";
import { createScriptedRunner, endDone } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { AGENT, plan, step } from "../core/planned-world.ts";
import { createRepository, runGit } from "../contract/git-scene.ts";
import { composeWith } from "./composed-coordinator.ts";

it("a step sees the files that the step before it merged, and changes the same lines without a question", async () => {
  using temporary = createTempFolder();
  const repository = temporary.file("agent");
  createRepository(repository, { "a.txt": "first\n" });
  const ended = Promise.withResolvers<string>();
  const questions: string[] = [];
  const hearEvent = (event: RunEvent): void => {
    if (event.type === "coordination.escalated") questions.push(event.payload.cause);
    if (event.type === "coordination.terminal") ended.resolve(event.payload.status);
  };
  let hasNewFile = false;
  const seen: Record<string, string> = {};
  const runner = createScriptedRunner(({ envelope: { stepId }, folder }) => {
    if (folder === undefined) return endDone();
    const file = join(folder, "a.txt");
    seen[stepId] = readFileSync(file, "utf8");
    writeFileSync(file, `changed by ${stepId}\n`);
    writeFileSync(join(folder, `${stepId}.txt`), "new\n");
    if (stepId === "test") hasNewFile = existsSync(join(folder, "impl.txt"));
    return endDone();
  });
  const coordinator = await composeWith({
    temporary,
    runner,
    onEvents: (events) => {
      for (const event of events) {
        hearEvent(event);
        if (questions.length > 0) ended.resolve("asked");
      }
    },
    workingFolder: "agent",
  });
  await coordinator.start();
  const steps = [
    step("impl", { isolate: "worktree" }),
    step("test", { isolate: "worktree", dependsOn: ["impl"] }),
  ];
  await coordinator.submitPlan({ plan: plan(steps), ownerAgent: AGENT });
  const status = await ended.promise;
  await coordinator.close();
  expect({ seen, hasNewFile, status }).toEqual({
    seen: { impl: "first\n", test: "changed by impl\n" },
    hasNewFile: true,
    status: "success",
  });
  expect(readFileSync(join(repository, "a.txt"), "utf8")).toBe("changed by test\n");
  expect(runGit(repository, "status", "--porcelain")).toBe(" M a.txt\n?? impl.txt\n?? test.txt\n");
  expect(runGit(repository, "branch", "--list", "coordination/*")).toBe("");
});
