/** Owns: which answers of a request with an idempotency key are kept, where the ledger fails or the run changes. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { createEdge, createNode, createWorkflow } from "../support/workflow-definitions.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createMemoryWorkflowLedger } from "../support/memory-workflow-store.ts";
import type { SceneOptions } from "../support/workflow-scene.ts";
import { BEARER, createFakeFace, createPost } from "./http-fake-host.ts";
import { postKeyed, serveKeyed, type KeyedScene } from "./keyed-scene.ts";

/** Fails the first append after it has reached the ledger. */
function failOnce(): NonNullable<SceneOptions["faults"]> {
  let hasFailed = false;
  return {
    after: () => {
      if (hasFailed) return;
      hasFailed = true;
      throw new CoordinationError("LEDGER_UNAVAILABLE", "the answer was lost");
    },
  };
}

describe("a keyed request whose outcome is not known", () => {
  it("makes no second run when it is sent again", async () => {
    const served = serveKeyed({ faults: failOnce() });
    const { scene } = served;
    expect((await postKeyed(served, "/v1/runs", { workflowId: "noop" })).status).toBe(503);
    await scene.settle();
    const again = await postKeyed(served, "/v1/runs", { workflowId: "noop" });
    expect(again.status).toBe(201);
    const { runId } = (await again.json()) as { readonly runId: string };
    await scene.settle();
    expect([...scene.ledger.runs.keys()]).toEqual([runId]);
    expect(scene.types(runId)).toContain("run.completed");
  });

  it("makes no second fork when it is sent again", async () => {
    const faults: NonNullable<SceneOptions["faults"]> = {};
    const served = serveKeyed({ faults });
    const { scene } = served;
    const created = await served.face.app.request("/v1/runs", createPost({ workflowId: "noop" }));
    const { runId } = (await created.json()) as { readonly runId: string };
    await scene.settle();
    Object.assign(faults, failOnce());
    const fork = { mode: "branch", fromSeq: 1 };
    expect((await postKeyed(served, `/v1/runs/${runId}:fork`, fork)).status).toBe(503);
    await scene.settle();
    expect((await postKeyed(served, `/v1/runs/${runId}:fork`, fork)).status).toBe(201);
    await scene.settle();
    expect(scene.ledger.runs.size).toBe(2);
  });
});

describe("a keyed request whose answer cannot be kept", () => {
  /** A host whose first call of a method of its request log fails, before that does anything. */
  function serveFailing(method: "finish" | "release"): KeyedScene {
    const { scene } = serveKeyed();
    const { requests } = scene.host;
    let hasFailed = false;
    const failing: typeof requests = {
      ...requests,
      [method]: async (...args: [never, never]) => {
        if (hasFailed) return requests[method](...args);
        hasFailed = true;
        throw new CoordinationError("LEDGER_BUSY", "locked");
      },
    };
    const host = { ...scene.host, requests: failing };
    return { scene, face: createFakeFace({ host, clock: scene.clock }) };
  }

  it("is not called undone, and finds its run when it is sent again at once", async () => {
    const served = serveFailing("finish");
    const first = await postKeyed(served, "/v1/runs", { workflowId: "noop" });
    expect(first.status).toBe(503);
    expect(await first.json()).toMatchObject({
      error: "unavailable",
      message: expect.stringMatching(
        /^It is not known whether the request was done: .* Repeat it with the same key\.$/,
      ) as unknown,
    });
    const again = await postKeyed(served, "/v1/runs", { workflowId: "noop" });
    expect(again.status).toBe(201);
    const { runId } = (await again.json()) as { readonly runId: string };
    await served.scene.settle();
    expect([...served.scene.ledger.runs.keys()]).toEqual([runId]);
  });

  it("fails with the first failure where the ledger stays unavailable", async () => {
    const { scene } = serveKeyed();
    const failWith = (code: "LEDGER_UNAVAILABLE" | "LEDGER_FULL") => () =>
      Promise.reject(new CoordinationError(code, "the disk"));
    const requests = {
      ...scene.host.requests,
      finish: failWith("LEDGER_FULL"),
      lapse: failWith("LEDGER_UNAVAILABLE"),
    };
    const face = createFakeFace({ host: { ...scene.host, requests }, clock: scene.clock });
    const first = await postKeyed({ face }, "/v1/runs", { workflowId: "noop" });
    expect(first.status).toBe(503);
    expect(face.logged).toMatchObject([{ level: "error", fields: { code: "LEDGER_FULL" } }]);
  });

  it("may be sent again at once after a refusal, too", async () => {
    const served = serveFailing("release");
    expect((await postKeyed(served, "/v1/runs", { workflowId: "none" })).status).toBe(503);
    expect((await postKeyed(served, "/v1/runs", { workflowId: "none" })).status).toBe(400);
  });

  it("says without a key that it may have been done, and of reading that it was not", async () => {
    const face = createFakeFace();
    face.host.put("run-1");
    face.host.fail(new CoordinationError("LEDGER_BUSY", "locked"));
    const readMessage = async (response: Response): Promise<string> =>
      ((await response.json()) as { readonly message: string }).message;
    const created = await face.app.request("/v1/runs", createPost({ workflowId: "conformance-noop" }));
    expect(await readMessage(created)).toMatch(/^It is not known whether .* Look before you repeat it\.$/);
    const shown = await face.app.request("/v1/runs/run-1", { headers: BEARER });
    expect(await readMessage(shown)).toMatch(/^The request was not done: .* Try again\.$/);
  });
});

