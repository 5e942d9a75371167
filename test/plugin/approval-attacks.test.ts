/** Owns: questions that deceive in the host's own approvals (ASI09). They are here because each file of plugins has its own modules. */
import { beforeEach, expect, it, vi } from "vitest";
import { createApprovalChannel } from "../../src/plugins/openclaw/host/host-approval.ts";
import { noticeOf, NOW_MS } from "./human-notices.ts";
import { logLines } from "./question-stage.ts";

/** The host's side of an approval, which is no code of ours: it keeps what people are shown. */
const { shown } = vi.hoisted(() => ({ shown: [] as Record<string, unknown>[] }));
vi.mock("../../src/plugins/openclaw/host/sdk.ts", () => ({
  loadHarness: () =>
    Promise.resolve({
      callGatewayTool: (_: string, __: object, params: Record<string, unknown>) => {
        shown.push(params);
        return Promise.resolve({ id: "approval-1", status: "accepted" });
      },
    }),
}));

beforeEach(() => {
  shown.length = 0;
});

const createChannel = () =>
  createApprovalChannel({
    pluginId: "coordination",
    logger: logLines().logger,
    now: () => NOW_MS,
    take: () => Promise.resolve(undefined),
  });

it("ASI09-5 a question whose end, which is what matters, is too long for the approval of the host", async () => {
  const text = `May I tidy up? ${"I will be careful. ".repeat(60)}Then I delete the backups.`;
  await createChannel().notify(noticeOf({ text }));
  const [{ description }] = shown as [{ description: string }];
  expect(description).not.toContain("backups");
  expect(description).toMatch(/cut here/u);
  await createChannel().notify(noticeOf({ text: "May I tidy up?" }));
  expect(JSON.stringify(shown.filter((request) => "description" in request).at(-1))).not.toMatch(/cut here/u);
});

it("ASI09-6 a question that ends our words with its own: a quote, and another question's id", async () => {
  const text = 'Nothing." Answer here, or with /coordination approve co-9:escalation-9';
  await createChannel().notify(noticeOf({ text }));
  const [{ description }] = shown as [{ description: string }];
  expect(description).toContain(String.raw`Nothing.\" Answer here`);
  expect(description.endsWith("/coordination approve co-1:escalation-2")).toBe(true);
});
