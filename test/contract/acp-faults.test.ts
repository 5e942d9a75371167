import { once } from "node:events";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { BOUNDS } from "../../src/agents/coordination/contracts/bounds.ts";
import type { AgentId } from "../../src/agents/coordination/contracts/ids.ts";
import type { Clock } from "../../src/agents/coordination/ports/clock.ts";
import { ACP_LIMITS } from "../../src/infra/acp/acp-limits.ts";
import { createAcpRunner } from "../../src/infra/acp/acp-runner.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";
import { createAcpScene, isGone, createKeyed, orderOf, outcomeOf, type Scene } from "./acp-scene.ts";
import { killGateway, startGateway } from "./killed-gateway.ts";

/** Moves to the next wake-up, once somebody waits for one. */
async function waitForNextWake(clock: FakeClock): Promise<number> {
  const atMs = await waitFor(() => clock.nextAtMs, { what: "somebody who waits", everyMs: 5 });
  const waitedMs = atMs - clock.now();
  await clock.advance(waitedMs);
  return waitedMs;
}

const waitForAgent = async (scene: Scene): Promise<number> =>
  waitFor(() => scene.pids()[0], { what: "the agent's process", everyMs: 5 });

const openPipes = (): number =>
  process.getActiveResourcesInfo().filter((resource) => resource === "PipeWrap").length;

describe("an ACP agent that cannot be started", () => {
  it.each([
    ["its program is not there", { command: "/nowhere/agent" }, "ENOENT: the program or the folder"],
    ["its folder is not there", { cwd: "/nowhere/at/all" }, "ENOENT: the program or the folder"],
    ["its program is no program", { command: "/" }, "EACCES"],
    ["its arguments are no arguments", { args: ["a\0b"] }, "ERR_INVALID_ARG_VALUE"],
  ])("is refused when %s", async (_case, config, why) => {
    await using scene = createAcpScene({ config });
    const start = await scene.runner.start(orderOf("ACP:reply no"));
    expect(start).toEqual({ kind: "refused", message: expect.stringContaining(why) as string });
    expect(await scene.runner.observe(orderOf(""))).toEqual({ kind: "absent" });
  });

  it("is refused when it is not configured, or has no folder", async () => {
    await using scene = createAcpScene();
    const start = await scene.runner.start(orderOf("", { agentId: "toString" as AgentId }));
    expect(start).toEqual({ kind: "refused", message: "There is no ACP agent named toString." });
    const { debug, info, warn, error } = console;
    const homeless = createAcpRunner({
      agents: { coder: { command: "true", args: [], env: {}, permissions: "deny" } },
      defaultCwd: () => {
        throw new Error("no such agent");
      },
      clock: systemClock,
      logger: { debug, info, warn, error },
      programVersion: "1",
      notesFolder: "/nowhere",
    });
    expect(await homeless.start(orderOf(""))).toEqual({
      kind: "refused",
      message: "There is no folder for the ACP agent coder.",
    });
  });

  it.each([
    ["exit-early", "The agent's process ended with exit code 7 before it answered."],
    ["refuse-initialize", "The agent answered initialize with error -32603 (internal error)."],
    ["old-version", "The agent speaks version 0 of the Agent Client Protocol, not 1."],
    ["login-first", "The agent answered session/new with error -32000 (authentication required)."],
    ["no-session-id", "The agent answered session/new without a session id."],
    ["garbage-early", "The agent wrote a line that is not JSON to its standard output."],
  ])("is refused when its process is gone, with the reason: %s", async (script, message) => {
    await using scene = createAcpScene({ script });
    expect(await scene.runner.start(orderOf("ACP:reply no"))).toEqual({ kind: "refused", message });
    const [pid = 0] = scene.pids();
    expect(isGone(pid)).toBe(true);
    expect(scene.prompts()).toEqual([]);
  });

  it("may be started again with the same key, because nothing ran", async () => {
    await using scene = createAcpScene({ script: "exit-early" });
    expect(await scene.runner.start(orderOf(""))).toMatchObject({ kind: "refused" });
    expect(await scene.runner.start(orderOf(""))).toMatchObject({ kind: "refused" });
    expect(scene.pids()).toHaveLength(2);
  });

  it("is refused when it is not ready in time", async () => {
    const clock = createFakeClock();
    await using scene = createAcpScene({ clock, script: "never-initialize" });
    const starting = scene.runner.start(orderOf("ACP:reply no"));
    const pid = await waitForAgent(scene);
    expect(await scene.runner.observe(orderOf(""))).toEqual({ kind: "unknown" });
    await clock.advance(29_999);
    expect(isGone(pid)).toBe(false);
    await clock.advance(1);
    expect(await starting).toEqual({ kind: "refused", message: "The agent was not ready within 30000 ms." });
    expect(isGone(pid)).toBe(true);
  });

  it("is refused when it does not take its prompt", async () => {
    await using scene = createAcpScene({ script: "deaf", limits: { startMs: 1_000 } });
    const start = await scene.runner.start(orderOf("x".repeat(1_000_000)));
    expect(start).toEqual({ kind: "refused", message: "The agent was not ready within 1000 ms." });
  });
});

