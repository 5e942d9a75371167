/**
 * Traces of P21 to P30 when the gateway with the flag on is killed in the middle of them, between `begin` and `end`. The
 * plain host's behaviour without them is told in the children's stories.
 */
import { expect } from "vitest";
import type { Coordination } from "../../src/agents/coordination/ledger/state.ts";
import type { Json } from "../support/gateway.ts";
import { writeLongText } from "../support/long-text.ts";
import { renderScript } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { hasEnded, type Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  expectSound,
  factsOf,
  gate,
  open,
  openGate,
  ownerOf,
  read,
  readText,
  resultsOf,
  stepIdOf,
  waitForEnd,
  write,
} from "../e2e/writes-stage.ts";
import {
  countWorkers,
  listRequestsOf,
  planOf,
  runPlan,
  stepOf,
  TRIED_AGAIN,
  WAIT_MS_MAX,
} from "./story-parts.ts";
import {
  chatOwnerOf,
  readChat,
  SECRET,
  waitUntilSent,
  waitUntilSuppressed,
  writeInChat,
} from "./chat-stories.ts";
import { NEVER_SAID } from "./failing-model.ts";
import { createLiar, differencesOf, readingsOf, ROUTED, waitForHeld } from "./truth-stories.ts";
import { commitFolder, IN_WORKTREE, listLeftOvers } from "./worktree-stories.ts";

export interface KilledStory {
  readonly begin: (stage: Stage) => Promise<void>;
  readonly end: (stage: Stage) => Promise<void>;
}

/**
 * P24, P25, P26 and P30: an attempt in a worktree that may change one folder and has told how far it is. The kill finds it at its gate.
 * Either the host takes its run up again, or the step is tried again.
 */
export function createKilledAttempt(): KilledStory {
  const turns = [
    call({ name: "coordination_progress", args: { percent: 90, line: "nearly there" } }),
    call(read("killed/in.md")),
    call(write("killed/in.md", "half done\n")),
    gate({ opens: ["killed began"], awaits: ["killed may end"] }),
    call(write("killed/in.md", "done\n")),
    call(write("killed-out.md", "overwritten\n")),
  ];
  const step = stepOf("killed-step", turns, { ...IN_WORKTREE, write: ["killed/**"] });
  let recordedTokens = 0;
  let callsBefore = 0;
  return {
    begin: async (stage) => {
      commitFolder(stage, { "killed/in.md": "base\n", "killed-out.md": "out\n" });
      await runPlan(stage, planOf("killed", [step], TRIED_AGAIN));
      await openGate(stage, "killed began");
      expect(await readProgress(stage)).toMatchObject({ percent: 90, line: "nearly there" });
      expect(readText(stage, "killed/in.md")).toBe("base\n");
      callsBefore = listTokens(stage).length;
      recordedTokens = countTokens(await stage.until(ownerOf("killed"), (state) => countTokens(state) > 0));
    },
    end: async (stage) => {
      await open(stage, "killed may end");
      const state = await waitForEnd(stage, "killed");
      expect(state).toMatchObject({ status: "success" });
      const events = await expectSound(stage, state);

      expect(readText(stage, "killed/in.md")).toBe("done\n");
      expect(factsOf(events, "worktree.merged")).toHaveLength(1);
      expect(listLeftOvers(stage)).toEqual([]);

      expect(readText(stage, "killed-out.md")).toBe("out\n");
      expect(factsOf(events, "privilege.refused")).toHaveLength(1);

      const spent = listTokens(stage);
      expect(countTokens(state)).toBeGreaterThanOrEqual(recordedTokens + sum(spent.slice(callsBefore)));
      expect(countTokens(state)).toBeLessThanOrEqual(sum(spent));
    },
  };
}

async function readProgress(stage: Stage): Promise<unknown> {
  const { coordinationId } = await stage.until(ownerOf("killed"), () => true);
  const { coordination } = await stage.gateway.call("coordination.status", { coordinationId });
  return (coordination as { readonly steps: readonly Json[] }).steps[0]?.["progress"];
}

/** Usage of each call of the step's model, in their order. */
const listTokens = (stage: Stage): number[] =>
  listRequestsOf(stage, "killed-step").map(({ used }) =>
    used ? used.promptTokens + used.completionTokens : 0,
  );

