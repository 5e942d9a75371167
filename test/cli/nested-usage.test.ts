/** Owns: that the plans of children are in the sum of what was used, by whatever command it is shown. */
import { copyFileSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import type {
  CoordinationId,
  EpochMs,
  SessionKey,
  StepId,
} from "../../src/agents/coordination/contracts/ids.ts";
import { readRunDetail } from "../../src/plugins/page/server/run-detail.ts";
import { admit, dispatch, finish, openPlan, planStep, startStep } from "../core/planned-scene.ts";
import { usageOf } from "../core/usage-scene.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";
import { createAuthor, openingOf, spawnOf } from "../support/ledger-fixtures.ts";
import { createTempFolder, openTestLedger, TEST_EPOCH_MS, type TempFolder } from "../support/temp-ledger.ts";
import { runCli } from "./run-cli.ts";

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  const store = await openTestLedger(folder.file("ledger.sqlite"));
  const child = "agent:main:subagent:child" as SessionKey;
  const outer = createAuthor("outer");
  await store.append(
    outer.append(
      openingOf("trace-outer"),
      spawnOf("call-1"),
      {
        type: "acknowledgeStep",
        stepId: "step-1" as StepId,
        attempt: 1,
        childSessionKey: child,
        childRunId: "run-of-child",
        via: "hook",
      },
      { type: "recordUsage", ...usageOf("step-1" as StepId, 10) },
    ),
  );
  await store.append(
    createAuthor("inner").append(
      {
        ...openPlan({ steps: 1 }),
        ownerSession: child,
        parent: { coordinationId: outer.runId, stepId: "step-1", attempt: 1 },
      } as Command,
      admit(planStep("a")),
      dispatch("a"),
      startStep("a"),
      finish("a", 1, { usage: { tokens: 2_000, costMicroUsd: 500_000 } }),
    ),
  );
  await store.close();
});

afterAll(() => {
  folder[Symbol.dispose]();
});

const print = async (...args: readonly string[]): Promise<string> =>
  (await runCli([...args, "--ledger", folder.file("ledger.sqlite")])).stdout;

describe("the sum of what was used", () => {
  test.each(["tree", "show", "timeline"])("has the plans of its children: %s", async (command) => {
    expect(await print(command, "co-outer")).toContain("3,500 tokens, $0.5100");
  });

  test("is the same as numbers", async () => {
    const usage = { tokens: 3_500, costMicroUsd: 510_000 };
    expect(JSON.parse(await print("tree", "co-outer", "--json"))).toMatchObject({ usage });
    expect(JSON.parse(await print("show", "co-outer", "--json"))).toMatchObject({ usage });
    expect(JSON.parse(await print("timeline", "co-outer", "--json"))).toMatchObject({ usage });
  });

  test("is the same in the file that a timeline is written to", async () => {
    const file = folder.file("timeline.html");
    await print("timeline", "co-outer", "--html", file);
    expect(readFileSync(file, "utf8")).toContain("3,500 tokens");
  });

  test("is the same at the head of the page's coordination", async () => {
    const store = await openTestLedger(folder.file("ledger.sqlite"));
    const detail = await readRunDetail(store, "co-outer" as CoordinationId, TEST_EPOCH_MS as EpochMs);
    const usage = { tokens: 3_500, costMicroUsd: 510_000 };
    expect(detail).toMatchObject({ view: { usage }, timeline: { usage }, tree: { usage } });
    await store.close();
  });

  test("is that of its own sessions where the log of such a plan is damaged", async () => {
    const damaged = folder.file("damaged.sqlite");
    copyFileSync(folder.file("ledger.sqlite"), damaged);
    const inner = "run_key = (select run_key from run where run_id = 'co-inner')";
    forge(damaged, `delete from event where sequence = 2 and ${inner}`);
    const { stdout, exitCode } = await runCli(["show", "co-outer", "--ledger", damaged]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("1,500 tokens, $0.0100");
  });
});
