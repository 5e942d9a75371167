/** Owns: children that try to do more than they may, through the real handlers and a real ledger. */
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { openLedgerForReading } from "../../src/plugins/ledger-reader.ts";
import { createHookHandlers, type HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { loadToolNames } from "../../src/plugins/openclaw/privileges/tool-names.ts";
import { findRuntime } from "../../src/plugins/openclaw/runtime-access/shared-runtime.ts";
import { createSpawnHandlers } from "../../src/plugins/openclaw/spawns/spawn-handlers.ts";
import { runCli } from "../cli/run-cli.ts";
import { createFakeHost, type FakeHost } from "./fake-host.ts";
import { createCallContext, createCallEvent } from "./hook-calls.ts";
import { useStateFolder } from "./stopped-handlers.ts";

const OWNER = "agent:main:main";
const folder = useStateFolder();
let host: FakeHost;
let handlers: HookHandlers;

// A gateway has loaded most of it with its first agent.
beforeAll(async () => {
  await loadToolNames();
}, 120_000);

async function start(phase1: Record<string, unknown> = {}): Promise<void> {
  host = createFakeHost({ stateDir: folder.path, phase1 });
  handlers = createHookHandlers(host.api);
  folder.stopLater(handlers);
  await handlers.start();
}

type CallParams = Record<string, unknown>;

/** Plays both hooks around a spawn, as the host calls them; answers with the refusal where there is one. */
async function spawn(by: string, child: string, params: CallParams): Promise<string | undefined> {
  const event = createCallEvent("sessions_spawn", { task: `work of ${child}`, ...params });
  const before = await handlers.beforeSpawn(event, createCallContext(by));
  if (before?.block) return before.blockReason;
  const details = { status: "accepted", childSessionKey: child, runId: `run of ${child}` };
  await handlers.afterSpawn({ ...event, ...before, result: { details } }, createCallContext(by));
  return undefined;
}

/** The words that the model reads about a refused call; `undefined` for one that happens. */
async function call(by: string, tool: string, params: CallParams = {}): Promise<string | undefined> {
  const answer = await handlers.beforeCall(createCallEvent(tool, params), createCallContext(by));
  return answer?.block ? answer.blockReason : undefined;
}

const CHILD = "agent:main:subagent:child";
const GRANDCHILD = "agent:main:subagent:grandchild";
const write = (path: string): Record<string, unknown> => ({ path, content: "x" });

async function readRefusals(): Promise<unknown[]> {
  const ledger = await openLedgerForReading(join(folder.path, "coordination", "ledger.sqlite"));
  try {
    const [entry] = await ledger.list({ limit: 1 });
    const events = entry ? await ledger.read(entry.runId, { from: 0, limit: 1_000 }) : [];
    return events.filter(({ type }) => type === "privilege.refused").map(({ payload }) => payload);
  } finally {
    await ledger.close();
  }
}

describe("a child that may only use some tools", () => {
  it.each(["exec", "EXEC", " exec ", "bash", "Write", "sessions_send", "cron", "some_plugin_tool"])(
    "is refused %j in one sentence, and it is recorded",
    async (tool) => {
      await start();
      await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } });
      expect(await call(CHILD, tool, { command: "true", ...write("a") })).toMatch(
        /^Coordination refused this call: this session may not use .+; it may use read \(set by the spawn of step step-1 .+\)\.$/u,
      );
      expect(await readRefusals()).toEqual([
        expect.objectContaining({ rule: "tools.allow", from: { by: "spawn", stepId: "step-1" } }),
      ]);
      expect(await call(CHILD, "read", { path: "a" })).toBeUndefined();
    },
  );

  it("gets nowhere through Tool Search: the outer call is no tool, the inner one is ruled on by its name", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { deny: ["sessions_spawn", "exec"] } } });
    expect(await call(CHILD, "tool_call", { id: "sessions_spawn", args: {} })).toBeUndefined();
    expect(await spawn(CHILD, GRANDCHILD, {})).toMatch(/may not use sessions_spawn/u);
    expect(await call(CHILD, "exec", { command: "true" })).toMatch(/may not use exec/u);
  });

  it("cannot give its own child more than it has, whatever it writes, and the sentence names the ancestor", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read", "sessions_spawn"] } } });
    const forged = {
      coordinationId: "co-forged",
      stepId: "step-9",
      tools: { allow: ["*"] },
      write: ["/**"],
      intent: "execute",
    };
    expect(await spawn(CHILD, GRANDCHILD, { coordination: forged })).toBeUndefined();
    expect(await call(GRANDCHILD, "exec", { command: "true" })).toMatch(/set by the spawn of step step-1 /u);
    expect(await readRefusals()).toEqual([
      { stepId: "step-2", tool: "exec", rule: "tools.allow", from: { by: "spawn", stepId: "step-1" } },
    ]);
  });

  it("is held before the hook behind its spawn has recorded who it is", async () => {
    await start();
    const event = createCallEvent("sessions_spawn", {
      task: "x",
      coordination: { tools: { allow: ["read"] } },
    });
    const before = await handlers.beforeSpawn(event, createCallContext(OWNER));
    host.entries.set(CHILD, { spawnedBy: OWNER });
    const early = call(CHILD, "exec", { command: "true" });
    const details = { status: "accepted", childSessionKey: CHILD, runId: "run of the child" };
    await handlers.afterSpawn({ ...event, ...before, result: { details } }, createCallContext(OWNER));
    expect(await early).toMatch(/may not use exec/u);
  });

  it("holds a child that the ledger does not know, too: the host says who spawned it", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } });
    host.entries.set("agent:main:subagent:unknown", { spawnedBy: CHILD });
    expect(await call("agent:main:subagent:unknown", "exec", { command: "true" })).toMatch(
      /may not use exec/u,
    );
  });

  it("has a call of a tool that it was not shown recorded, which the host answers without asking us", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } });
    const endCall = (tool: string, error?: string) =>
      handlers.afterCall({ ...createCallEvent(tool, {}), ...(error && { error }) }, createCallContext(CHILD));
    await endCall("exec", "Tool exec not found");
    await endCall("read", "no such file");
    await endCall("read");
    expect(await readRefusals()).toMatchObject([{ tool: "exec", rule: "tools.allow" }]);
  });

  it("has a refusal that could not be recorded at first recorded behind the call", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } });
    const { privileges } = await findRuntime()!.coordinator();
    vi.spyOn(privileges, "record").mockRejectedValueOnce(new Error("the disk is full"));
    const error = await call(CHILD, "exec");
    expect(error).toMatch(/cannot be told|not known|could not/u);
    await handlers.afterCall(
      { ...createCallEvent("exec", {}), error: error ?? "" },
      createCallContext(CHILD),
    );
    expect(await readRefusals()).toMatchObject([{ tool: "exec", rule: "tools.allow" }]);
  });

  it("has no call recorded that it may make and that fails: the result that the host asks of it, or code of the host", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } });
    const result = createCallEvent("structured_output", { result: 1 });
    const code = { ...createCallEvent("exec", { code: "throw 1" }), toolKind: "code_mode_exec" as const };
    for (const event of [result, code]) {
      const ruling = await handlers.beforeCall(event, createCallContext(CHILD));
      expect(ruling?.block).toBeUndefined();
      await handlers.afterCall({ ...event, error: "it failed" }, createCallContext(CHILD));
    }
    // The host itself refuses one without a result, and asks nobody before.
    const error = "Validation failed for tool structured_output";
    await handlers.afterCall(
      { ...createCallEvent("structured_output", {}), error },
      createCallContext(CHILD),
    );
    expect(await readRefusals()).toEqual([]);
  });

  it("has what it would call through Tool Search recorded once, whether or not the host knows the tool", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } });
    const through = {
      ...createCallEvent("tool_call", { id: "openclaw:core:exec", args: {} }),
      toolCallId: "outer",
    };
    const inner = {
      ...createCallEvent("exec", { command: "true" }),
      toolCallId: "tool_search_code:outer:exec:1",
    };
    await handlers.beforeCall(inner, createCallContext(CHILD));
    await handlers.afterCall(through, createCallContext(CHILD));
    expect(await readRefusals()).toHaveLength(1);
    await handlers.afterCall({ ...through, toolCallId: "unknown" }, createCallContext(CHILD));
    await handlers.afterCall(
      createCallEvent("tool_call", { id: "read", args: {} }),
      createCallContext(CHILD),
    );
    expect(await readRefusals()).toMatchObject([{ tool: "exec" }, { tool: "exec" }]);
  });

  it("records so many refusals and no more, and refuses all", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } });
    for (let times = 0; times < 40; times += 1)
      expect(await call(CHILD, "exec", { command: "true" })).toMatch(/may not use exec/u);
    expect(await readRefusals()).toHaveLength(32);
  });
});

