/** Owns: what the MCP server over stdio tells of the gateway's coordinations: how they are, when they end, and what they ask. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { plan, step } from "../core/plan-scene.ts";
import { MCP_BOUNDS } from "../../src/plugins/mcp/mcp-bounds.ts";
import { PLAN_RUN_EXAMPLE } from "../../src/plugins/mcp/plan-tool.ts";
import { forge } from "../cli/forge.ts";
import { askMcp, openWatchedGateway, type WatchedGateway } from "../attacks/named/watched-scene.ts";

let gateway: WatchedGateway;
let coordinationId: string;
beforeEach(async () => {
  gateway = await openWatchedGateway();
  coordinationId = await gateway.coordinationId();
});
afterEach(() => gateway[Symbol.asyncDispose]());

interface McpToolResult {
  readonly text: string;
  readonly isError: boolean;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Calls a tool, and does `once` when the gateway has been asked for the first time. */
async function callTool(name: string, args: object, once?: () => Promise<unknown>): Promise<McpToolResult> {
  let isAsked = false;
  const [answer] = await gateway.askMcp(
    [{ method: "tools/call", params: { name, arguments: args } }],
    async () => {
      const isFirst = !isAsked;
      isAsked = true;
      if (isFirst) await once?.();
    },
  );
  return readCalled(answer);
}

/** Calls `questions` where a function answers in the gateway's place. */
async function askForQuestions(
  askGateway: Parameters<typeof askMcp>[2],
  args: object,
): Promise<McpToolResult> {
  const params = { name: "questions", arguments: args };
  const [answer] = await askMcp(gateway.plugin.ledgerPath, [{ method: "tools/call", params }], askGateway);
  return readCalled(answer);
}

function readCalled(answer = ""): McpToolResult {
  const { result } = JSON.parse(answer) as {
    readonly result: {
      readonly content: readonly { readonly text: string }[];
      readonly structuredContent?: McpToolResult["data"];
      readonly isError?: boolean;
    };
  };
  const { content, structuredContent = {}, isError = false } = result;
  return { text: content[0]?.text ?? "", isError, data: structuredContent };
}

const WAITING = { waitSeconds: 30 };
const QUESTION = { question: "May I dig?", options: ["dig", "rest"], otherwise: "rest", waitMs: 0 };

describe("the status of a coordination", () => {
  it("is told in words", async () => {
    const { text, isError, data } = await callTool("status", { runId: coordinationId });
    expect(text).toContain(`Coordination ${coordinationId} is running.`);
    expect(isError).toBe(false);
    expect(data).toMatchObject({ coordination: { coordinationId, status: "running" } });
  });

  it("is waited for until the coordination has ended", async () => {
    const called = await callTool("status", { runId: coordinationId, ...WAITING }, () => gateway.endChild());
    expect(called.text).toContain(`Coordination ${coordinationId} is success.`);
    expect(called.data).toMatchObject({ coordination: { status: "success" } });
  });

  it("is waited for until the coordination asks people, and has the question", async () => {
    const called = await callTool("status", { runId: coordinationId, ...WAITING }, () =>
      gateway.callTool("coordination_escalate", QUESTION),
    );
    expect(called.text).toContain(
      `Coordination ${coordinationId} is running and waits for people: 1 question.`,
    );
    expect(called.data).toMatchObject({
      coordination: { status: "running" },
      questions: [{ questionId: `${coordinationId}:escalation-1` }],
    });
  });

  it("does not wait for people where an agent has asked its parent", async () => {
    await gateway.callTool("coordination_escalate", { ...QUESTION, to: "parent" });
    const status = await callTool("status", { runId: coordinationId });
    expect(status.text).toContain(`Coordination ${coordinationId} is running.`);
    expect(status.data).not.toHaveProperty("questions");
    const questions = await callTool("questions", {});
    expect(questions.text).toContain("Nobody is asked anything.");
  });

  it.each(["GATEWAY_UNREACHABLE", "COORDINATION_OFF"] as const)(
    "is waited for while the plugin is loaded again: %s",
    async (code) => {
      const called = await callTool("status", { runId: coordinationId, ...WAITING }, async () => {
        await gateway.endChild();
        throw new CoordinationError(code, "the gateway restarts");
      });
      expect(called.text).toContain(`Coordination ${coordinationId} is success.`);
    },
  );

  it("fails where nobody waits for a gateway that is away", async () => {
    const called = await callTool("status", { runId: coordinationId }, () =>
      Promise.reject(new CoordinationError("GATEWAY_UNREACHABLE", "the gateway restarts")),
    );
    expect(called).toMatchObject({ isError: true });
    expect(called.text).toContain("the gateway restarts (GATEWAY_UNREACHABLE)");
  });

  it("is told when the time to wait is over", async () => {
    const { text } = await callTool("status", { runId: coordinationId, waitSeconds: 0.1 });
    expect(text).toContain("is running.");
  });
});