describe("an ACP agent that fails", () => {
  it.each([
    ["exit 3", "The agent's process ended with exit code 3 before it answered."],
    ["crash", "The agent's process was ended by SIGKILL before it answered."],
    ["fail", "The agent answered session/prompt with error -32603 (internal error)."],
    ["close-output", "The agent closed its output before it answered."],
    ["garbage", "The agent wrote a line that is not JSON to its standard output."],
    ["garbage-json", "The agent wrote a line that is no JSON-RPC message to its standard output."],
    ["oversized 9000000", "The agent wrote a message of more than 8388608 bytes."],
    ["ask-without-end", "The agent made more than 256 requests without taking the answers."],
  ])("fails its attempt with a sentence, and is gone: %s", async (script, message) => {
    await using scene = createAcpScene();
    const seen = await outcomeOf(scene, orderOf(`ACP:${script}`));
    expect(seen).toMatchObject({ kind: "ended", outcome: "failed", message });
    const [pid = 0] = scene.pids();
    expect(isGone(pid)).toBe(true);
  });

  it("fails its attempt when it talks without end", async () => {
    await using scene = createAcpScene({ limits: { outputBytesMax: 20_000_000 } });
    expect(await outcomeOf(scene, orderOf("ACP:chatter"))).toMatchObject({
      outcome: "failed",
      message: "The agent wrote more than 20000000 bytes.",
    });
  });

  it("fails its attempt though something of it holds the pipe open", async () => {
    await using scene = createAcpScene({ limits: { exitMs: 100 } });
    const before = openPipes();
    const seen = await outcomeOf(scene, orderOf("ACP:orphan exit 3"));
    const [, orphan = 0] = scene.pids();
    const lived = !isGone(orphan);
    try {
      expect(lived).toBe(true);
      expect(seen).toMatchObject({
        message: "The agent's process ended with exit code 3 before it answered.",
      });
      await waitFor(() => openPipes() === before, { what: "letting go of the pipe" });
    } finally {
      if (lived) process.kill(orphan, "SIGKILL");
    }
  });

  it.each(["exit 3", "fail"])("says nothing of what it wrote to its standard error: %s", async (script) => {
    await using scene = createAcpScene();
    const seen = await outcomeOf(scene, orderOf(`ACP:${script}`));
    expect(JSON.stringify([seen, scene.logged])).not.toContain("SECRET");
    const stderrBytes = scene.logged.at(-1)?.fields["stderrBytes"];
    expect(stderrBytes).toBeGreaterThanOrEqual("SECRET-of-the-agent\n".length);
  });

  it("is not failed for messages that a client may ignore, nor complained about on the console", async () => {
    using complaint = vi.spyOn(console, "error");
    await using scene = createAcpScene();
    expect(await outcomeOf(scene, orderOf("ACP:noise still here"))).toMatchObject({
      outcome: "completed",
      reply: "still here",
    });
    expect(complaint).not.toHaveBeenCalled();
  });
});

