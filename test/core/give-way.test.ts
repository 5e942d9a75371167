import { describe, expect, it } from "vitest";
import { giveWay, runInSlices } from "../../src/platform/give-way.ts";

/** Works for so long without letting anybody else. */
function hold(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

function* workInSlices(count: number, ms: number): Generator<undefined, string> {
  for (let made = 0; made < count; made += 1) {
    hold(ms);
    yield;
  }
  return "done";
}

/** How often others had their turn meanwhile. */
async function countTurnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const look = (): void => {
    turns += 1;
    if (!isOver) setImmediate(look);
  };
  setImmediate(look);
  await work;
  isOver = true;
  return turns;
}

describe("long work in slices", () => {
  it("lets others have their turns, and has its result", async () => {
    const work = runInSlices(workInSlices(20, 5));
    expect(await countTurnsDuring(work)).toBeGreaterThanOrEqual(5);
    expect(await work).toBe("done");
  });

  it("shares what it takes of a turn with all other long work", async () => {
    const works = Promise.all(Array.from({ length: 10 }, () => runInSlices(workInSlices(4, 5))));
    expect(await countTurnsDuring(works)).toBeGreaterThanOrEqual(10);
  });

  it("costs short work no turn", async () => {
    await new Promise((resolve) => setImmediate(resolve));
    expect(await countTurnsDuring(runInSlices(workInSlices(100, 0)))).toBeLessThanOrEqual(1);
    await giveWay();
  });

  it("fails with what its work throws", async () => {
    const broken = (function* (): Generator<undefined, never> {
      yield;
      throw new Error("broken");
    })();
    await expect(runInSlices(broken)).rejects.toThrow("broken");
  });
});