describe("a keyed request to cancel several runs, one of which fails", () => {
  it("cancels that one, too, when it is sent again, and keeps its answer then", async () => {
    const { scene } = serveKeyed();
    const failing = new Set<string>();
    const cancel: typeof scene.host.cancel = async (caller, runId, request) => {
      if (failing.delete(runId)) throw new CoordinationError("LEDGER_UNAVAILABLE", "the answer was lost");
      return await scene.host.cancel(caller, runId, request);
    };
    const face = createFakeFace({ host: { ...scene.host, cancel }, clock: scene.clock });
    const createRun = async (): Promise<string> => {
      const created = await face.app.request("/v1/runs", createPost({ workflowId: "later" }));
      return ((await created.json()) as { readonly runId: string }).runId;
    };
    const runIds = [await createRun(), await createRun()];
    await scene.settle();
    failing.add(runIds[1] ?? "");
    const cancelAll = async (): Promise<[unknown, unknown]> => {
      const response = await postKeyed({ face }, "/v1/runs:bulk-cancel", { runIds });
      return [response.headers.get("openwop-idempotent-replay"), await response.json()];
    };
    const [, first] = await cancelAll();
    expect(first).toMatchObject({
      results: [
        { runId: runIds[0], ok: true, status: "cancelled" },
        {
          runId: runIds[1],
          ok: false,
          error: {
            code: "unavailable",
            message: expect.stringMatching(
              /^It is not known whether .* Repeat it with the same key\.$/,
            ) as unknown,
          },
        },
      ],
    });
    for (const isReplay of ["false", "true"]) {
      const results = runIds.map((runId) => ({ runId, ok: true, status: "cancelled" }));
      expect(await cancelAll()).toEqual([isReplay, { results }]);
    }
  });
});

describe("a keyed pause or resumption whose outcome is not known", () => {
  interface DelayedRun extends KeyedScene {
    readonly runId: string;
    readonly faults: NonNullable<SceneOptions["faults"]>;
  }

  /** A run whose node waits for its time. */
  async function createWaitingRun(): Promise<DelayedRun> {
    const faults: NonNullable<SceneOptions["faults"]> = {};
    const served = serveKeyed({ faults });
    const created = await served.face.app.request("/v1/runs", createPost({ workflowId: "later" }));
    const { runId } = (await created.json()) as { readonly runId: string };
    await served.scene.settle();
    return { ...served, faults, runId };
  }

  it.each([
    [{}, "coordination.pause_requested"],
    [{ drainPolicy: "immediate" }, "run.paused"],
  ])("is the same pause when it is sent again: %j", async (body, recorded) => {
    const waiting = await createWaitingRun();
    const { faults, runId, scene } = waiting;
    const pause = (): Promise<Response> => postKeyed(waiting, `/v1/runs/${runId}:pause`, body);
    Object.assign(faults, failOnce());
    expect((await pause()).status).toBe(503);
    for (const isReplay of ["false", "true"]) {
      const again = await pause();
      expect([again.status, again.headers.get("openwop-idempotent-replay")]).toEqual([202, isReplay]);
      expect(await again.json()).toMatchObject({ runId, status: "paused" });
    }
    await scene.settle();
    expect(scene.types(runId).filter((type) => type.includes("pause"))).toEqual([recorded]);
  });

  it("is the same resumption when it is sent again", async () => {
    const waiting = await createWaitingRun();
    const { face, faults, runId, scene } = waiting;
    const path = `/v1/runs/${runId}`;
    await face.app.request(`${path}:pause`, createPost({ drainPolicy: "immediate" }));
    await scene.settle();
    Object.assign(faults, failOnce());
    expect((await postKeyed(waiting, `${path}:resume`, {})).status).toBe(503);
    await scene.settle();
    const again = await postKeyed(waiting, `${path}:resume`, {});
    expect(again.status).toBe(202);
    expect(await again.json()).toMatchObject({ runId, status: "running" });
    expect(scene.types(runId).filter((type) => type === "run.resumed")).toHaveLength(1);
  });

  it("is refused when it is sent again and the run has ended", async () => {
    const waiting = await createWaitingRun();
    const { face, faults, runId, scene } = waiting;
    faults.before = () => {
      throw new CoordinationError("LEDGER_BUSY", "locked");
    };
    const pause = (): Promise<Response> => postKeyed(waiting, `/v1/runs/${runId}:pause`, {});
    expect((await pause()).status).toBe(503);
    delete faults.before;
    await face.app.request(`/v1/runs/${runId}/cancel`, createPost({}));
    await scene.settle();
    expect((await pause()).status).toBe(409);
  });
});

