/** Owns: that nothing can be written through what a running coordinator gives to readers. */
import { expect, it } from "vitest";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { composeWith } from "./composed-coordinator.ts";

it("a running coordinator's reads have no function of its store that writes", async () => {
  using temporary = createTempFolder();
  const coordinator = await composeWith({
    temporary,
    runner: createScriptedRunner(),
    onEvents: () => undefined,
    workingFolder: "work",
  });
  expect(await coordinator.reads.list({ limit: 1 })).toEqual([]);
  expect(Object.keys(coordinator.reads).toSorted()).toEqual([
    "claims",
    "entry",
    "findRuns",
    "findUnproven",
    "gateway",
    "get",
    "getMany",
    "holders",
    "list",
    "movedFrom",
    "newestPosition",
    "pruned",
    "read",
    "view",
  ]);
  await coordinator.close();
});
