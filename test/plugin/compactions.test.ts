/** Owns: which sessions were compacted, over a crash, and that their next run alone is told of their children. */
import { describe, expect, it } from "vitest";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { Logger } from "../../src/agents/coordination/ports/logger.ts";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { createCompactions } from "../../src/plugins/openclaw/host/compactions.ts";
import { createSpawnObserver } from "../../src/plugins/openclaw/runners/host-runner.ts";
import type { SharedRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import {
  explainRepetition,
  noteCompaction,
  describeCompactedChildren,
} from "../../src/plugins/openclaw/spawns/children-after-compaction.ts";
import { readSpawnCall } from "../../src/plugins/openclaw/spawns/spawn-request.ts";
import { contentOf } from "../support/ledger-fixtures.ts";
import { stepView, viewOf } from "./stub-plans.ts";

const SESSION = "agent:main:main" as SessionKey;
const TASK = "Find the mill.";

type Entry = { pluginExtensions?: Record<string, Record<string, unknown>> };
type HostSessions = Parameters<typeof createCompactions>[0];

/** The host's entries of sessions, which outlive a process. */
function createHostSessions(entry: Entry = {}) {
  const host = { entry, reads: 0, isBroken: false };
  const sessions = {
    getSessionEntry: () => {
      host.reads += 1;
      return host.entry;
    },
    patchSessionEntry: ({ update }: { update: (entry: Entry) => Entry }) => {
      if (host.isBroken) return Promise.reject(new Error("locked"));
      host.entry = { ...host.entry, ...update(host.entry) };
      return Promise.resolve();
    },
  } as unknown as HostSessions;
  return { host, sessions };
}

function createLogger() {
  const warnings: string[] = [];
  const logger = {
    debug: () => undefined,
    warn: (_: object, message: string) => warnings.push(message),
  } as unknown as Logger;
  return { logger, warnings };
}

/** A process of the plugin over a ledger in which the session has one child. */
function startProcess(sessions: HostSessions, compaction: object = {}): SharedRuntime {
  const step = stepView("step-1", { sourceSession: SESSION, input: contentOf(TASK).ref, name: "mill" });
  const reads = {
    findRuns: () => Promise.resolve({ items: [{ runId: "co-1", summary: {} }] }),
    getMany: () => Promise.resolve(new Map()),
    view: () => Promise.resolve(viewOf([{ ...step, admittedAtMs: 1 as EpochMs }])),
  };
  return {
    config: parsePluginConfig({ coordination: { phase1: { compaction } } }),
    compactions: createCompactions(sessions, createLogger().logger),
    coordinator: () => Promise.resolve({ reads }),
  } as unknown as SharedRuntime;
}

describe("a compaction", () => {
  it("is known to the next process, and leaves what else is in the session's entry", async () => {
    const envelope = { coordinationId: "co-1" };
    const { host, sessions } = createHostSessions({
      pluginExtensions: { other: { a: 1 }, coordination: { envelope } },
    });
    await createCompactions(sessions, createLogger().logger).record(SESSION, { atMs: 7 as EpochMs });
    expect(host.entry.pluginExtensions).toEqual({
      other: { a: 1 },
      coordination: { envelope, compaction: { atMs: 7 } },
    });
    expect(createCompactions(sessions, createLogger().logger).find(SESSION)).toEqual({ atMs: 7 });
  });

  it("stays in the session's entry when the session's envelope comes into it", async () => {
    const { host, sessions } = createHostSessions({
      pluginExtensions: { other: { a: 1 }, coordination: { compaction: { atMs: 7 } } },
    });
    const { logger, warnings } = createLogger();
    const envelope = { coordinationId: "co-1", targetSession: SESSION };
    const runner = createSpawnObserver({ agent: { session: sessions } } as never, logger);
    await runner.bind(envelope as never);
    expect(host.entry.pluginExtensions).toEqual({
      other: { a: 1 },
      coordination: { envelope, compaction: { atMs: 7 } },
    });
    expect(warnings).toEqual([]);
  });

  it("is looked for once in a process, and is none where the entry says something else", () => {
    const { host, sessions } = createHostSessions({
      pluginExtensions: { coordination: { compaction: { atMs: "soon" } } },
    });
    const compactions = createCompactions(sessions, createLogger().logger);
    expect([compactions.find(SESSION), compactions.find(SESSION)]).toEqual([undefined, undefined]);
    expect(host.reads).toBe(1);
  });

  it("is none where the host fails", () => {
    const { sessions } = createHostSessions();
    const failing = { ...sessions, getSessionEntry: () => expect.fail("locked") };
    const { logger } = createLogger();
    expect(createCompactions(failing as never, logger).find(SESSION)).toBeUndefined();
  });

  it("that the host cannot keep holds for this process, and is said", async () => {
    const { host, sessions } = createHostSessions();
    host.isBroken = true;
    const { logger, warnings } = createLogger();
    const compactions = createCompactions(sessions, logger);
    await compactions.record(SESSION, { atMs: 7 as EpochMs });
    expect(compactions.find(SESSION)).toEqual({ atMs: 7 });
    expect(warnings).toEqual([expect.stringContaining("locked")]);
  });
});

describe("a session whose history was compacted", () => {
  it("is told of its children in one run, in every prompt of that, also after a crash before it", async () => {
    const { sessions } = createHostSessions();
    await noteCompaction(startProcess(sessions), SESSION);
    const next = startProcess(sessions);
    expect(await describeCompactedChildren(next, SESSION, "run-1")).toContain('"mill": running since');
    expect(await describeCompactedChildren(next, SESSION, "run-1")).toContain('"mill": running since');
    expect(await describeCompactedChildren(next, SESSION, "run-2")).toBeUndefined();
    await noteCompaction(next, SESSION);
    expect(await describeCompactedChildren(next, SESSION, "run-3")).toContain('"mill"');
  });

  it("is told nothing where the operator does not want it, or nothing was compacted", async () => {
    const { sessions } = createHostSessions();
    expect(await describeCompactedChildren(startProcess(sessions), SESSION, "run-1")).toBeUndefined();
    const quiet = startProcess(sessions, { tellChildren: false });
    await noteCompaction(quiet, SESSION);
    expect(await describeCompactedChildren(quiet, SESSION, "run-1")).toBeUndefined();
  });

  const spawn = (params: object = {}) =>
    readSpawnCall({
      params: { task: TASK, ...params },
      sessionKey: SESSION,
      agentId: "main",
      names: { modelOf: String, folderOf: String, thinkingOf: () => undefined },
    });

  it("is refused a repeated spawn, unless the model insists or the operator allows it", async () => {
    const { sessions } = createHostSessions();
    const runtime = startProcess(sessions);
    expect(await explainRepetition(runtime, spawn())).toBeUndefined();
    await noteCompaction(runtime, SESSION);
    expect(await explainRepetition(runtime, spawn())).toContain('"mill"');
    expect(await explainRepetition(runtime, spawn({ task: "Find the river." }))).toBeUndefined();
    expect(await explainRepetition(runtime, spawn({ coordination: { again: true } }))).toBeUndefined();
    expect(await explainRepetition(startProcess(sessions, { repeats: "allow" }), spawn())).toBeUndefined();
  });

  it("takes a JSON text for what it says, with bounds on the child or without", () => {
    const isAgain = { isMeantAgain: true, problems: [] };
    expect(spawn({ coordination: '{"again": true}' })).toMatchObject(isAgain);
    expect(spawn({ coordination: '{"again": true, "write": ["/w"]}' })).toMatchObject(isAgain);
    expect(spawn({ coordination: '{"again": false}' })).toMatchObject({
      isMeantAgain: false,
      problems: [{ code: "ENVELOPE_MALFORMED" }, {}, {}],
    });
  });

  it.each([{ again: false }, { again: true, more: 1 }, "again", null])(
    "does not take %j for insisting, and records it as a malformed envelope",
    (coordination) => {
      expect(spawn({ coordination })).toMatchObject({
        isMeantAgain: false,
        problems: expect.arrayContaining([
          expect.objectContaining({ code: "ENVELOPE_MALFORMED" }),
        ]) as unknown,
      });
      expect(spawn({ coordination: { again: true } })).toMatchObject({ isMeantAgain: true, problems: [] });
    },
  );
});
