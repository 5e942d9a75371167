/** Owns: a gateway on a shared ledger while another process drives coordinations under its name. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isGatewayAway } from "../../src/agents/coordination/contracts/errors.ts";
import { createGatewayOwnerId } from "../../src/agents/coordination/runtime/ownership/gateway-owner.ts";
import type { PostgresLedger } from "../../src/infra/postgres/postgres-ledger-store.ts";
import { readProcessName } from "../../src/platform/process-name.ts";
import { readHealthBeside } from "../../src/plugins/ledger-reader.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import type { HookContext } from "../../src/plugins/openclaw/host/sdk.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { openTestPostgres } from "../support/postgres-ledger.ts";
import { createTestSchema, type TestSchema } from "../support/postgres-server.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";
import { useStateFolder } from "./stopped-handlers.ts";

let schema: TestSchema;
/** The ledger as the other process has it open. */
let store: PostgresLedger;

beforeEach(async () => {
  schema = await createTestSchema();
  store = await openTestPostgres(schema.url);
});

afterEach(async () => {
  await store.close();
  await schema[Symbol.asyncDispose]();
});

const folder = useStateFolder();

const OTHER = { id: createGatewayOwnerId("office", "other-process") };
const nameHealthFile = (): string => join(folder.path, "coordination", "health.json");
const readGatewayHealth = () => readHealthBeside(nameHealthFile());

function createGateway(leaseMs: number): { handlers: HookHandlers; host: FakeHost } {
  const url = new URL(schema.url);
  const password = decodeURIComponent(url.password);
  url.password = "";
  const openwop = { enabled: true, tokens: [{ token: "a-token-that-is-long-enough" }] };
  const phase1 = {
    strict: true,
    openwop,
    ledger: { url: url.href, password },
    gateway: { id: "office", leaseMs },
  };
  const host = createFakeHost({ stateDir: folder.path, phase1 });
  const handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  return { handlers, host };
}

let calls = 0;

function spawn(handlers: HookHandlers) {
  calls += 1;
  const context = { sessionKey: "agent:main:main", agentId: "main", runId: "run-1" };
  return handlers.beforeSpawn(
    { toolName: "sessions_spawn", toolCallId: `call-${calls}`, runId: "run-1", params: { task: "work" } },
    context as HookContext<"before_tool_call">,
  );
}

const listErrors = ({ lines }: FakeHost): string[] =>
  lines.filter(({ level }) => level === "error").map(({ text }) => text);

/** Has another process of the gateway's name be at work until the gateway has said that it was replaced. */
async function replaceGateway(host: FakeHost): Promise<void> {
  await vi.waitFor(async () => {
    await store.owners.beat(OTHER);
    expect(listErrors(host)).toEqual([expect.stringContaining("as this gateway now")]);
  }, 30_000);
}

/** Writes the health as another process does, which is there. */
function reportByAnother(): string {
  const gateway = { process: readProcessName(process.ppid), configSha256: "of the other process" };
  const text = JSON.stringify({ state: "ok", uncoordinatedSpawns: 0, gateway });
  mkdirSync(dirname(nameHealthFile()), { recursive: true });
  writeFileSync(nameHealthFile(), text);
  return text;
}

const REPLACED = { state: "degraded", failure: { code: "GATEWAY_REPLACED" } };

describe("a gateway that is replaced by another process of its name", () => {
  it("is degraded for good, and coordinates nothing more", async () => {
    const { handlers, host } = createGateway(2_000);
    await handlers.start();
    expect(await spawn(handlers)).toHaveProperty("params.coordination.stepId", "step-1");
    await replaceGateway(host);
    expect(readGatewayHealth()).toMatchObject(REPLACED);
    expect(await spawn(handlers)).toMatchObject({
      block: true,
      blockReason: expect.stringMatching(
        /another process drives coordinations as this gateway now\. Restart/u,
      ) as string,
    });
    expect(readGatewayHealth()).toMatchObject(REPLACED);
    expect(listErrors(host)).toHaveLength(1);
  });

  it("is not taken for one that comes back by itself", async () => {
    const { handlers, host } = createGateway(2_000);
    await handlers.start();
    await replaceGateway(host);
    const refusal: unknown = await findRuntime()
      ?.coordinator()
      .catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "GATEWAY_REPLACED", recovery: "restart" });
    expect(isGatewayAway(refusal)).toBe(false);
  });

  it("stays degraded when a spawn ends well that was under way", async () => {
    const { handlers, host } = createGateway(2_000);
    await handlers.start();
    const locker = new pg.Client({ connectionString: schema.url });
    await locker.connect();
    await locker.query("begin; lock table event in share mode");
    const spawning = spawn(handlers);
    await replaceGateway(host);
    await locker.query("commit");
    await locker.end();
    expect(await spawning).toHaveProperty("params.coordination.stepId", "step-1");
    expect(readGatewayHealth()).toMatchObject(REPLACED);
  });

  it.skipIf(readProcessName() === undefined)(
    "leaves the health alone that the other process reports in the same folder",
    async () => {
      const { handlers, host } = createGateway(2_000);
      await handlers.start();
      const text = reportByAnother();
      await replaceGateway(host);
      await spawn(handlers);
      expect(readFileSync(nameHealthFile(), "utf8")).toBe(text);
      await handlers.stop();
      expect(readFileSync(nameHealthFile(), "utf8")).toBe(text);
    },
  );
});

