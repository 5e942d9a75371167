/** Owns: what becomes of an effect whose answer cannot be written down: it has failed, and is not done again. */
import type { EffectOutcome } from "../../../workflow/node-contract/node-type.ts";
import type { Deliver, Perform, WaitingEffect } from "./advance-driven.ts";

const UNWRITABLE: EffectOutcome = {
  kind: "failed",
  error: { code: "value_not_recordable", message: "the answer is nested too deeply to be recorded" },
};

/** Ends runs whose outcome cannot be written, because asking the model or tool again would give the same. */
export function endRunsWithUnwritableOutcome(perform: Perform): Perform {
  return async (loadedRun, effect, performing) => {
    const waiting = await replaceUnwritable(performing.deliver, () => perform(loadedRun, effect, performing));
    return waiting && guardWaiting(waiting);
  };
}

function guardWaiting({ effect, wait }: WaitingEffect): WaitingEffect {
  return { effect, wait: (deliver) => replaceUnwritable(deliver, () => wait(deliver)) };
}

async function replaceUnwritable<T>(deliver: Deliver, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    await deliver([UNWRITABLE]);
    return undefined;
  }
}
