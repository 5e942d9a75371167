/** A webhook whose secret is in a variable that is not set: what is written in its place is known to everybody. */
import { createHmac } from "node:crypto";
import { expect, it, onTestFinished, vi } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { applyConfigChanges, listEnableChanges } from "../../src/plugins/openclaw/host/operator-config.ts";
import { createChannelFinder } from "../../src/plugins/channels.ts";
import { createHookHost } from "../../src/plugins/hooks/hook-host.ts";
import { createMemoryConfig, runCli } from "../cli/run-cli.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createScriptedRunner } from "../support/scripted-runner.ts";
import { createTempFolder } from "../support/temp-ledger.ts";
import { composeWith } from "./composed-coordinator.ts";
import { noticeOf, NOW_MS, QUESTION_ID } from "./human-notices.ts";
import { logLines } from "./question-stage.ts";

const UNSET = "${COORDINATION_WEBHOOK_SECRET}";
const SECRET = "a secret of the operator's";

const createEscalations = (secret: string) => ({
  webhooks: { ops: { url: "https://hooks.example/", secret, triesMax: 1 } },
});

function signApproval(secret: string) {
  const computeHmac = (text: string, encoding: "base64" | "base64url"): string =>
    createHmac("sha256", secret).update(text).digest(encoding);
  const answerToken = computeHmac(`answer:${QUESTION_ID}`, "base64url");
  const rawBody = JSON.stringify({ questionId: QUESTION_ID, answerToken, answer: "approve" });
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const headers = {
    "webhook-id": "msg_1",
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${computeHmac(`msg_1.${timestamp}.${rawBody}`, "base64")}`,
  };
  return { name: "ops", headers, rawBody };
}

async function checkAnswer(configured: string, signedWith: string) {
  using temporary = createTempFolder();
  const coordinator = await composeWith({
    temporary,
    phase1: { escalations: createEscalations(configured) },
    runner: createScriptedRunner(),
    onEvents: () => undefined,
    workingFolder: "workspace",
  });
  try {
    return (await coordinator.signedAnswers()).check(signApproval(signedWith));
  } finally {
    await coordinator.close();
  }
}

function setVariable(name: string, value: string): void {
  vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

it.each([UNSET, "whsec_${COORDINATION_WEBHOOK_SECRET}", "${not_set_anywhere}"])(
  "an answer that is signed with the words %s of the configuration is refused",
  async (published) => {
    expect(await checkAnswer(published, published)).toMatchObject({ ok: false, because: "unknown_webhook" });
  },
);

it("an answer is refused where the variable has fewer characters than a secret needs", async () => {
  setVariable("webhook_secret_of_a_test", "short");
  const configured = "${webhook_secret_of_a_test}";
  expect(await checkAnswer(configured, "short")).toMatchObject({ ok: false, because: "unknown_webhook" });
});

it("an answer counts that is signed with the value of a variable in lower case", async () => {
  setVariable("webhook_secret_of_a_test", SECRET);
  expect(await checkAnswer("${webhook_secret_of_a_test}", SECRET)).toMatchObject({ ok: true });
  expect(await checkAnswer(SECRET, SECRET)).toMatchObject({ ok: true });
});

it("a notice fails without a try, and the log names the webhook once", async () => {
  const { logger, lines } = logLines();
  const clock = createFakeClock(NOW_MS);
  const { escalations } = parsePluginConfig({
    coordination: { phase1: { escalations: createEscalations(UNSET) } },
  });
  const channel = { notify: () => Promise.resolve({ kind: "delivered", tries: 1 } as const) };
  const channelOf = createChannelFinder({
    escalations,
    hooks: createHookHost({ clock, logger }),
    logger,
    clock,
    readVariable: () => undefined,
    takeAnswer: () => Promise.resolve(undefined),
    ofHost: { host: channel, chat: channel },
  });
  expect(await channelOf("webhook:ops")?.notify(noticeOf())).toEqual({
    kind: "failed",
    tries: 0,
    message: expect.stringContaining("secret") as string,
  });
  expect(lines).toMatchObject([{ level: "error", fields: { webhook: "ops" } }]);
  expect(JSON.stringify(lines)).not.toContain("hooks.example");
});

it("`doctor` names the webhook, and is content where the variable is set", async () => {
  using state = createTempFolder();
  const checkWebhooks = async (secret: string) => {
    const phase1 = { escalations: createEscalations(secret) };
    const config: object = {
      plugins: { entries: { coordination: { config: { coordination: { phase1 } } } } },
    };
    applyConfigChanges(config, listEnableChanges(config, {}));
    const { stdout } = await runCli(["doctor", "--json"], {
      stateDir: state.path,
      config: createMemoryConfig(config),
    });
    const { checks } = JSON.parse(stdout) as { checks: readonly { readonly name: string }[] };
    return checks.filter(({ name }) => name === "webhooks");
  };
  expect(await checkWebhooks(UNSET)).toMatchObject([
    {
      status: "warn",
      message: expect.stringMatching(/^without a secret in this environment .*: ops$/) as string,
    },
  ]);
  setVariable("webhook_secret_of_a_test", SECRET);
  expect(await checkWebhooks("${webhook_secret_of_a_test}")).toEqual([]);
  expect(await checkWebhooks(SECRET)).toEqual([]);
});
