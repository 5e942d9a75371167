/** Owns: what becomes of an effect whose answer cannot be written down: it has failed, and is not done again. */
import type { EffectOutcome } from "../../../workflow/node-contract/node-type.ts";
import type { EffectPerformer } from "./run-driver-state.ts";
import type { WaitingEffect } from "./run-driver-state.ts";
import type { OutcomeSink } from "./run-driver-state.ts";

const UNWRITABLE: EffectOutcome = {
  kind: "failed",
  error: { code: "value_not_recordable", message: "the answer is nested too deeply to be recorded" },
};

/**
 * Returns `perform` wrapped so that an effect whose outcome is nested too deeply to be written delivers a failure.
 * Asking the model or tool again would give the same.
 */
export function failUnwritableOutcomes(perform: EffectPerformer): EffectPerformer {
  return async (loadedRun, effect, performing) => {
    const waiting = await replaceUnwritableOutcome(performing.deliver, () =>
      perform(loadedRun, effect, performing),
    );
    return waiting && failUnwritableWait(waiting);
  };
}

function failUnwritableWait({ effect, wait }: WaitingEffect): WaitingEffect {
  return { effect, wait: (deliver) => replaceUnwritableOutcome(deliver, () => wait(deliver)) };
}

/**
 * Does the work and returns what it returns; where its outcome cannot be written, delivers a failure in its place and
 * returns `undefined`.
 */
async function replaceUnwritableOutcome<T>(
  deliver: OutcomeSink,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    await deliver([UNWRITABLE]);
    return undefined;
  }
}
