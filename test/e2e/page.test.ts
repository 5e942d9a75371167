/** The operator's page in the real gateway: its tab, its route, a link from the command line, live changes, an answer. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { QuestionDetail, QuestionsList } from "../../src/plugins/page/contract/questions.ts";
import type { CoordinationDetail, RunsPage, StepResult } from "../../src/plugins/page/contract/runs.ts";
import type { HealthReport } from "../../src/plugins/page/contract/health.ts";
import { createPageClient, readLive, sendRequest, signIn, type PageClient } from "../openwop/page-scene.ts";
import { connectOnUse, type Json } from "../support/gateway-client.ts";
import { parsePrometheusText, readCounted } from "../support/prometheus-text.ts";
import { waitFor } from "../support/wait-for.ts";
import {
  openGateStage,
  ownerOf,
  spawnFrom,
  waitForQuestion,
  WAIT_MS_MAX,
  type GateStage,
} from "./gates-stage.ts";
import { hasEnded } from "./stage.ts";

const SECRET = "raw-result-of-the-page-7f3a";

let stage: GateStage;
let baseUrl: string;
let client: PageClient;

beforeAll(async () => {
  stage = await openGateStage({ metrics: { enabled: true } });
  const { code, stdout, stderr } = await stage.gateway.openclaw(["coordination", "page", "--json"]);
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  const { address } = JSON.parse(stdout) as { readonly address: string };
  const [page = "", link = ""] = address.split("/#link=");
  baseUrl = page;
  client = createPageClient(baseUrl, await signIn(baseUrl, link));
});

afterAll(() => stage.close());

describe("the page of the gateway", () => {
  it("is announced as a tab whose document only operators of the gateway get", async () => {
    const { port, token } = stage.gateway;
    expect(await readTabs(port, token)).toContainEqual(
      expect.objectContaining({ pluginId: "coordination", path: "/coordination/page-tab", group: "control" }),
    );
    const address = `http://127.0.0.1:${port}/coordination/page-tab`;
    expect((await fetch(address)).status).toBe(401);
    const shown = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
    expect(shown.headers.get("cache-control")).toBe("no-store");
    expect([200, 503]).toContain(shown.status);
  });

  it("lets the operator of the command line read, write and approve", () => {
    expect(client.signedIn.rights).toEqual({ read: true, approve: true, write: true, results: true });
    expect(client.signedIn.product.home).toBe("gateway");
  });

  it("answers nobody who has not signed in, and no other name", async () => {
    const refused = await sendRequest(baseUrl, { path: `${new URL(baseUrl).pathname}/api/runs` });
    expect([refused.status, refused.body]).toEqual([401, expect.stringContaining("unauthenticated")]);
    const rebound = await sendRequest(baseUrl, {
      path: `${new URL(baseUrl).pathname}/api/runs`,
      headers: { host: "evil.example", authorization: `Bearer ${client.signedIn.token}` },
    });
    expect(rebound.status).toBe(403);
  });

  it("shows a held result as it happens, and lets it through when it is approved there", async () => {
    const stop = new AbortController();
    const changes = collectTypes(stop.signal);
    await spawnFrom(stage, "page", [{ say: `It is ${SECRET}.\n{"confidence": 0.4}` }]);
    const { questionId, state } = await waitForQuestion(stage, "page");
    const { runs } = await client.get<RunsPage>("runs?text=page&state=running");
    expect(runs).toContainEqual(expect.objectContaining({ id: state.coordinationId, questions: 1 }));

    const { questions } = await client.get<QuestionsList>("questions");
    expect(questions.map((each) => each.questionId)).toEqual([questionId]);
    const shown = await waitFor(
      async () => {
        const question = await client.get<QuestionDetail>(`questions/${questionId}`);
        return question.heldText === undefined ? undefined : question;
      },
      { what: "the held text", timeoutMs: 20_000, everyMs: 200 },
    );
    expect(shown.heldText).toContain(SECRET);
    const stale = { revision: "0".repeat(32), answer: "approve" };
    expect(await client.ask(`questions/${questionId}/answer`, { body: stale })).toMatchObject({
      status: 409,
      body: { error: "question_changed" },
    });
    const body = { revision: shown.revision, answer: "approve" };
    const answered = await client.ask(`questions/${questionId}/answer`, { body });
    expect([answered.status, answered.body["happened"]]).toEqual([200, expect.stringMatching(/\w/u)]);

    await stage.until(ownerOf("page"), hasEnded, WAIT_MS_MAX);
    const detail = await client.get<CoordinationDetail>(`runs/${state.coordinationId}`);
    expect(detail.view.status).toBe("success");
    const stepId = detail.view.steps[0]?.stepId ?? "";
    const again = await client.ask(`questions/${questionId}/answer`, { body });
    expect([again.status, again.body["error"]]).toEqual([409, "refused"]);
    const result = await client.ask(`runs/${state.coordinationId}/steps/${stepId}/result`);
    expect([200, 404]).toContain(result.status);
    if (result.status === 200) expect((result.body as unknown as StepResult).isHeld).toBe(false);
    stop.abort();
    const types = await changes;
    for (const type of ["coordination.created", "result.held", "coordination.escalated", "step.completed"])
      expect(types).toContain(type);
  });

  it("has metrics beside it for whoever the gateway lets in, which count what the page showed", async () => {
    const { port, token } = stage.gateway;
    const address = `http://127.0.0.1:${port}/coordination/metrics`;
    expect((await fetch(address)).status).toBe(401);
    const counted = await waitFor(
      async () => {
        const answer = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
        expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
        const read = readCounted(parsePrometheusText(await answer.text()));
        return read['coordination_held_results_ruled_total{ruling="approved"}'] === 1 ? read : undefined;
      },
      { what: "the approved result", timeoutMs: 20_000, everyMs: 500 },
    );
    expect(counted).toMatchObject({
      'coordination_steps_total{lane="data",outcome="completed"}': 1,
      'coordination_questions_closed_total{resolution="approved"}': 1,
    });
    expect(counted['coordination_ledger_append_seconds_count{outcome="written"}']).toBeGreaterThan(0);
  });

  it("tells the load of the lanes", async () => {
    const { lanes, contents } = await client.get<HealthReport>("health");
    expect(Object.keys(lanes ?? {}).toSorted()).toEqual(["control", "data", "escalation"]);
    expect(contents.coordinations).toBeGreaterThan(0);
  });

  it("refuses what the gateway refuses, with the reason", async () => {
    expect(await client.ask("runs/nobody/cancel", { body: {} })).toMatchObject({ status: 404 });
    expect(await client.ask("claims/999/release", { body: {} })).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining("no claim 999") as string },
    });
  });
});

async function collectTypes(signal: AbortSignal): Promise<Set<string>> {
  const types = new Set<string>();
  try {
    for await (const { event, data } of readLive(baseUrl, client, { signal }))
      if (event === "change") for (const type of data["types"] as string[]) types.add(type);
  } catch {
    // It was aborted.
  }
  return types;
}

/** Reads the tabs that the gateway tells a dashboard of when it connects. */
async function readTabs(port: number, token: string): Promise<unknown> {
  let tabs: unknown;
  const hear = (event: string, payload: Json): void => {
    if (event === "hello") tabs = payload["controlUiTabs"];
  };
  const dashboard = connectOnUse(port, token, { caps: [], hear });
  await dashboard.request({ method: "coordination.status", params: {}, timeoutMs: 15_000 });
  dashboard.close();
  return tabs;
}