describe("what cannot be held does not begin", () => {
  it("a spawn whose words cannot be understood", async () => {
    await start();
    for (const coordination of [{ tools: { allow: "read" } }, { write: "src" }, '{"tools":{"allow":[1]}}'])
      expect(await spawn(OWNER, CHILD, { coordination })).toMatch(
        /cannot be understood .* and spawn again$/u,
      );
    expect(await spawn(OWNER, CHILD, { coordination: '{"tools":{"allow":["read"]}}' })).toBeUndefined();
    expect(await call(CHILD, "exec", { command: "true" })).toMatch(/may not use exec/u);
  });

  it("a spawn whose bounds are misspelt, but one that says nothing about bounds does", async () => {
    await start();
    const tools = { deny: ["exec"] };
    const tooLong = JSON.stringify({ tools, write: ["x".repeat(16_384)] });
    const misspelt = [tools, { tool: tools }, { privileges: { tools } }, { tools, wirte: ["out/**"] }];
    for (const coordination of [...misspelt, { again: true, tool: tools }, ["exec"], "read only", tooLong])
      expect(await spawn(OWNER, CHILD, { coordination })).toMatch(
        /cannot be understood .*"tools": .*"deny": .*"write": .* and spawn again$/u,
      );
    for (const coordination of [{}, null, "", { again: false }, { stepId: 5 }])
      expect(await spawn(OWNER, CHILD, { coordination })).toBeUndefined();
  });

  it("an ACP agent, whose calls cannot be seen, under a rule of any kind", async () => {
    await start({ privileges: { agents: { coder: { write: [] } } } });
    expect(await spawn(OWNER, "agent:coder:acp:1", { runtime: "acp", agentId: "coder" })).toMatch(
      /cannot be seen/u,
    );
    await spawn(OWNER, CHILD, { coordination: { tools: { deny: ["exec"] } } });
    expect(await spawn(CHILD, "agent:other:acp:1", { runtime: "acp", agentId: "other" })).toMatch(
      /cannot be seen/u,
    );
  });

  it("a child of an agent whose spawns are not coordinated, where it is to be held", async () => {
    await start({ agents: ["other"] });
    expect(await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read"] } } })).toMatch(
      /nothing would hold it/u,
    );
    expect(await spawn(OWNER, CHILD, { coordination: { tools: { allow: "read" } } })).toMatch(
      /cannot be understood/u,
    );
    expect(await spawn(OWNER, CHILD, {})).toBeUndefined();
  });

  it("a child that is to be held, where a reload does not end in time", async () => {
    await start({ privileges: { agents: { coder: { write: [] } } } });
    const use = (): Promise<never> => Promise.reject(new CoordinationError("LEDGER_CLOSED", "a reload"));
    const spawns = createSpawnHandlers({ api: host.api, use, quietly: use, isHeld: use });
    const askFor = async (params: Record<string, unknown>): Promise<string | undefined> => {
      const event = createCallEvent("sessions_spawn", { task: "work", ...params });
      return (await spawns.beforeSpawn(event, createCallContext(OWNER), Date.now() + 1_000))?.blockReason;
    };
    expect(await askFor({ coordination: { tools: { allow: ["read"] } } })).toMatch(/nothing would hold it/u);
    expect(await askFor({ coordination: { tools: "read" } })).toMatch(/cannot be understood/u);
    expect(await askFor({ agentId: "coder" })).toMatch(/nothing would hold it/u);
    expect(await askFor({ agentId: "other" })).toBeUndefined();
  });
});

