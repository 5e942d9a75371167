/** Owns: whose the coordinations of a file are when it is copied to a server, where several gateways can use it. */
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Command } from "../../src/agents/coordination/contracts/commands.ts";
import { listChildrenOfSession } from "../../src/agents/coordination/runtime/children-of-session.ts";
import { readCoordinationView } from "../../src/agents/coordination/runtime/log/coordination-view.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import {
  copyLedgerBetween,
  assertNoOpenGateways,
  type LedgerCopy,
} from "../../src/plugins/copy-ledger-between.ts";
import { readProcessName } from "../../src/platform/process-name.ts";
import { openAnyLedger } from "../support/any-ledger.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createAuthor, openingOf, openRun, OWNER, spawnOf } from "../support/ledger-fixtures.ts";
import { createTestSchema } from "../support/postgres-server.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import { createOlderServerLedger } from "./older-ledger.ts";
import { createRunStarted, createWorkflowAuthor } from "./workflow-store-tested.ts";

async function change<T>(place: string, work: (store: OpenedLedger) => Promise<T>): Promise<T> {
  const store = await openAnyLedger(place);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

async function addSpawn(place: string): Promise<void> {
  await change(place, async (store) => {
    const { author, request } = openRun("moved");
    await store.append(request);
    await store.append(author.append(spawnOf("child")));
  });
}

function copy(from: string, to: string, gateway?: string): Promise<LedgerCopy> {
  return copyLedgerBetween({ from, to, gateway }, () => undefined);
}

const readMovedFrom = (place: string): Promise<string | undefined> =>
  change(place, (store) => store.readMovedFrom());

describe("a copy to a server", () => {
  it("is refused until the gateway is named that its coordinations are of, and makes nothing before", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    await expect(copy(from, schema.url)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("--gateway") as string,
    });
    await expect(openAnyLedger(schema.url, { mode: "read" })).rejects.toMatchObject({
      code: "LEDGER_NOT_FOUND",
    });
    await copy(from, schema.url, "shop");
    expect(await readMovedFrom(schema.url)).toBe("shop");
  });

  it("has the children of a session for the gateway that it was moved from, and for no other", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    await copy(from, schema.url, "shop");
    await change(schema.url, async (store) => {
      const movedFrom = await store.readMovedFrom();
      const listFor = (gateway: string): ReturnType<typeof listChildrenOfSession> =>
        listChildrenOfSession(
          { ...store, gateway, movedFrom, view: (runId) => readCoordinationView(store, runId) },
          OWNER,
        );
      expect(await listFor("office")).toEqual([]);
      expect(await listFor("shop")).toHaveLength(2);
      expect(await store.inspect()).toEqual([]);
    });
  });

  it("of runs of workflows alone needs no gateway", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await change(from, ({ workflows }) =>
      workflows.append(createWorkflowAuthor("run").append([createRunStarted()])),
    );
    await copy(from, schema.url);
    expect(await readMovedFrom(schema.url)).toBeUndefined();
  });

  it("from another server takes over which gateway it was moved from, and refuses another one", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    await using other = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    await copy(from, schema.url, "shop");
    await expect(copy(schema.url, other.url, "office")).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await copy(schema.url, other.url);
    expect(await readMovedFrom(other.url)).toBe("shop");
  });
});

it("a copy from a file to a file takes no gateway", async () => {
  using folder = createTempFolder();
  const [from, to] = [folder.file("from.sqlite"), folder.file("to.sqlite")];
  await addSpawn(from);
  await expect(copy(from, to, "shop")).rejects.toMatchObject({ code: "INPUT_INVALID" });
  expect(existsSync(to)).toBe(false);
});

