/** Owns: whether a look through all open coordinations of a ledger lets other work of the process have its turns. */
import { expect, it } from "vitest";
import { measureTurns } from "../attacks/longest-turn.ts";
import { createWorld, spawnOf, type World } from "../support/fake-clock-host.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";

const COORDINATIONS = 600;
/** Such a look works for more than 100 ms, and gives way each 8 ms. */
const TURNS_MIN = 4;

it("looks for spawns without a child in turns between which others have theirs", async () => {
  using folder = createTempFolder();
  const world = createWorld();
  const store = await openTestLedger(folder.file("ledger.sqlite"), { clock: world.clock });
  const startProcess = () => world.start((memory) => ({ ...memory, ...store }));
  try {
    await openCoordinations(startProcess());
    await world.clock.advance(5);
    const { privileges } = startProcess();
    const { count } = await measureTurns(async () => {
      expect(await privileges.hasChildlessSpawn(undefined)).toBe(true);
    });
    expect(count).toBeGreaterThanOrEqual(TURNS_MIN);
  } finally {
    await store.close();
  }
});

/** Opens coordinations whose spawn has privileges and no child. */
async function openCoordinations(coordinator: ReturnType<World["start"]>): Promise<void> {
  const tasks = Array.from({ length: COORDINATIONS }, (_, at) => `task ${at}`);
  await Promise.all(
    tasks.map(async (task) => {
      const request = spawnOf({ task, trace: task });
      const spawn = { ...request.spawn, askedPrivilege: { tools: { allow: ["read"] } } };
      expect((await coordinator.admitSpawn({ ...request, spawn })).kind).toBe("admitted");
    }),
  );
}