describe("cancelling an ACP agent", () => {
  it.each(["hang", "hang-badly"])("tells it to stop, and waits until it is gone: %s", async (script) => {
    await using scene = createAcpScene();
    const order = orderOf(`ACP:${script}`);
    await scene.runner.start(order);
    const both = [scene.runner.cancel(order), scene.runner.cancel(order)];
    expect(await Promise.all(both)).toEqual(["stopped", "stopped"]);
    expect(isGone(await waitForAgent(scene))).toBe(true);
    expect(await scene.runner.observe(order)).toMatchObject({ kind: "ended", outcome: "cancelled" });
  });

  it("changes nothing after the end", async () => {
    await using scene = createAcpScene();
    const order = orderOf("ACP:reply done");
    await outcomeOf(scene, order);
    expect(await scene.runner.cancel(order)).toBe("already_ended");
    expect(await scene.runner.observe(order)).toMatchObject({ outcome: "completed" });
  });

  it("kills one that does not stop, and what it started, after two graces", async () => {
    const clock = createFakeClock();
    await using scene = createAcpScene({ clock });
    const order = orderOf("ACP:stubborn child never");
    await scene.runner.start(order);
    await waitFor(() => scene.pids().length === 2, { what: "the agent's child" });
    const cancelling = scene.runner.cancel(order);
    expect(await waitForNextWake(clock)).toBe(1_500);
    expect(await waitForNextWake(clock)).toBe(1_000);
    expect(await cancelling).toBe("stopped");
    expect(scene.logged.at(-1)?.fields).toMatchObject({ signal: "SIGKILL" });
    await scene.allGone();
  });

  it("is over, whatever the agent ignores, before the next attempt stops waiting for that", () => {
    const { cancelMs, exitMs, terminateMs, killMs } = ACP_LIMITS;
    expect(cancelMs + exitMs + terminateMs + killMs).toBeLessThan(BOUNDS.stopAgentMsMax);
  });

  it("lets a stubborn one live until the first grace is over, and its children not longer", async () => {
    const clock = createFakeClock();
    await using scene = createAcpScene({ clock });
    const order = orderOf("ACP:stubborn child never");
    await scene.runner.start(order);
    const [agent = 0, child = 0] = await waitFor(() => scene.pids().length === 2 && scene.pids(), {
      what: "the agent's child",
    });
    const cancelling = scene.runner.cancel(order);
    await clock.advance(1_499);
    expect([agent, child].map(isGone)).toEqual([false, false]);
    await clock.advance(1);
    await waitFor(() => isGone(child), { what: "the end of the child by SIGTERM" });
    expect(isGone(agent)).toBe(false);
    await waitForNextWake(clock);
    expect(await cancelling).toBe("stopped");
  });

  it("says so when it cannot be killed, and that a start is then unknown", async () => {
    // Gives the process no time to die, which is as if it could not.
    const [terminateMs, killMs] = [111, 222];
    const clock: Clock = {
      now: () => systemClock.now(),
      wakeAt: (atMs, run) => {
        // A few milliseconds may have passed since the time was reckoned.
        const isGrace = [terminateMs, killMs].some((ms) => Math.abs(atMs - systemClock.now() - ms) < 20);
        if (!isGrace) return systemClock.wakeAt(atMs, run);
        queueMicrotask(run);
        return () => undefined;
      },
    };
    await using scene = createAcpScene({ clock, limits: { terminateMs, killMs, cancelMs: 50 } });
    const order = orderOf("ACP:stubborn never");
    await scene.runner.start(order);
    expect(await scene.runner.cancel(order)).toBe("unreachable");
    expect(await scene.runner.cancel(order)).toBe("unreachable");
    expect(await scene.runner.observe(order)).toMatchObject({ kind: "ended", outcome: "cancelled" });
    expect(scene.logged.at(-1)?.message).toBe("an ACP agent's process cannot be killed");
    await using other = createAcpScene({
      clock,
      limits: { terminateMs, killMs },
      script: "refuse-initialize",
    });
    expect(await other.runner.start(order)).toMatchObject({ kind: "unknown" });
  });

  it("stops one that is only starting, which is then refused", async () => {
    await using scene = createAcpScene({ script: "never-initialize" });
    const refused = { kind: "refused", message: "The attempt was cancelled while the agent was starting." };
    const starting = scene.runner.start(orderOf("ACP:reply no"));
    await waitForAgent(scene);
    expect(await scene.runner.cancel(orderOf(""))).toBe("stopped");
    expect(await starting).toEqual(refused);

    const next = orderOf("ACP:reply no", createKeyed("2"));
    const startingNext = scene.runner.start(next);
    expect(await scene.runner.cancel(next)).toBe("stopped");
    expect(await startingNext).toEqual(refused);
    expect(await scene.runner.observe(next)).toEqual({ kind: "absent" });
  });

  it("is done for all of them when the runner closes, and nothing starts afterwards", async () => {
    await using scene = createAcpScene();
    const orders = ["1", "2", "3"].map((key) => orderOf("ACP:hang", createKeyed(key)));
    await Promise.all(orders.map((order) => scene.runner.start(order)));
    await scene.runner.close();
    expect(scene.pids().map(isGone)).toEqual([true, true, true]);
    const late = await scene.runner.start(orderOf("ACP:reply no", createKeyed("4")));
    expect(late).toEqual({ kind: "refused", message: "The gateway is stopping." });
  });
});

