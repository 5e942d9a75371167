/** Owns: that what a verifier or a person let through is merged once, and nothing else is, however the host ends meanwhile. */
import { setTimeout as passed } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startModelServer } from "../openwop/levels-model-server.ts";
import {
  end,
  createLoop,
  createNode,
  createNoop,
  work,
  createWorkflow,
} from "../openwop/levels-workflows.ts";
import { chainOf, filterByType, type Client, type Event } from "../openwop/levels-world.ts";
import { createRandom } from "../support/random.ts";
import { waitFor } from "../support/wait-for.ts";
import { SERVE_KILLS, serveStage } from "./openwop-stage.ts";

const MAPPED = { outputMapping: { treasure: "found" } };
const CRITIC = { agentId: "critic-one", criteria: ["pure"] };

const createVerified = (id: string, systemPrompt: string) =>
  createLoop(id, {
    plan: [work(["digger"]), end()],
    dispatch: { ...MAPPED, verifier: { ...CRITIC, systemPrompt } },
    variables: { treasure: undefined },
  });

const DEFINITIONS = [
  createWorkflow("digger", {
    nodes: [createNoop("only")],
    variables: { found: "gold", revisionCriteria: undefined },
  }),
  createVerified("mends", "Send it back once."),
  createVerified("doubts", "Be in doubt."),
  createWorkflow("approves", {
    nodes: [
      createNode("sub", "core.subWorkflow", {
        config: {
          workflowId: "digger",
          ...MAPPED,
          outputAttestation: { checksum: true, requireApproval: true },
        },
      }),
    ],
    variables: { treasure: undefined },
  }),
];

const ASKED: Readonly<Record<string, string>> = { doubts: "handing", approves: "sub" };
const ACCEPT = { action: "accept" };

interface AcceptedRun {
  readonly runId: string;
  readonly workflowId: string;
}

/** A host that is gone meanwhile is nobody's fault. */
async function acceptAll(client: Client, runs: readonly AcceptedRun[]): Promise<void> {
  await Promise.allSettled(
    runs.map(async ({ runId, workflowId }) => {
      const nodeId = ASKED[workflowId];
      if (nodeId !== undefined) await client.resolve(runId, nodeId, ACCEPT);
    }),
  );
}

function checkMerge({ workflowId }: AcceptedRun, events: readonly Event[]): void {
  const changed = filterByType(events, "variable.changed").filter(
    ({ payload }) => payload["name"] === "treasure",
  );
  const harvested = chainOf(events).filter(({ payload }) => payload["phase"] === "output.harvested");
  expect([changed.length, harvested.length], workflowId).toEqual([1, 1]);
  const before = events.slice(0, Math.min(changed[0]?.sequence ?? 0, harvested[0]?.sequence ?? 0));
  const verdicts = filterByType(before, "agent.verified").map(({ payload }) => payload["verdict"]);
  const answers = filterByType(before, "interrupt.resolved").length;
  const wanted: Readonly<Record<string, unknown>> = {
    mends: [["revise", "pass"], 0],
    doubts: [["pass"], 1],
    approves: [[], 1],
  };
  expect([verdicts, answers], workflowId).toEqual(wanted[workflowId]);
  expect(filterByType(events, "agent.verified")).toHaveLength(verdicts.length);
}

describe("kill -9 of a host whose runs have a gate", () => {
  it(`at ${SERVE_KILLS} moments: every run reaches its end, and what is merged was let through, once`, async () => {
    const critic = await startModelServer((prompt) => {
      const system = critic.askedBodies.at(-1)?.messages[0]?.content ?? "";
      const isFirst = system.includes("Send it back") && !prompt.includes("revisionCriteria");
      const confidence = system.includes("in doubt") ? 0.2 : 0.9;
      return {
        content: JSON.stringify({
          verdict: isFirst ? "revise" : "pass",
          criteria: CRITIC.criteria,
          confidence,
        }),
      };
    });
    try {
      await using stage = serveStage(DEFINITIONS);
      const options = ["--model-url", critic.baseUrl, "--model", "critic", "--allow-private", critic.origin];
      const next = createRandom(20_261_123);
      const accepted: AcceptedRun[] = [];
      for (let round = 0; round < SERVE_KILLS; round += 1) {
        const serve = await stage.serve(options);
        const moment = passed(Math.floor(next() ** 2 * 500));
        const pendingAnswer = Promise.allSettled(
          ["mends", "doubts", "approves", "mends"].map(async (workflowId) => {
            accepted.push({ runId: await serve.client.start(workflowId), workflowId });
          }),
        );
        const answered = acceptAll(serve.client, [...accepted]);
        await moment;
        await serve.kill9();
        await Promise.all([pendingAnswer, answered]);
      }
      expect(accepted.length).toBeGreaterThan(SERVE_KILLS);
      const last = await stage.serve(options);
      const { client } = last;
      await waitFor(
        async () => {
          await acceptAll(client, accepted);
          const snapshots = await Promise.all(accepted.map(({ runId }) => client.snapshot(runId)));
          return snapshots.every(({ status }) => status === "completed") ? snapshots : undefined;
        },
        { what: "every accepted run to complete", timeoutMs: 60_000, everyMs: 100 },
      );
      const logs = await Promise.all(accepted.map(({ runId }) => client.events(runId)));
      expect(logs.filter((log) => filterByType(log, "run.resuming").length > 0).length).toBeGreaterThan(
        (SERVE_KILLS * 5) / 12,
      );
      for (const [index, log] of logs.entries()) {
        const run = accepted[index];
        if (run) checkMerge(run, log);
      }
      await last.stop();
      expect(await stage.verify()).toMatchObject({ ok: true, problems: [], exitCode: 0 });
    } finally {
      await critic.close();
    }
  });
});