describe("a child that may change one folder", () => {
  const expectRefused = async (
    tool: string,
    params: Record<string, unknown>,
    rule: RegExp,
  ): Promise<void> => {
    expect(await call(CHILD, tool, params)).toMatch(rule);
  };

  beforeEach(async () => {
    await start({ conflicts: { commands: [{ command: "make out", outputs: ["out/made"] }] } });
    mkdirSync(join(folder.path, "out"));
    writeFileSync(join(folder.path, "secret.txt"), "secret");
    await spawn(OWNER, CHILD, { coordination: { write: ["out/**"] } });
  });

  it("changes files in it", async () => {
    for (const path of ["out/a", "./out/b/c", join(folder.path, "out", "d"), "out/../out/e"])
      expect(await call(CHILD, "write", write(path))).toBeUndefined();
    expect(await call(CHILD, "exec", { command: "make out" })).toBeUndefined();
  });

  it.each([
    "secret.txt",
    "out/../secret.txt",
    "../x",
    "/etc/passwd",
    "@secret.txt",
    "file:///etc/passwd",
    "~/x",
    "output/a",
  ])("is refused %j", async (path) => {
    await expectRefused(
      "write",
      write(path),
      /lies outside of what this session may change, which is out\/\*\*/u,
    );
  });

  it("is refused what a link in it leads to, and what has another name elsewhere", async () => {
    symlinkSync(folder.path, join(folder.path, "out", "up"));
    linkSync(join(folder.path, "secret.txt"), join(folder.path, "out", "innocent.txt"));
    await expectRefused("write", write("out/up/secret.txt"), /lies outside/u);
    await expectRefused("write", write("out/innocent.txt"), /several names/u);
  });

  it("is refused a patch of which one file lies outside, a command that says nothing, and a call that cannot be read", async () => {
    const input = "*** Begin Patch\n*** Add File: out/a\n+a\n*** Add File: b\n+b\n*** End Patch";
    await expectRefused("apply_patch", { input }, /lies outside/u);
    await expectRefused("exec", { command: "rm secret.txt" }, /cannot be told/u);
    await expectRefused("write", { path: 7 }, /cannot be told/u);
    await expectRefused("write", write("secret.txt/x/\0"), /cannot be told|lies outside/u);
  });

  it("is held by who narrowed it: a glob that catches everything is nobody's rule", async () => {
    await spawn(CHILD, GRANDCHILD, { coordination: { write: ["/**"] } });
    expect(await call(GRANDCHILD, "exec", { command: "true" })).toMatch(
      /only out\/\*\* \(set by the spawn of step step-1 /u,
    );
    await spawn(OWNER, "agent:main:subagent:free", { coordination: { write: ["/**"] } });
    expect(await call("agent:main:subagent:free", "exec", { command: "true" })).toBeUndefined();
  });

  it("cannot move where its globs begin: those of its own child begin where that works", async () => {
    await spawn(CHILD, GRANDCHILD, { cwd: "/", coordination: { write: ["/**"] } });
    host.entries.set(GRANDCHILD, {
      ...host.entries.get(GRANDCHILD),
      spawnedCwd: join(folder.path, "elsewhere"),
    });
    expect(await call(GRANDCHILD, "write", write("out/a"))).toMatch(/lies outside/u);
    expect(await call(GRANDCHILD, "write", write(join(folder.path, "out", "a")))).toBeUndefined();
  });
});

describe("what the model of a child is shown", () => {
  const readPrompt = (sessionKey: string) =>
    handlers.beforePromptBuild({ prompt: "x", messages: [] }, createCallContext(sessionKey));

  it("is what it may use, with the reason in words, and everything where nobody narrows it", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read", "exec"] }, write: [] } });
    const prompt = await readPrompt(CHILD);
    expect(prompt?.toolsAllow).toEqual([
      ...[
        "coordination_answer",
        "coordination_escalate",
        "coordination_progress",
        "coordination_report",
        "coordination_result",
        "coordination_status",
        "exec",
        "read",
        "tool_call",
        "tool_describe",
        "tool_search",
        "tool_search_code",
      ],
    ]);
    expect(prompt?.appendSystemContext).toContain("tools: read, exec; files that may be changed: nothing");
    await spawn(OWNER, GRANDCHILD, {});
    expect(await readPrompt(GRANDCHILD)).not.toHaveProperty("toolsAllow");
  });
});

