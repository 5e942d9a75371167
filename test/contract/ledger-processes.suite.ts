/** Owns: what several processes on one ledger must come to, whatever it is kept in. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { runIdOf } from "../support/ledger-fixtures.ts";
import type { WriterReport } from "./racing-writer.ts";
import { FORK_PORTIONS, RACER_KEYS, type RacerReport } from "./workflow-store-racer-report.ts";
import { branchOf, nameWorkflowRun, readAll } from "./workflow-store-tested.ts";

/** A ledger that is not there yet. */
export interface SharedPlace extends AsyncDisposable {
  readonly place: string;
  readonly open: () => Promise<OpenedLedger>;
}

/** Runs a program of this folder and returns what it prints. */
export async function runProgram(program: string, ...args: readonly string[]): Promise<string> {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [status] = (await once(child, "close")) as [number | null];
  expect(status).toBe(0);
  return Buffer.concat(chunks).toString();
}

export function describeWriterProcesses(title: string, create: () => Promise<SharedPlace>): void {
  describe(`${title}: several processes that append`, () => {
    it("open a new ledger all at once, and each place in a log, and each token, is given to one of them", async () => {
      await using shared = await create();
      const reports = await Promise.all(
        ["left", "middle", "right"].map(
          async (name) =>
            JSON.parse(await runProgram("racing-writer.ts", shared.place, name)) as WriterReport,
        ),
      );
      const store = await shared.open();
      const events = await store.read(runIdOf("shared"), { from: 0, limit: 10_000 });
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
      const calls = events.flatMap((event) =>
        event.type === "step.admitted" ? [event.payload.call.toolCallId] : [],
      );
      expect(calls.toSorted()).toEqual(reports.flatMap(({ won }) => won).toSorted());
      for (const { name, won } of reports) expect(won.every((call) => call.startsWith(name))).toBe(true);
      const claims = await store.claims({ after: 0, limit: 1_000 });
      expect(claims.map(({ token }) => token)).toEqual(claims.map((_, index) => index + 1));
      for (const { name, tokens } of reports) {
        const ownClaims = claims.filter(({ runId }) => runId === runIdOf(name));
        expect(ownClaims.map(({ token }) => token)).toEqual(tokens);
        expect(tokens.length).toBeGreaterThanOrEqual(40);
      }
      expect(await store.inspect()).toEqual([]);
      await store.close();
    });
  });
}

export function describeWorkflowProcesses(title: string, create: () => Promise<SharedPlace>): void {
  describe(`${title}: several processes that run workflows`, () => {
    /** As if one process had written it: S1, with the origin of the first portion. */
    const expectForkWhole = async (workflows: WorkflowStore, reports: readonly RacerReport[]) => {
      const fork = nameWorkflowRun("fork");
      const takenCount = 2 * FORK_PORTIONS - 7;
      const portions = reports.flatMap((report) => report.portions).toSorted((a, b) => a - b);
      expect(portions).toEqual(Array.from({ length: FORK_PORTIONS }, (_, index) => index));
      const events = await readAll(workflows, fork);
      expect(events.map(({ eventId }) => eventId)).toEqual(
        Array.from(
          { length: 2 * FORK_PORTIONS },
          (_, at) => `${at < takenCount ? "run-source" : fork}:${at}`,
        ),
      );
      expect((await workflows.entry(fork))?.origin).toEqual(
        branchOf(nameWorkflowRun("source"), "fork", takenCount),
      );
      expect(await workflows.damage(fork, { before: events.length })).toBeUndefined();
    };

    it("give each keyed request, and each place in a log, to one of them", async () => {
      await using shared = await create();
      const reports = await Promise.all(
        ["left", "middle", "right"].map(
          async (name) =>
            JSON.parse(await runProgram("workflow-store-racer.ts", shared.place, name)) as RacerReport,
        ),
      );
      expect(reports.flatMap(({ began }) => began).toSorted()).toEqual(RACER_KEYS.toSorted());
      const store = await shared.open();
      const events = await readAll(store.workflows, nameWorkflowRun("shared"));
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
      const nodes = events.flatMap((event) => (event.type === "node.started" ? [event.payload.nodeId] : []));
      expect(nodes.toSorted()).toEqual(reports.flatMap(({ won }) => won).toSorted());
      await expectForkWhole(store.workflows, reports);
      expect(await store.inspect()).toEqual([]);
      await store.close();
    });
  });
}
