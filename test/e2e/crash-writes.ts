/** Owns: files that agents hold, are refused and ask people about while their gateway is killed. */
import { expect } from "vitest";
import { OWNER_STEP_ID } from "../../src/agents/coordination/contracts/ids.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Approver } from "./approver.ts";
import { sendChat } from "./gates-stage.ts";
import { hasEnded, stepNamed, type Stage } from "./stage.ts";
import {
  call,
  childOf,
  expectSound,
  factsOf,
  gate,
  listConflicts,
  ownerOf,
  readText,
  run,
  taskOf,
  write,
} from "./writes-stage.ts";

const LABEL = "people-killed";
const HELD = "held\n";

/** Leaves a file that is held, a write of it that was refused, and a question about another one, which the person hears. */
export async function beginContest(stage: Stage, { requests }: Approver): Promise<void> {
  const spawn = [
    childOf(
      "killed-holder",
      call(write("killed.txt", HELD)),
      call(write("manual/killed.txt", HELD)),
      gate({ opens: ["killed held"], awaits: ["never"] }),
    ),
    childOf(
      "killed-loser",
      gate({ awaits: ["killed held"] }),
      call(write("killed.txt", "by the loser\n")),
      gate({ opens: ["killed lost"], awaits: ["never"] }),
    ),
  ];
  const turns = [
    { spawn },
    gate({ awaits: ["killed lost"] }),
    call(write("manual/killed.txt", "wanted by the owner\n")),
  ];
  await sendChat(stage, LABEL, taskOf(LABEL, turns));
  await waitFor(() => requests.length > 0, { what: "the question", timeoutMs: 60_000 });
}

/** Expects that nothing is held any more, and that every conflict has one resolution. */
export async function expectFilesFree(stage: Stage): Promise<void> {
  const state = await stage.until(ownerOf(LABEL), hasEnded, 120_000);
  const events = await expectSound(stage, state);
  for (const name of ["killed-holder", "killed-loser"])
    expect(stepNamed(state, name).phase.status).toBe("failed");
  expect(listConflicts(events)).toMatchObject([
    { contest: { strategy: "owner_wins" }, resolutions: [{ because: "lease-holder" }] },
    { contest: { strategy: "manual_review" }, resolutions: [{ losers: [OWNER_STEP_ID] }] },
  ]);
  expect(factsOf(events, "claim.released")).toMatchObject([
    { because: "step_ended" },
    { because: "step_ended" },
  ]);
  expect(readText(stage, "manual/killed.txt")).toBe(HELD);
}

/** Has another agent write the file that was held. */
export async function expectNextWriter(stage: Stage): Promise<void> {
  const spawn = [childOf("next-writer", call(write("killed.txt", "by the next\n")))];
  const events = await expectSound(stage, await run(stage, "next", { spawn }));
  expect(listConflicts(events)).toEqual([]);
  expect(readText(stage, "killed.txt")).toBe("by the next\n");
}