describe("a copy from a server to a file, which one gateway uses", () => {
  const addOpenOf = (place: string, gateway: string): Promise<void> =>
    change(place, async (store) => {
      const opening = { ...openingOf(`trace of ${gateway}`), gateway } as Command;
      await store.append(createAuthor(`of-${gateway}`).append(opening, spawnOf("child")));
    });

  it("is refused where several gateways have open coordinations, and names them and the way out", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const to = folder.file("to.sqlite");
    await addOpenOf(schema.url, "shop");
    await addOpenOf(schema.url, "office");
    await expect(copy(schema.url, to)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringMatching(
        /of the gateways office and shop.*cancel .*copy then with --gateway and the one that is left$/u,
      ) as string,
    });
    expect(existsSync(to)).toBe(false);
  });

  it("is refused until the gateway is named that is to use the file, and for any other one", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const to = folder.file("to.sqlite");
    await addOpenOf(schema.url, "shop");
    await expect(copy(schema.url, to)).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringMatching(/open coordinations of the gateway shop.*--gateway/u) as string,
    });
    await expect(copy(schema.url, to, "office")).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringMatching(
        /of the gateway shop.*that only office uses.*, stop it, and copy then$/u,
      ) as string,
    });
    expect(existsSync(to)).toBe(false);
    await copy(schema.url, to, "shop");
    expect(existsSync(to)).toBe(true);
  });

  it("needs no gateway where nothing is open", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const to = folder.file("to.sqlite");
    await change(schema.url, async (store) => {
      const opening = { ...openingOf("trace"), gateway: "shop" } as Command;
      const author = createAuthor("ended");
      await store.append(author.append(opening, spawnOf("child")));
      await store.append(appendEnd(author));
    });
    await copy(schema.url, to);
    expect(existsSync(to)).toBe(true);
  });

  it("counts what the server got with the ledger of a gateway as open in that gateway", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    await copy(from, schema.url, "shop");
    await addOpenOf(schema.url, "shop");
    const back = folder.file("back.sqlite");
    await expect(copy(schema.url, back, "office")).rejects.toMatchObject({ code: "INPUT_INVALID" });
    await copy(schema.url, back, "shop");
    expect(existsSync(back)).toBe(true);
    await addOpenOf(schema.url, "office");
    await expect(copy(schema.url, folder.file("again.sqlite"))).rejects.toMatchObject({
      code: "INPUT_INVALID",
    });
  });
});

describe("a copy to a server that a gateway had opened before", () => {
  const OPEN = { code: "LEDGER_BUSY", message: expect.stringContaining("the gateway office has") as string };
  const thisProcess = readProcessName() ?? "";
  const tellOf = (place: string, process: string): Promise<void> =>
    change(place, ({ owners }) => owners.beat({ id: "gateway:office/1", process }));

  it("is refused while the gateway is there, and changes nothing", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    await tellOf(schema.url, thisProcess);
    await expect(copy(from, schema.url, "shop")).rejects.toMatchObject(OPEN);
    expect(await readMovedFrom(schema.url)).toBeUndefined();
    await change(schema.url, ({ owners }) => owners.remove("gateway:office/1"));
    await copy(from, schema.url, "shop");
    expect(await readMovedFrom(schema.url)).toBe("shop");
  });

  it("is refused before it gives an empty ledger of an older release the newest schema", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    await createOlderServerLedger(schema, 5);
    const values = ["gateway:office/1", thisProcess];
    await schema.query("insert into run_owner (id, process, beats) values ($1, $2, 1)", values);
    await expect(copy(from, schema.url, "shop")).rejects.toMatchObject(OPEN);
    expect(await schema.query("select number from migration")).toHaveLength(5);
    await schema.query("delete from run_owner");
    await copy(from, schema.url, "shop");
    expect(await readMovedFrom(schema.url)).toBe("shop");
  });

  it("is refused for the target that is not empty, which no stop of the gateway would change", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    await addSpawn(schema.url);
    await tellOf(schema.url, thisProcess);
    await expect(copy(from, schema.url, "shop")).rejects.toMatchObject({
      code: "INPUT_INVALID",
      message: expect.stringContaining("not empty") as string,
    });
  });

  it("goes on at once where the gateway has ended without a word", async () => {
    using folder = createTempFolder();
    await using schema = await createTestSchema();
    const from = folder.file("from.sqlite");
    await addSpawn(from);
    // A process of the same number that began at another time.
    await tellOf(schema.url, `${thisProcess}0`);
    await copy(from, schema.url, "shop");
    expect(await readMovedFrom(schema.url)).toBe("shop");
  });

  it.each([
    ["is refused where a gateway of another machine tells of itself", [1, 1, 2], OPEN],
    ["goes on where a gateway of another machine is silent for long", [1], undefined],
  ])("%s", async (_, counts, refusal) => {
    const clock = createFakeClock();
    let looks = 0;
    const listGateways = () => {
      const beats = counts[Math.min(looks, counts.length - 1)] ?? 0;
      looks += 1;
      return Promise.resolve([{ id: "gateway:office/1", gateway: "office", process: null, beats }]);
    };
    const refused = assertNoOpenGateways({ place: "the server", listGateways }, clock);
    const ended = refusal ? expect(refused).rejects.toMatchObject(refusal) : refused;
    await clock.advance(130_000);
    await ended;
    expect(looks > 60).toBe(refusal === undefined);
  });
});
