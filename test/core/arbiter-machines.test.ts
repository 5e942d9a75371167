/** Owns: claims of gateways on several machines with one ledger: of files on one machine, of named resources on all. */
import { linkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Coordinator } from "../../src/agents/coordination/runtime/coordinator.ts";
import type { WriteAnswer } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { verifyLedger } from "../../src/agents/coordination/runtime/verify-ledger.ts";
import { createRealFiles } from "../../src/infra/files/real-files.ts";
import { OWNER } from "../support/fake-clock-host.ts";
import { createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { createNamedCall, createOutputCall, requireRefused, write, type ToolCall } from "./arbiter-calls.ts";
import {
  createHost,
  createRealSceneFiles,
  spawnChild,
  startCoordinator,
  type Process,
  type SceneFiles,
} from "./arbiter-scene.ts";

interface Machine {
  readonly coordinator: Coordinator;
  /** The session of a coordination of its own. */
  readonly session: SessionKey;
  readonly does: (call: ToolCall) => Promise<WriteAnswer>;
}

interface Fleet {
  readonly first: Machine;
  readonly second: Machine;
  readonly files: SceneFiles;
  readonly listClaimed: () => Promise<readonly string[]>;
}

let close: (() => Promise<void>) | undefined;

afterEach(async () => {
  const closing = close;
  close = undefined;
  await closing?.();
});

/** Two gateways, on the machines that are named; `undefined` where folders are the same on all machines. */
async function openFleet(
  machines: readonly [string | undefined, string | undefined],
  conflicts: NonNullable<Process["conflicts"]> = {},
): Promise<Fleet> {
  const folder = createTempFolder();
  const files = createRealSceneFiles();
  const host = createHost();
  const store = await openTestLedger(folder.file("ledger.sqlite"), host);
  const start = async (machine: string | undefined, name: string): Promise<Machine> => {
    const coordinator = startCoordinator({
      store,
      host,
      name,
      conflicts,
      files: { ...files, files: createRealFiles(undefined, machine) },
      settings: { gateway: name },
    });
    const words = { task: name, source: `${OWNER}-${name}` as SessionKey };
    return {
      coordinator,
      session: await spawnChild(coordinator, host.observer, words),
      does: async (call) => {
        const answer = await coordinator.arbiter.request(call);
        if (answer.kind === "granted") call.tools(answer.params);
        await coordinator.arbiter.callEnded(call.callKey);
        return answer;
      },
    };
  };
  const [first, second] = [await start(machines[0], "p"), await start(machines[1], "q")];
  close = async () => {
    await first.coordinator.stop();
    await second.coordinator.stop();
    const { problems } = await verifyLedger(store);
    await store.close();
    files[Symbol.dispose]();
    folder[Symbol.dispose]();
    expect(problems).toEqual([]);
  };
  const listClaimed = async () =>
    (await store.claims({ after: 0, limit: 100 })).map(({ resource }) => resource);
  return { first, second, files, listClaimed };
}

const writeFrom = ({ files }: Fleet, { session }: Machine, name = "notes.md"): ToolCall =>
  write(files, session, { [name]: `of ${session}` });

const useQueue = ({ files }: Fleet, { session }: Machine): ToolCall =>
  createNamedCall(files, session, "queue:mail");

describe("of gateways on two machines", () => {
  it("each writes the file of its own, and neither is in the other's way", async () => {
    const fleet = await openFleet(["box-1", "box-2"]);
    const { first, second, files } = fleet;
    expect((await first.does(writeFrom(fleet, first))).kind).toBe("granted");
    expect((await second.does(writeFrom(fleet, second))).kind).toBe("granted");
    expect((await second.does(createOutputCall(files, second.session, "notes.md/.."))).kind).toBe("granted");
    const path = join(files.folder, "notes.md");
    expect((await fleet.listClaimed()).slice(0, 2)).toEqual([`file:@box-1:${path}`, `file:@box-2:${path}`]);
  });

  it("one that has a named resource keeps the other one out", async () => {
    const fleet = await openFleet(["box-1", "box-2"]);
    const { first, second, listClaimed } = fleet;
    expect((await first.does(useQueue(fleet, first))).kind).toBe("granted");
    const { sentence } = requireRefused(await second.does(useQueue(fleet, second)));
    expect(sentence).toContain("queue:mail is held by step-1 of coordination p-1");
    expect(await listClaimed()).toEqual(["queue:mail"]);
  });

  it("an exception of the operator for a path holds on each", async () => {
    const fleet = await openFleet(["box-1", "box-1"], {
      overrides: [{ resource: "*.md", strategy: "manual_review" }],
    });
    await fleet.first.does(writeFrom(fleet, fleet.first));
    const { sentence } = requireRefused(await fleet.second.does(writeFrom(fleet, fleet.second)));
    expect(sentence).toContain("a person must decide");
  });
});

describe.each([
  ["on one machine", ["box-1", "box-1"] as const],
  ["with the same folders on every machine", [undefined, undefined] as const],
])("of gateways %s", (_, machines) => {
  it("one that has a file keeps the other one out, and its folder, and its other name", async () => {
    const fleet = await openFleet(machines);
    const { first, second, files } = fleet;
    files.put("notes.md", "v0");
    linkSync(join(files.folder, "notes.md"), join(files.folder, "other.md"));
    await first.does(writeFrom(fleet, first));
    const { sentence } = requireRefused(await second.does(writeFrom(fleet, second)));
    const path = join(files.folder, "notes.md");
    expect(sentence).toContain(`refused this call: ${path} is held by step-1 of coordination p-1`);
    requireRefused(await second.does(createOutputCall(files, second.session, "notes.md/..")));
    requireRefused(await second.does(writeFrom(fleet, second, "other.md")));
  });

  it("one that has a named resource keeps the other one out", async () => {
    const fleet = await openFleet(machines);
    const { first, second } = fleet;
    await first.does(useQueue(fleet, first));
    requireRefused(await second.does(useQueue(fleet, second)));
  });
});

describe("the files of another machine", () => {
  it("are not looked at", async () => {
    using files = createRealSceneFiles();
    files.put("notes.md", "v0");
    const machineFiles = createRealFiles(undefined, "box-1");
    const resource = await machineFiles.locate("notes.md", files.folder);
    expect(await machineFiles.look(resource ?? "")).toMatchObject({ kind: "text", text: "v0" });
    for (const machine of ["box-2", undefined]) {
      const others = createRealFiles(undefined, machine);
      expect(await others.look(resource ?? "")).toEqual({ kind: "unreadable" });
      expect(await others.stamp(resource ?? "")).toBeUndefined();
      expect(await others.sharedName(resource ?? "")).toBeUndefined();
    }
  });
});
