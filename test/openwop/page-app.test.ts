/** Owns: what the page's server answers where its gateway, or its ledger, cannot do its part. */
import { describe, expect, it } from "vitest";
import { CoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import type { PageAppDependencies } from "../../src/plugins/page/server/page-app.ts";
import { createPageSessions } from "../../src/plugins/page/server/page-sessions.ts";
import { deriveRights } from "../../src/plugins/page/server/rights.ts";
import { recordQuestions } from "../cli/recorded-questions.ts";
import { createManualClock, createTempFolder, openTestLedger } from "../support/temp-ledger.ts";
import { createBarePage } from "./bare-page.ts";

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** The seconds after which the page may ask again; absent where waiting does not help. */
  readonly retryAfter: string | null;
}

/** Asks a page over a recorded ledger once. */
async function askPage(options: Partial<PageAppDependencies>, path: string, body?: object): Promise<Answer> {
  using folder = createTempFolder();
  await recordQuestions(folder.file("ledger.sqlite"));
  const ledger = await openTestLedger(folder.file("ledger.sqlite"), { mode: "read" });
  const clock = createManualClock();
  const sessions = createPageSessions(clock);
  const app = createBarePage(ledger, {
    clock,
    sessions,
    allowsOpaque: true,
    ...options,
  });
  const signedIn = sessions.signIn(sessions.mintLink(deriveRights(["operator.admin"])));
  if (signedIn.kind !== "signed_in") throw new Error(`signing in was ${signedIn.kind}`);
  const headers = { host: "localhost", authorization: `Bearer ${signedIn.token}` };
  const response = await app.fetch(
    new Request(`http://localhost/api/${path}`, {
      headers: { ...headers, ...(body && { "content-type": "application/json" }) },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    }),
  );
  const answer: Answer = {
    status: response.status,
    body: (await response.json()) as Answer["body"],
    retryAfter: response.headers.get("retry-after"),
  };
  app.close();
  await ledger.close();
  return answer;
}

const REPLACED = new CoordinationError("GATEWAY_REPLACED", "another process took over");
const TOO_NEW = new CoordinationError("LEDGER_TOO_NEW", "the ledger is of a newer release");
const UNAVAILABLE = new CoordinationError("LEDGER_UNAVAILABLE", "the server takes no writes");

const describeRefusal = ({ message, advice }: CoordinationError): string => `${message}. ${advice}`;

it("a gateway that coordinates nothing any more shows its health, without lanes", async () => {
  const { status, body } = await askPage({ lanes: () => Promise.reject(REPLACED) }, "health");
  expect(status).toBe(200);
  expect(body).toHaveProperty("contents");
  expect(body).not.toHaveProperty("lanes");
});

describe("a gateway that does nothing more until somebody acts", () => {
  it.each([REPLACED, TOO_NEW])(
    "says $code and what to do to whoever asks it for something, and not to ask again later",
    async (error) => {
      const refusal = { code: error.code, message: error.message };
      const ask = () => Promise.resolve({ ok: false, error: refusal } as const);
      const { status, body, retryAfter } = await askPage({ ask }, "claims/1/release", {});
      expect([status, body]).toEqual([503, { error: "unavailable", message: describeRefusal(error) }]);
      expect(retryAfter).toBeNull();
    },
  );
});

it.each(["runs", "health"])(
  "a ledger that a newer release has migrated is not read for `%s`, which says what to do",
  async (path) => {
    const openReader = () => Promise.reject(TOO_NEW);
    const { status, body, retryAfter } = await askPage({ reader: openReader }, path);
    expect([status, body]).toEqual([503, { error: "unavailable", message: describeRefusal(TOO_NEW) }]);
    expect(retryAfter).toBeNull();
  },
);

describe("a ledger whose server is away", () => {
  it("is unavailable for whoever reads", async () => {
    const openReader = () => Promise.reject(UNAVAILABLE);
    const { status, body, retryAfter } = await askPage({ reader: openReader }, "runs");
    expect([status, body["error"], retryAfter]).toEqual([503, "unavailable", "2"]);
  });

  it("is unavailable for whoever asks the gateway for something", async () => {
    const refusal = { code: UNAVAILABLE.code, message: UNAVAILABLE.message };
    const ask = () => Promise.resolve({ ok: false, error: refusal } as const);
    const { status, body } = await askPage({ ask }, "claims/1/release", {});
    expect([status, body]).toEqual([503, { error: "unavailable", message: UNAVAILABLE.message }]);
  });
});

it.each([
  ["step-1", "step step-1"],
  ["@step-2", "step @step-2"],
  ["@owner", "the owner's session"],
])("a released claim of %s is said to be that of %s", async (stepId, holder) => {
  const ask = () => Promise.resolve({ ok: true, payload: { stepId, resource: "queue:mail" } } as const);
  const { body } = await askPage({ ask }, "claims/7/release", {});
  expect(body["happened"]).toBe(
    `Claim 7 of ${holder} on queue:mail has ended; ${holder} keeps working, and its next write is ruled on anew.`,
  );
});
