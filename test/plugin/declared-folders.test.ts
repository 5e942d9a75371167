/** From which folder the resources that a plan's step declares are found: with the real files, and agents that are scripted. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { AGENT, plan, step } from "../core/planned-world.ts";
import { composeWith } from "./composed-coordinator.ts";

it("is the folder in which the tools of the agent work, not its workspace", async () => {
  using temporary = createTempFolder();
  for (const name of ["workspace", "agent"]) mkdirSync(temporary.file(name));
  const sessions = new Map<string, SessionKey>();
  let acknowledged = 0;
  const areAtWork = Promise.withResolvers<undefined>();
  const coordinator = await composeWith({
    temporary,
    runner: createScriptedRunner(({ envelope: { stepId }, childSessionKey }) => {
      sessions.set(stepId, childSessionKey);
      return "work";
    }),
    onEvents: (events) => {
      acknowledged += events.filter(({ type }) => type === "step.acknowledged").length;
      if (acknowledged === 2) areAtWork.resolve(undefined);
    },
    workingFolder: "agent",
  });
  await coordinator.start();
  const steps = [step("editor", { resources: ["file:notes.md"] }), step("other")];
  await coordinator.submitPlan({ plan: plan(steps), ownerAgent: AGENT });
  await areAtWork.promise;
  const writeNotes = (folder: string): Promise<WriteAnswer> =>
    coordinator.arbiter.request({
      session: sessions.get("other") ?? ("" as SessionKey),
      tool: "write",
      callKey: folder,
      reads: [],
      targets: [{ at: { path: join(temporary.file(folder), "notes.md"), folder: "/" }, replaces: true }],
    });
  expect(await writeNotes("agent")).toMatchObject({
    kind: "refused",
    sentence: expect.stringContaining("declared by editor") as string,
  });
  expect(await writeNotes("workspace")).toEqual({ kind: "granted" });
  await coordinator.close();
});
