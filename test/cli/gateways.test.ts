/** Owns: what readers say of the gateways that share a ledger: which one opened a coordination, and which one drives it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunsPage } from "../../src/plugins/page/contract/runs.ts";
import { createGatewayOwnerId } from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import { createPageClient, servePage, signIn } from "../openwop/page-scene.ts";
import {
  createManualClock,
  createTempFolder,
  openTestLedger,
  TEST_EPOCH_MS,
  type TempFolder,
} from "../support/temp-ledger.ts";
import { OPEN, recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { runCli } from "./run-cli.ts";

const ENDED = { ...RESEARCH, id: "co-ended" };
const AT_HOME = { ...OPEN, id: "co-home", trace: "home" };
const MOVED = { ...OPEN, id: "co-moved", trace: "moved" };
const FREE = { ...OPEN, id: "co-free", trace: "free" };
const OLD = { ...OPEN, id: "co-old", trace: "old" };

let folder: TempFolder;
const nameLedger = (): string => folder.file("ledger.sqlite");

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(nameLedger(), [ENDED, AT_HOME, MOVED], { gateway: "office" });
  const store = await openTestLedger(nameLedger(), { clock: createManualClock() });
  const [office, shop] = [createGatewayOwnerId("office", "1"), createGatewayOwnerId("shop", "7")];
  await store.owners.take({ owner: shop, from: [""], limit: 10 });
  await store.owners.beat({ id: shop });
  await store.owners.beat({ id: createGatewayOwnerId("attic", "1") });
  await store.workflows.owners.beat({ id: "serve-1" });
  const [home] = await store.owners.list(shop, { limit: 1 });
  if (home) await store.owners.give(home.runId, { id: shop, token: home.token }, office);
  await store.close();
  await recordLedger(nameLedger(), [FREE], { gateway: "office" });
  await recordLedger(nameLedger(), [OLD]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

async function run(args: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runCli([...args, "--ledger", nameLedger()], {
    nowMs: TEST_EPOCH_MS + 300_000,
    terminal: { columns: 140 },
  });
  expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 0 });
  return stdout;
}

const readJson = async (...args: readonly string[]): Promise<unknown> =>
  JSON.parse(await run([...args, "--json"]));

const GATEWAYS: readonly (readonly [string, object | undefined, string])[] = [
  [ENDED.id, { home: "office" }, "office"],
  [AT_HOME.id, { home: "office", drives: "office" }, "office"],
  [MOVED.id, { home: "office", drives: "shop" }, "office, driven by shop"],
  [FREE.id, { home: "office" }, "office, driven by nobody"],
  [OLD.id, undefined, ""],
];

describe("a coordination of a gateway that shares its ledger", () => {
  test.each(GATEWAYS)("%s is told with its gateways as JSON", async (id, gateway) => {
    const listed = (await readJson("list")) as { coordinationId: string; gateway?: object }[];
    expect(listed.find(({ coordinationId }) => coordinationId === id)?.gateway).toEqual(gateway);
    for (const command of ["show", "timeline", "tree"])
      expect(await readJson(command, id)).toEqual(
        gateway
          ? expect.objectContaining({ gateway })
          : expect.not.objectContaining({ gateway: expect.anything() as unknown }),
      );
  });

  test.each(GATEWAYS)("%s is told with its gateways to people", async (id, _, text) => {
    const lines = (await run(["list"])).split("\n");
    const line = lines.find((each) => each.startsWith(id)) ?? "";
    expect(lines[0]).toMatch(/OWNER +GATEWAY +OBJECTIVE/u);
    expect(/agent:main:main +(?<gateway>.*?) *(?:Compare|Keep)/u.exec(line)?.groups?.["gateway"]).toBe(text);
    expect(/^ *gateway +(?<gateway>.*)$/mu.exec(await run(["show", id]))?.groups?.["gateway"] ?? "").toBe(
      text,
    );
    for (const command of ["timeline", "tree"]) {
      const drawn = await run([command, id]);
      if (text === "") expect(drawn).not.toContain("gateway");
      else expect(drawn).toContain(`gateway ${text}`);
    }
  });

  test("is listed on the page as by `list --json`", async () => {
    await using served = await servePage(nameLedger());
    const client = createPageClient(served.baseUrl, await signIn(served.baseUrl, served.link));
    const { runs } = await client.get<RunsPage>("runs");
    for (const [id, gateway] of GATEWAYS)
      expect(runs.find((each) => each.id === id)).toEqual(
        gateway
          ? expect.objectContaining({ gateway })
          : expect.not.objectContaining({ gateway: expect.anything() as unknown }),
      );
    expect(await client.get(`runs/${MOVED.id}`)).toMatchObject({
      view: { gateway: { home: "office", drives: "shop" } },
    });
  });
});

describe("status", () => {
  test("has the gateways of the ledger, with how many coordinations each drives", async () => {
    expect(await readJson("status")).toMatchObject({
      gateways: [
        { name: "attic", drives: 0 },
        { name: "office", drives: 1 },
        { name: "shop", drives: 1 },
      ],
    });
    expect(await run(["status"])).toMatch(
      /^gateways +attic drives nothing, office drives 1, shop drives 1$/mu,
    );
  });
});

describe("a ledger that one gateway has for itself", () => {
  test("has no gateway in any reader", async () => {
    using alone = createTempFolder();
    const path = alone.file("ledger.sqlite");
    await recordLedger(path, [AT_HOME]);
    for (const args of [["list"], ["show"], ["timeline"], ["tree"]])
      for (const form of [[], ["--json"]])
        expect((await runCli([...args, ...form, "--ledger", path])).stdout).not.toMatch(/gateway/iu);
    const { stdout } = await runCli(["status", "--json", "--ledger", path]);
    expect(JSON.parse(stdout)).not.toHaveProperty("gateways");
  });
});
