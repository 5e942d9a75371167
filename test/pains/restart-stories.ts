/** P2, P7, P13 and P16: what a killed gateway leaves, and what a full one cannot do. The gateways are killed between `begin` and `end`. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { connectOnUse, type Json } from "../support/gateway-client.ts";
import type { Turn } from "../support/scripted-model.ts";
import { waitFor } from "../support/wait-for.ts";
import { stepNamed, type Stage } from "../e2e/stage.ts";
import {
  begin,
  call,
  childOf,
  gate,
  open,
  openGate,
  ownerOf,
  taskOf,
  waitForEnd,
} from "../e2e/writes-stage.ts";
import { NEVER_SAID } from "./failing-model.ts";
import type { Pair } from "./pair.ts";
import {
  countMessagesWith,
  countWorkers,
  hasSaid,
  listAnnounces,
  listRequestsOf,
  planOf,
  readDelivery,
  runPlan,
  stepOf,
  TRIED_AGAIN,
  WAIT_MS_MAX,
} from "./story-parts.ts";

export interface RestartStory {
  readonly begin: (pair: Pair) => Promise<void>;
  readonly end: (pair: Pair) => Promise<void>;
}

/** P2: children are at work when the gateway dies. */
export const ORPHANS: RestartStory = {
  begin: async ({ plain, coordinated }) => {
    const turns = [gate({ opens: ["orphan began"], awaits: ["orphan may end"] })];
    await begin(plain, "orphan", { spawn: [childOf("orphan-work", ...turns)] });
    await runPlan(coordinated, planOf("orphan", [stepOf("orphan-work", turns)], TRIED_AGAIN));
    for (const stage of [plain, coordinated]) await openGate(stage, "orphan began");
  },
  end: async ({ plain, coordinated }) => {
    for (const stage of [plain, coordinated]) await open(stage, "orphan may end");
    const state = await waitForEnd(coordinated, "orphan");
    expect(state).toMatchObject({ status: "success" });
    expect(stepNamed(state, "orphan-work").phase).toMatchObject({ status: "completed", attempt: 2 });

    const isInterrupted = (): boolean =>
      listAnnounces(plain, "orphan").some(({ text }) => text.includes("interrupted"));
    await waitFor(isInterrupted, { what: "the host's word of the child", timeoutMs: WAIT_MS_MAX });
    expect(hasSaid(plain, "orphan-work")).toBe(false);
  },
};

/** P7: the result was told, and the gateway dies before it can say so. */
export const LOST_ACKNOWLEDGEMENT: RestartStory = {
  begin: async ({ plain, coordinated }) => {
    await begin(plain, "posted", { spawn: [childOf("posted-child")] });
    await runPlan(coordinated, planOf("posted", [stepOf("posted-step", [])]));
    for (const { model } of [plain, coordinated]) {
      const isTold = (): boolean => model.requests.some(({ turn }) => turn.say === NEVER_SAID);
      await waitFor(isTold, { what: "the telling of the result", timeoutMs: WAIT_MS_MAX });
    }
  },
  end: async ({ plain, coordinated }) => {
    const state = await waitForEnd(coordinated, "posted");
    expect(await readDelivery(coordinated, state)).toBe("delivered");
    await begin(coordinated, "posted");
    const read = listRequestsOf(coordinated, "posted").at(-1);
    expect(read && countMessagesWith(read, "The plan posted has ended")).toBe(1);

    // The first telling was never answered. The host of today asks that turn again, once.
    await waitFor(() => listAnnounces(plain, "posted").length > 0, {
      what: "the second telling",
      timeoutMs: WAIT_MS_MAX,
    });
  },
};

/** P16: people were asked, and answer after the restart. */
export function createLostApprovals(): RestartStory {
  let approvalId: unknown;
  return {
    begin: async ({ plain, coordinated }) => {
      approvalId = await requestApproval(plain, "approval");
      const steps = [stepOf("approved-step", [], { confidence: 0.3 })];
      await runPlan(coordinated, planOf("approval", steps));
      await coordinated.until(ownerOf("approval"), ({ escalations }) => escalations.size > 0);
    },
    end: async ({ plain, coordinated }) => {
      const state = await coordinated.until(ownerOf("approval"), () => true);
      const questionId = `${state.coordinationId}:${state.escalations.first()?.escalationId}`;
      await coordinated.gateway.call("coordination.answer", { questionId, answer: "approve" });
      expect(await waitForEnd(coordinated, "approval")).toMatchObject({ status: "success" });
      expect(countWorkers(coordinated, "approved-step")).toBe(1);

      const params = { id: approvalId, decision: "allow-once" };
      await expect(plain.gateway.call("plugin.approval.resolve", params)).rejects.toThrow(/approval/iu);
      const answer = await plain.gateway.call("writing-tools.done");
      expect((answer["done"] as Json[]).filter(({ tool }) => tool === "notify")).toEqual([]);
    },
  };
}

/** A person chats with a session, whose call has to be approved by somebody who can be asked. */
async function requestApproval({ gateway }: Stage, label: string): Promise<unknown> {
  const requests: Json[] = [];
  const client = connectOnUse(gateway.port, gateway.token, {
    caps: ["approvals"],
    hear: (event, payload) => {
      if (event === "plugin.approval.requested") requests.push(payload);
    },
  });
  await client.request({ method: "health", params: {}, timeoutMs: 10_000 });
  const message = taskOf(label, [call({ name: "notify", args: { to: "people" } })]);
  await gateway.call("chat.send", { sessionKey: ownerOf(label), message, idempotencyKey: randomUUID() });
  const request = await waitFor(() => requests[0], { what: "the approval", timeoutMs: WAIT_MS_MAX });
  client.close();
  return request["id"];
}

/** P13: who waits for the work of others holds the place that they need. Every place is taken so. */
export async function tellDeadlock({ plain, coordinated }: Pair): Promise<void> {
  const places = [1, 2];
  const innerOf = (place: number): readonly Turn[] => [gate({ opens: [`inner ${place} began`] })];
  const spawn = places.map((place) =>
    childOf(
      `outer-${place}`,
      { spawn: [childOf(`inner-${place}`, ...innerOf(place))] },
      gate({ opens: [`outer ${place} waits`], awaits: [`inner ${place} began`] }),
    ),
  );
  await begin(plain, "deep", { spawn });
  for (const place of places) await openGate(plain, `outer ${place} waits`);

  const steps = places.map((place) => {
    const plan = planOf(`deep-${place}`, [stepOf(`inner-${place}`, innerOf(place))]);
    return stepOf(`outer-${place}`, [call({ name: "coordination_plan", args: { plan } })]);
  });
  await runPlan(coordinated, planOf("deep", steps));
  expect(await waitForEnd(coordinated, "deep")).toMatchObject({ status: "success" });
  expect(places.map((place) => countWorkers(coordinated, `inner-${place}`))).toEqual([1, 1]);

  expect(places.map((place) => countWorkers(plain, `inner-${place}`))).toEqual([0, 0]);
  for (const place of places) await open(plain, `inner ${place} began`);
}