describe("the questions of coordinations", () => {
  it("are said to be more than are listed", async () => {
    for (const question of ["May I dig?", "May I rest?", "May I go?"])
      await gateway.callTool("coordination_escalate", { question, waitMs: 0 });
    const first = await callTool("questions", { limit: 2 });
    expect(first.text).toContain("2 questions for people. Coordinations ask more");
    expect(first.data).toMatchObject({ isMoreOfCoordinations: true });
    expect(first.data["ofCoordinations"]).toHaveLength(2);
    const all = await callTool("questions", { limit: 3 });
    expect(all.data["ofCoordinations"]).toHaveLength(3);
    expect(all.text).not.toContain("more");
  });

  it("are not said to be none where the gateway cannot be asked", async () => {
    const { text, data, isError } = await callTool("questions", {}, () =>
      Promise.reject(new CoordinationError("GATEWAY_UNREACHABLE", "the gateway is stopped")),
    );
    expect(text).toMatch(
      /^What coordinations ask cannot be told: the gateway is stopped \(GATEWAY_UNREACHABLE\)\. \S/u,
    );
    expect(isError).toBe(false);
    expect(data).toMatchObject({ questions: [], gateway: expect.stringContaining("is stopped") as string });
  });

  it("are all listed where they are too long together, some without what they ask", async () => {
    const askGateway = (method: string): Promise<Readonly<Record<string, unknown>>> =>
      Promise.resolve({
        ...(method === "coordination.status" && {
          coordination: { coordinationId: "co-1", status: "running" },
        }),
        questions: Array.from({ length: 40 }, (_, at) => ({
          questionId: `co-1:escalation-${at}`,
          asked: { question: "?".repeat(15_000) },
        })),
      });
    const { text, data } = await askForQuestions(askGateway, { limit: MCP_BOUNDS.runsMax });
    expect(data["ofCoordinations"]).toHaveLength(40);
    expect(text).toContain("questions are listed without texts that are too long here");
    expect(text).toContain("the operator's page has those of coordinations.");
    const params = { name: "status", arguments: { runId: "co-1" } };
    const call = [{ method: "tools/call", params }];
    const [answer] = await askMcp(gateway.plugin.ledgerPath, call, askGateway);
    const status = readCalled(answer);
    expect(status.data["questions"]).toHaveLength(40);
    expect(status.text).toContain("waits for people: 40 questions.");
    expect(JSON.stringify(status.data).length).toBeLessThan(MCP_BOUNDS.resultCharsMax);
  });

  const ELSEWHERE =
    "Coordinations ask more than can be listed here: the operator's page and `openclaw coordination questions` list them.";

  it.each([
    ["by a larger `limit`, where this is the largest", {}, MCP_BOUNDS.runsMax + 1, MCP_BOUNDS.runsMax],
    ["at all, where agents ask their parents as much as the gateway lists", { askedOf: "agent:a:b" }, 500, 0],
  ])("are not said to be listed %s", async (_, question, count, shown) => {
    const askGateway = () => Promise.resolve({ questions: Array.from({ length: count }, () => question) });
    const called = await askForQuestions(askGateway, { limit: MCP_BOUNDS.runsMax });
    expect(called.text.split("\n")[0]).toBe(`${shown} questions for people. ${ELSEWHERE}`);
    expect(called.data).toMatchObject({ isMoreOfCoordinations: true });
  });

  it("are not said to be none where a log cannot be read", async () => {
    await gateway.callTool("coordination_escalate", QUESTION);
    await gateway.plugin.stop();
    forge(
      gateway.plugin.ledgerPath,
      "drop trigger event_no_update; update event set payload = '{}' where sequence = 1",
    );
    await gateway.plugin.restart();
    const { text, data } = await callTool("questions", {});
    expect(text).toContain("What 1 coordination may ask cannot be read");
    expect(text).not.toContain("Nobody is asked anything");
    expect(data).toMatchObject({ unreadable: 1 });
  });
});

describe("a plan that is submitted", () => {
  it("is refused with everything that is wrong with it", async () => {
    const called = await callTool("plan_run", { plan: { objective: "test", steps: [{ stepId: "dig" }] } });
    expect(called.isError).toBe(true);
    for (const path of ["coordinationId", "ownerSession", "failurePolicy", "conflictPolicy"]) {
      expect(called.text).toContain(`"path": "${path}"`);
      expect(called.data["problems"]).toContainEqual(expect.objectContaining({ path }));
    }
  });

  it("may have the form of the example in the tool's description", async () => {
    const [listed = ""] = await gateway.askMcp([{ method: "tools/list", params: {} }]);
    expect(listed).toContain(JSON.stringify(JSON.stringify(PLAN_RUN_EXAMPLE)).slice(1, -1));
    const called = await callTool("plan_run", { plan: PLAN_RUN_EXAMPLE });
    expect(called.text).toContain("The plan compare-databases-1 was begun: 2 steps.");
  });

  it("is said to be begun, and the second time that it is not run twice", async () => {
    const begun = await callTool("plan_run", { plan: plan([step("dig")]) });
    expect(begun.text).toContain("The plan co-1 was begun: 1 step.");
    const again = await callTool("plan_run", { plan: plan([step("dig")]) });
    expect(again.text).toContain("The plan co-1 was submitted before and is not run twice.");
  });
});