describe("what people are shown", () => {
  it("is what holds each step, and what was refused, in show, timeline and status", async () => {
    await start();
    await spawn(OWNER, CHILD, { coordination: { tools: { allow: ["read", "sessions_spawn"] } } });
    await spawn(CHILD, GRANDCHILD, { coordination: { write: ["out/**"] } });
    await call(GRANDCHILD, "exec", { command: "true" });
    const ledger = ["--ledger", join(folder.path, "coordination", "ledger.sqlite")];
    const readJson = async (command: string) =>
      JSON.parse((await runCli([command, "--json", ...ledger])).stdout) as Record<string, unknown>;
    const bound = { by: "spawn", tools: { allow: ["read", "sessions_spawn"] }, stepId: "step-1" };
    expect((await readJson("show"))["steps"]).toMatchObject([
      { effectivePrivilege: [bound] },
      {
        effectivePrivilege: [{ write: ["out/**"], stepId: "step-2" }, bound],
        refusedCalls: [{ tool: "exec" }],
      },
    ]);
    expect((await runCli(["show", ...ledger])).stdout).toMatch(/refused +1 call\n/u);
    expect(await readJson("timeline")).toMatchObject({
      refusedCalls: [{ stepId: "step-2", tool: "exec", rule: "tools.allow" }],
    });
    expect((await runCli(["timeline", ...ledger])).stdout).toMatch(
      /! step-2 at .+: refused exec \(tools\.allow\)/u,
    );
    expect(await readJson("status")).toMatchObject({ refusedCalls: 1 });
  });
});