describe("a gateway that a newer release has shut out of its ledger", () => {
  it("says so once, and shows it without anybody's call", async () => {
    const { handlers, host } = createGateway(1_000);
    await handlers.start();
    expect(await spawn(handlers)).toHaveProperty("params.coordination.stepId", "step-1");
    await schema.query("update ledger_count set newest_migration = newest_migration + 1");
    await vi.waitFor(() => {
      expect(readGatewayHealth()).toMatchObject({ state: "degraded", failure: { code: "LEDGER_TOO_NEW" } });
    }, 5_000);
    expect(await spawn(handlers)).toMatchObject({ block: true });
    // OpenWOP may have been about to open the ledger then, and says so by itself.
    const degraded = listErrors(host).filter((text) => text.includes("COORDINATION IS DEGRADED"));
    expect(degraded).toEqual([expect.stringContaining("Upgrade openclaw-coordination")]);
    expect(host.lines.filter(({ text }) => text.includes("could not be looked at"))).toEqual([]);
  });
});

describe("a gateway that waits for an earlier process of its name", () => {
  it.skipIf(readProcessName() === undefined)(
    "leaves the health alone that the other process reports in the same folder, until it works itself",
    async () => {
      const text = reportByAnother();
      const { handlers, host } = createGateway(1_000);
      await store.owners.beat(OTHER);
      await Promise.all([
        handlers.start(),
        vi.waitFor(async () => {
          await store.owners.beat(OTHER);
          expect(listErrors(host)).toEqual([expect.stringContaining("gateway.id of its own")]);
        }, 30_000),
      ]);
      expect(readFileSync(nameHealthFile(), "utf8")).toBe(text);
      await store.owners.remove(OTHER.id);
      await vi.waitFor(() => {
        expect(readFileSync(nameHealthFile(), "utf8")).toContain(readProcessName());
      }, 30_000);
      expect(readGatewayHealth()).toMatchObject({ state: "ok" });
    },
  );

  it("begins by itself once that one has left, though it was refused before", async () => {
    const { handlers } = createGateway(1_000);
    await store.owners.beat(OTHER);
    await Promise.all([
      handlers.start(),
      vi.waitFor(async () => {
        await store.owners.beat(OTHER);
        expect(readGatewayHealth()).toMatchObject({ state: "degraded", failure: { code: "LEDGER_BUSY" } });
      }, 30_000),
    ]);
    await store.owners.remove(OTHER.id);
    await vi.waitFor(() => {
      expect(readGatewayHealth()).toMatchObject({ state: "ok" });
    }, 30_000);
    expect(await spawn(handlers)).toHaveProperty("params.coordination.stepId", "step-1");
  });

  it("stops at once, however long that one's lease", async () => {
    await store.owners.beat(OTHER);
    const { handlers, host } = createGateway(600_000);
    const starting = handlers.start();
    await vi.waitFor(() => {
      expect(host.lines.some(({ text }) => text.includes("waits for the lease"))).toBe(true);
    }, 30_000);
    // OpenWOP, which waits for the ledger too, does not keep it waiting either.
    void findRuntime()?.openwop?.start();
    await handlers.stop();
    await starting;
    expect(readGatewayHealth()).toBeUndefined();
    expect((await store.owners.beats()).map(({ id }) => id)).toEqual([OTHER.id]);
  });
});