const countTokens = ({ bill }: Exclude<Coordination, { kind: "unopened" }>): number => bill.sum.tokens;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

/** P23: a long result that was there before the kill is whole afterwards, for the session that owns it. */
const FLOOD = {
  chars: 100_000,
  head: "BEGIN-killed-flood ",
  middle: " MIDDLE-killed-flood ",
  tail: " END-killed-flood",
  lineChars: 80,
};
export const KILLED_WITH_LONG_RESULT: KilledStory = {
  begin: async (stage) => {
    const child = { label: "killed-flooding", task: renderScript({ sayLong: FLOOD }) };
    await begin(stage, "killed-flood", { spawn: [child] });
    await waitForEnd(stage, "killed-flood");
  },
  end: async (stage) => {
    const state = await waitForEnd(stage, "killed-flood");
    const { coordinationId } = state;
    const args = { coordinationId, stepId: stepIdOf(state, "killed-flooding"), find: FLOOD.middle.trim() };
    await begin(stage, "killed-flood", call({ name: "coordination_result", args }));
    const at = writeLongText(FLOOD).indexOf(FLOOD.middle) + 1;
    expect(JSON.parse(resultsOf(stage, "killed-flood")[0] ?? "")).toMatchObject({ matches: [{ at }] });
  },
};

/** P28: the session was compacted before the kill; its next prompt comes afterwards. */
export const KILLED_AFTER_COMPACTION: KilledStory = {
  begin: async (stage) => {
    await begin(stage, "killed-compacted", { spawn: [childOf("killed-known")] });
    await waitForEnd(stage, "killed-compacted");
    const requestCompaction = (): Promise<Json> =>
      stage.gateway.call("sessions.compact", { key: ownerOf("killed-compacted") }, WAIT_MS_MAX);
    await waitFor(async () => (await requestCompaction())["compacted"] === true, {
      what: "the compaction",
      timeoutMs: WAIT_MS_MAX,
    });
  },
  end: async (stage) => {
    await begin(stage, "killed-compacted", { spawn: [childOf("killed-known")] });
    expect(resultsOf(stage, "killed-compacted")[0]).toContain("Coordination refused this spawn");
    expect(countWorkers(stage, "killed-known")).toBe(1);
  },
};

/** P21: the result of a child on another model than asked was held before the kill, and is let through afterwards. */
export function createKilledLiar(): KilledStory {
  const label = "killed-liar";
  let questionId = "";
  return {
    begin: async (stage) => {
      await begin(stage, label, { spawn: [createLiar("killed-lie")] });
      ({ questionId } = await waitForHeld(stage, label, "killed-lie"));
    },
    end: async (stage) => {
      expect(readingsOf(stage, "killed-lie")).toEqual([]);
      await stage.gateway.call("coordination.answer", { questionId, answer: "approve" });
      const state = await waitForEnd(stage, label);
      expect(differencesOf(state, "killed-lie")).toEqual([ROUTED]);
      await waitFor(() => readingsOf(stage, "killed-lie").length > 0, {
        what: "the parent to be told what was approved",
        timeoutMs: WAIT_MS_MAX,
      });
      await expectSound(stage, state);
    },
  };
}

/**
 * P22: the kill finds two parents in the turns that tell them what their children said. Afterwards one has nothing to say of
 * that, and the other says the same.
 */
export const KILLED_IN_CHAT: KilledStory = {
  begin: async (stage) => {
    const words = `${SECRET} of killed-teller`;
    await writeInChat(stage, "killed-silent", { say: `${SECRET} of killed-silent` }, "");
    await writeInChat(stage, "killed-teller", { say: words }, words);
    const countTold = (): number => stage.model.requests.filter(({ turn }) => turn.say === NEVER_SAID).length;
    await waitFor(() => countTold() === 2, { what: "the tellings", timeoutMs: WAIT_MS_MAX });
  },
  end: async (stage) => {
    await waitUntilSuppressed(stage, "killed-silent");
    expect((await readChat(stage, "killed-silent")).join("\n")).not.toContain(SECRET);
    await waitUntilSent(stage, "killed-teller", SECRET);
    await stage.until(chatOwnerOf("killed-silent"), hasEnded, WAIT_MS_MAX);
  },
};