describe("a keyed resumption of a run that cannot be paused", () => {
  it("is refused when it is sent again, although that run goes on", async () => {
    const { scene } = serveKeyed();
    const details = { runStatus: "running", canPause: false };
    let isLocked = true;
    const host: typeof scene.host = {
      ...scene.host,
      resume: () => {
        if (isLocked) return Promise.reject(new CoordinationError("LEDGER_BUSY", "locked"));
        return Promise.resolve({ kind: "refused", code: "run_not_paused", message: "never", details });
      },
    };
    const face = createFakeFace({ host, clock: scene.clock });
    const created = await face.app.request("/v1/runs", createPost({ workflowId: "later" }));
    const { runId } = (await created.json()) as { readonly runId: string };
    expect((await postKeyed({ face }, `/v1/runs/${runId}:resume`, {})).status).toBe(503);
    isLocked = false;
    expect((await postKeyed({ face }, `/v1/runs/${runId}:resume`, {})).status).toBe(409);
  });
});

describe("a keyed answer whose outcome is not known", () => {
  const BOB = { tenant: "alpha", principal: "bob" };
  const ACCEPT = { action: "accept" };
  const definitions = [1, 2].map((requiredApprovals) =>
    createWorkflow(`needs-${requiredApprovals}`, {
      nodes: [createNode("gate", "core.approvalGate", { requiredApprovals })],
    }),
  );

  interface AskingRun extends KeyedScene {
    readonly runId: string;
    readonly faults: NonNullable<SceneOptions["faults"]>;
    readonly accept: () => Promise<Response>;
  }

  /** A run that waits for an answer. */
  async function ask(workflowId = "needs-1", options: SceneOptions = {}): Promise<AskingRun> {
    const faults: NonNullable<SceneOptions["faults"]> = {};
    const served = serveKeyed({ faults, definitions, ...options });
    const created = await served.face.app.request("/v1/runs", createPost({ workflowId }));
    const { runId } = (await created.json()) as { readonly runId: string };
    await served.scene.settle();
    const path = `/v1/runs/${runId}/interrupts/gate`;
    return { ...served, faults, runId, accept: () => postKeyed(served, path, { resumeValue: ACCEPT }) };
  }

  it.each(["needs-1", "needs-2"])(
    "is told what the first one came to, of a run that %s",
    async (workflowId) => {
      const { scene, face, faults, runId, accept } = await ask(workflowId);
      if (workflowId === "needs-2") await scene.answer(runId, "gate", ACCEPT, BOB);
      Object.assign(faults, failOnce());
      expect((await accept()).status).toBe(503);
      await scene.settle();
      for (const isReplay of ["false", "true"]) {
        const again = await accept();
        expect([again.status, again.headers.get("openwop-idempotent-replay")]).toEqual([200, isReplay]);
        const body = { runId, nodeId: "gate", interruptId: "gate~1", status: "completed" };
        expect(await again.json()).toEqual(body);
      }
      expect(scene.payloads(runId, "interrupt.resolved")).toHaveLength(1);
      const other = createPost({ resumeValue: ACCEPT }, { "idempotency-key": "k2" });
      expect((await face.app.request(`/v1/runs/${runId}/interrupts/gate`, other)).status).toBe(409);
    },
  );

  it("is not taken for the answer to the next question of its node", async () => {
    const nodes = [
      createNode("first", "core.approvalGate"),
      createNode("gate", "core.interrupt", { kind: "approval" }),
      createNode("revise"),
    ];
    const edges = [createEdge("gate>revise", { triggerRule: "any_failed" }), createEdge("revise>gate")];
    const loop = createWorkflow("asks-again", { nodes, edges });
    const asking = await ask("asks-again", { definitions: [loop] });
    const { scene, faults, runId } = asking;
    const reject = () =>
      postKeyed(asking, `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "reject" } });
    Object.assign(faults, failOnce());
    expect((await reject()).status).toBe(503);
    await scene.settle();
    expect(scene.payloads(runId, "node.suspended").map(({ interruptId }) => interruptId)).toContain("gate~2");
    const again = await reject();
    expect(again.status).toBe(200);
    expect(await again.json()).toMatchObject({ nodeId: "gate", interruptId: "gate~1" });
    expect(scene.payloads(runId, "interrupt.resolved")).toHaveLength(1);
  });

  it("is told so by the next process, where the first one died before it could keep its answer", async () => {
    const shared = { ledger: createMemoryWorkflowLedger(), clock: createFakeClock() };
    const { scene, faults, runId, accept } = await ask("needs-1", shared);
    faults.after = () => scene.die();
    expect((await accept()).status).toBe(503);
    const next = serveKeyed({ definitions, ...shared, pid: 2 });
    const path = `/v1/runs/${runId}/interrupts/gate`;
    const retry = () => postKeyed(next, path, { resumeValue: ACCEPT });
    expect(await (await retry()).json()).toMatchObject({ error: "idempotency_in_flight" });
    await next.scene.clock.advance(60_000);
    expect((await retry()).status).toBe(200);
    expect(next.scene.payloads(runId, "interrupt.resolved")).toHaveLength(1);
  });

  it.each<[title: string, settle: (asking: AskingRun) => Promise<unknown>]>([
    ["the same answer of somebody else", ({ scene, runId }) => scene.answer(runId, "gate", ACCEPT, BOB)],
    [
      "another answer of the same principal",
      async ({ face, runId }) => {
        const rejecting = createPost({ resumeValue: { action: "reject" } });
        return face.app.request(`/v1/runs/${runId}/interrupts/gate`, rejecting);
      },
    ],
  ])("is refused where %s settled the question", async (_title, settle) => {
    const asking = await ask();
    const { scene, faults, runId, accept } = asking;
    faults.before = () => {
      throw new CoordinationError("LEDGER_BUSY", "locked");
    };
    expect((await accept()).status).toBe(503);
    delete faults.before;
    await settle(asking);
    expect(scene.payloads(runId, "interrupt.resolved")).toHaveLength(1);
    expect((await accept()).status).toBe(409);
  });
});

describe("a keyed request that came too early", () => {
  it("resumes a run that is paused by now", async () => {
    const face = createFakeFace();
    const run = face.host.put("run-1");
    expect((await postKeyed({ face }, "/v1/runs/run-1:resume", {})).status).toBe(409);
    run.status = "paused";
    expect((await postKeyed({ face }, "/v1/runs/run-1:resume", {})).status).toBe(202);
  });

  it("pauses a run that runs by now", async () => {
    const face = createFakeFace();
    const run = face.host.put("run-1");
    run.status = "paused";
    expect((await postKeyed({ face }, "/v1/runs/run-1:pause", {})).status).toBe(409);
    run.status = "running";
    expect((await postKeyed({ face }, "/v1/runs/run-1:pause", {})).status).toBe(202);
  });

  it("answers a question that is asked by now", async () => {
    const served = serveKeyed();
    const { scene, face } = served;
    const created = await face.app.request("/v1/runs", createPost({ workflowId: "later" }));
    const { runId } = (await created.json()) as { readonly runId: string };
    await scene.settle();
    const path = `/v1/runs/${runId}/interrupts/gate`;
    const body = { resumeValue: { action: "accept" } };
    expect((await postKeyed(served, path, body)).status).toBe(404);
    await scene.clock.advance(1_000);
    await scene.settle();
    expect((await postKeyed(served, path, body)).status).toBe(200);
    await scene.settle();
    expect(scene.types(runId)).toContain("run.completed");
  });
});
