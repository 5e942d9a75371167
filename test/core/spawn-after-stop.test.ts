import { describe, expect, it } from "vitest";
import { waitUntilSettled } from "../support/fake-clock.ts";
import { createWorld, spawnOf, type World } from "../support/fake-clock-host.ts";

const words = { task: "a" };

/** The host answered a spawn with an error, and the coordinator waits for its records. */
async function failSpawn({ start, clock }: Pick<World, "start" | "clock">) {
  const coordinator = start();
  const pendingBefore = clock.pending;
  const admission = await coordinator.admitSpawn(spawnOf(words));
  if (admission.kind === "refused") throw new Error(admission.reason);
  const { coordinationId, stepId, sourceSession } = admission.envelope;
  const claim = { coordinationId, stepId, sourceSession, toolCallId: words.task };
  const failing = coordinator.failSpawn(claim, "the answer was lost");
  await waitUntilSettled();
  return { coordinator, failing, pendingBefore };
}

describe("stop() while a spawn waits that the host answered with an error", () => {
  it("ends the wait, leaves no timer behind and writes nothing more", async () => {
    const w = createWorld();
    const { coordinator, failing } = await failSpawn(w);
    await coordinator.stop();
    expect(w.clock.pending).toBe(0);
    const before = w.ledger.events();
    await Promise.all([failing, w.clock.advance(5_000)]);
    expect(w.ledger.events()).toEqual(before);
  });

  it("leaves it to the next process, which asks the host", async () => {
    const w = createWorld();
    const { coordinator } = await failSpawn(w);
    await coordinator.stop();
    w.host.spawn(spawnOf(words));
    await w.start().start();
    await w.clock.advance(10_000);
    const types = w.ledger.events().flatMap((events) => events.map(({ type }) => type));
    expect(types).toContain("step.acknowledged");
    expect(types).not.toContain("step.failed");
  });
});