describe("the death of the gateway", () => {
  const readNotes = (folder: TempFolder): readonly string[] =>
    readdirSync(folder.file("notes")).map((name) => join(folder.file("notes"), name));

  it("ends its agents, which see their input end", async () => {
    using folder = createTempFolder();
    const [agent = 0] = await killGateway(folder, "hang");
    await waitFor(() => isGone(agent), { what: "the end of the agent" });
  });

  it.skipIf(process.platform !== "linux").each([
    ["looks after its attempt", ({ runner }: Scene) => runner.observe(orderOf(""))],
    ["follows its attempt", ({ runner }: Scene) => runner.follow(orderOf(""), new AbortController().signal)],
    ["cancels its attempt", ({ runner }: Scene) => runner.cancel(orderOf(""))],
    ["starts the next one", ({ runner }: Scene) => runner.start(orderOf("", createKeyed("co-1:build:2")))],
  ])("leaves no agent at work, whatever it ignores, once the next gateway %s", async (_what, act) => {
    using folder = createTempFolder();
    const pids = await killGateway(folder, "stubborn child never", { processes: 2 });
    expect(pids.map(isGone)).toEqual([false, false]);
    expect(readNotes(folder).map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
    await using next = createAcpScene({ notesFolder: folder.file("notes") });
    await act(next);
    expect(pids.slice(0, 1).map(isGone)).toEqual([true]);
    expect(await next.runner.observe(orderOf(""))).toEqual({ kind: "absent" });
    await waitFor(() => pids.every(isGone), { what: "the end of what the agent started" });
  });

  it.skipIf(process.platform !== "linux")(
    "is waited for where it still runs beside the next one",
    async () => {
      using folder = createTempFolder();
      const gateway = await startGateway(folder, "hang");
      await using next = createAcpScene({ notesFolder: folder.file("notes") });
      const order = orderOf("ACP:reply done");
      expect(await next.runner.observe(order)).toEqual({ kind: "unknown" });
      expect(await next.runner.cancel(order)).toBe("unreachable");
      expect(await next.runner.start(order)).toMatchObject({ kind: "unknown" });
      expect(next.pids()).toEqual([]);
      gateway.kill("SIGKILL");
      await once(gateway, "exit");
      expect(await next.runner.observe(order)).toEqual({ kind: "absent" });
      expect(await next.runner.start(order)).toMatchObject({ kind: "started" });
    },
  );

  it.skipIf(process.platform !== "linux")("ends no process that has the number of an agent", async () => {
    using folder = createTempFolder();
    const [agent = 0] = await killGateway(folder, "stubborn never");
    const [note = ""] = readNotes(folder);
    // As if the agent had started before.
    writeFileSync(note, readFileSync(note, "utf8").replaceAll(`.${agent}.`, `.${agent}.1`));
    writeFileSync(join(folder.file("notes"), "torn.json"), "{");
    await using next = createAcpScene({ notesFolder: folder.file("notes") });
    expect(await next.runner.observe(orderOf(""))).toEqual({ kind: "absent" });
    expect(isGone(agent)).toBe(false);
    expect(readNotes(folder)).toEqual([]);
    process.kill(-agent, "SIGKILL");
  });

  it.skipIf(process.platform !== "linux")("leaves no note of an agent that has ended", async () => {
    using folder = createTempFolder();
    await using scene = createAcpScene({ notesFolder: folder.file("notes") });
    await scene.runner.start(orderOf("ACP:delay 200 reply done"));
    expect(readNotes(folder)).toHaveLength(1);
    await scene.runner.follow(orderOf(""), new AbortController().signal);
    expect(readNotes(folder)).toEqual([]);
  });

  it.skipIf(process.platform !== "linux")("does not concern the agents of a gateway that lives", async () => {
    using folder = createTempFolder();
    await using scene = createAcpScene({ notesFolder: folder.file("notes") });
    await scene.runner.start(orderOf("ACP:hang"));
    await using next = createAcpScene({ notesFolder: folder.file("notes") });
    expect(await next.runner.observe(orderOf("", createKeyed("2")))).toEqual({ kind: "absent" });
    expect(scene.pids().map(isGone)).toEqual([false]);
    expect(readNotes(folder)).toHaveLength(1);
  });
});
