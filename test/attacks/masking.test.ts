/** Owns: secrets of the host that come back to it as text: none is in what is stored, shown or logged. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { collectGatewaySecrets } from "../../src/plugins/known-secrets.ts";
import { serveOpenWop, type ServedOpenWop } from "../../src/plugins/compose-openwop.ts";
import { startModelServer, type ModelServer } from "../openwop/levels-model-server.ts";
import { createNode, createNoop, createWorkflow } from "../openwop/levels-workflows.ts";
import { clientOf, openWorld, OTHER_TOKEN, TOKEN, type World } from "../openwop/levels-world.ts";
import { openTestLedger, createTempFolder } from "../support/temp-ledger.ts";

const SHORT = "short-1";
const SECRETS = {
  "a token of the tenant": TOKEN,
  "a token of another tenant": OTHER_TOKEN,
  "a token of a peer": "peer-token-0123456789",
  "a token of a peer in a variable": "peer-token-of-a-variable",
  "the key of the model": "sk-key-of-the-model-0001",
  "a key of the environment": "sk-key-of-the-environment",
} as const;
const EVERY = Object.values(SECRETS);
const KINDS = Object.entries(SECRETS);
const FILES = "/v1/host/workspace/files";

const DEFINITIONS = [
  createWorkflow("quiet", { nodes: [createNoop("only")], variables: { said: "" } }),
  createWorkflow("asks-people", {
    nodes: [createNode("gate", "core.approvalGate", { config: { title: "Go on?" } })],
  }),
  createWorkflow("asks-model", {
    nodes: [createNode("ask", "core.ai.callPrompt", { config: { prompt: "all" } })],
  }),
  createWorkflow("remembers", {
    nodes: [createNode("keep", "openclaw.memory.write", { config: { content: EVERY.join(" ") } })],
  }),
];

function expectNone(shown: unknown): void {
  const text = typeof shown === "string" ? shown : JSON.stringify(shown);
  for (const [kind, secret] of KINDS) expect(text.includes(secret), kind).toBe(false);
}

let world: World;
let model: ModelServer;
const logged: string[] = [];

beforeAll(async () => {
  vi.stubEnv("PEER_VALUE", SECRETS["a token of a peer in a variable"]);
  vi.stubEnv("SOME_SERVICE_API_KEY", SECRETS["a key of the environment"]);
  vi.stubEnv("OTHER_SERVICE_TOKEN", SHORT);
  model = await startModelServer(() => ({ content: `I know ${EVERY.join(" ")}` }));
  world = await openWorld(DEFINITIONS, {
    model: { baseUrl: model.baseUrl, model: "m", apiKey: SECRETS["the key of the model"] },
    privateOrigins: [model.origin],
    peerTokens: {
      "https://one.example": SECRETS["a token of a peer"],
      "https://two.example": "${PEER_VALUE}",
    },
    verbose: true,
    log: (line) => void logged.push(line),
  });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await world.close();
  await model.close();
});

describe("serve, with its secrets in what callers and models say", () => {
  it.each(KINDS)("shows %s in no inputs, variables and events of a run", async (_, secret) => {
    const words = `it is ${secret}, keep it`;
    const { snapshot, events } = await world.client.run("quiet", {
      inputs: { said: words, [secret]: [{ said: words }] },
    });
    expect(snapshot.variables["said"]).toMatch(/^it is \[REDACTED:[a-z0-9-]+\], keep it$/u);
    expectNone([snapshot, events]);
  });

  it("keeps them out of tags, metadata and options", async () => {
    const words = EVERY.join(" ");
    const reply = await world.client.post("/v1/runs", {
      workflowId: "quiet",
      tags: [words],
      metadata: { said: words },
      configurable: { said: words },
    });
    expect(reply.status).toBe(201);
    expectNone(await world.client.events(String(reply.body["runId"])));
  });

  it("keeps them out of answers to questions", async () => {
    const runId = await world.client.start("asks-people");
    await world.client.until(runId, "waiting-approval");
    await world.client.resolve(runId, "gate", { action: "accept", feedback: EVERY.join(" ") });
    await world.client.until(runId, "completed");
    expectNone(await world.client.events(runId));
  });

  it("keeps them out of what a model answered", async () => {
    const { snapshot, events } = await world.client.run("asks-model");
    expect(JSON.stringify(events)).toContain("[REDACTED:");
    expectNone([snapshot, events]);
  });

  it("keeps them out of memory and of the workspace", async () => {
    const { snapshot, events } = await world.client.run("remembers");
    const file = await fetch(`${world.baseUrl}${FILES}/keys.md`, {
      method: "PUT",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ content: EVERY.join(" ") }),
    });
    expect(file.ok).toBe(true);
    expectNone([snapshot, events, await file.text()]);
    expectNone((await world.client.get(`${FILES}/keys.md`)).body);
  });

  it("keeps them out of definitions and of what is wrong with them", async () => {
    const words = EVERY.join(" ");
    const definition = {
      ...createWorkflow("told", { nodes: [createNoop("only")], variables: { said: words } }),
    };
    const reply = await world.client.post("/v1/host/sample/workflows", definition);
    expect(reply.status).toBeLessThan(300);
    const { snapshot, events } = await world.client.run("told");
    expectNone([snapshot, events, (await world.client.get("/v1/workflows/told")).body]);
    for (const secret of EVERY)
      expectNone((await world.client.post("/v1/runs", { workflowId: `no-${secret}` })).body);
  });

  it("leaves what is shorter than 8 characters, which is in many texts", async () => {
    const { snapshot } = await world.client.run("quiet", { inputs: { said: SHORT } });
    expect(snapshot.variables["said"]).toBe(SHORT);
  });

  it("has none in its log, and none in the files of the ledger", () => {
    expect(logged.length).toBeGreaterThan(0);
    expectNone(logged.join("\n"));
    const folder = dirname(world.ledgerPath);
    for (const name of readdirSync(folder)) {
      const bytes = readFileSync(join(folder, name));
      for (const [kind, secret] of KINDS) expect(bytes.includes(secret), `${name}: ${kind}`).toBe(false);
    }
  });

  it("tells nobody which secrets there are", async () => {
    const words = "{{secret:SOME_SERVICE_API_KEY}} {{secret:peer-token}}";
    const { snapshot } = await world.client.run("quiet", { inputs: { said: words } });
    expect(snapshot.variables["said"]).toBe(words);
  });
});

const IN_GATEWAY = {
  "a bearer token": "bearer-token-of-the-gateway",
  "a bearer token in a variable": "bearer-token-of-a-variable",
  "a token of a peer": "peer-token-of-the-gateway",
  "the secret of a webhook": "secret-of-a-webhook-in-variable",
  "the key that a webhook's secret stands for": "a2V5LW9mLWEtd2ViaG9vay0wMTIz",
  "the password of a webhook's address": "password-of-hooks",
  "a variable of a program": "token-of-an-agent-program",
  "a variable of a check": "token-of-a-check-program",
  "the key of a model": "sk-in-the-configuration-01",
  "the key of a model in a variable": "sk-in-a-variable-000000002",
  "the token of a channel": "bot-token-of-a-channel",
  "the gateway's own token": "token-of-the-gateway-itself",
  "a key of the environment": "sk-in-the-environment-0003",
} as const;

const ENVIRONMENT = {
  BEARER: IN_GATEWAY["a bearer token in a variable"],
  SECRET_OF_A_WEBHOOK: IN_GATEWAY["the secret of a webhook"],
  MODEL: IN_GATEWAY["the key of a model in a variable"],
  ANTHROPIC_API_KEY: IN_GATEWAY["a key of the environment"],
  PATH: "/usr/local/bin:/usr/bin",
};

const PLUGIN_CONFIG = parsePluginConfig({
  coordination: {
    phase1: {
      openwop: {
        enabled: true,
        workflows: ["workflows"],
        tokens: [
          { token: IN_GATEWAY["a bearer token"], tenant: "default" },
          { token: "${BEARER}", tenant: "other" },
        ],
        peerTokens: { "https://peer.example": IN_GATEWAY["a token of a peer"] },
      },
      escalations: {
        webhooks: {
          ops: { url: "https://hooks.example/", secret: "${SECRET_OF_A_WEBHOOK}" },
          signed: {
            url: `https://user:${IN_GATEWAY["the password of a webhook's address"]}@hooks.example/`,
            secret: `whsec_${IN_GATEWAY["the key that a webhook's secret stands for"]}`,
          },
        },
      },
      acpAgents: {
        coder: {
          command: "coder",
          env: { CODER_TOKEN: IN_GATEWAY["a variable of a program"], MODE: "production" },
        },
      },
      gates: {
        verifiers: {
          check: { kind: "command", command: "check", env: { API_KEY: IN_GATEWAY["a variable of a check"] } },
        },
      },
    },
  },
});

const HOST_CONFIG = {
  gateway: { auth: { token: IN_GATEWAY["the gateway's own token"] } },
  channels: { telegram: { accounts: { main: { botToken: IN_GATEWAY["the token of a channel"] } } } },
  models: {
    providers: {
      one: { apiKey: IN_GATEWAY["the key of a model"], baseUrl: "https://models.example/v1" },
      two: { apiKey: { source: "env", provider: "default", id: "MODEL" } },
    },
  },
  agents: { defaults: { maxTokens: 4096, tokenizer: "characters", model: "provider/large-model" } },
};

const readVariable = (name: string): string | undefined => (ENVIRONMENT as Record<string, string>)[name];

describe("the secrets that a gateway knows", () => {
  const secrets = collectGatewaySecrets({
    config: PLUGIN_CONFIG,
    hostConfig: HOST_CONFIG,
    environment: ENVIRONMENT,
  });

  it.each(Object.entries(IN_GATEWAY))("are, among others, %s", (_, secret) => {
    expect([...secrets.values()]).toContain(secret);
  });

  it("are no settings that are no secrets", () => {
    const words = ["production", "4096", "characters", "provider/large-model", ENVIRONMENT.PATH];
    expect([...secrets.values()].filter((each) => words.includes(each))).toEqual([]);
  });

  it("have names that tell nothing of where they are from", () => {
    for (const name of secrets.keys()) expect(name).toMatch(/^[a-z-]+-\d+$/u);
  });
});

describe("the OpenWOP host of a gateway", () => {
  let served: ServedOpenWop | undefined;
  const folder = createTempFolder();
  afterEach(async () => {
    await served?.close();
  });
  afterAll(() => folder[Symbol.dispose]());

  it("keeps the secrets of the configuration out of its ledger", async () => {
    const ledgerPath = join(folder.path, "ledger.sqlite");
    const ledger = await openTestLedger(ledgerPath);
    const words = Object.values(IN_GATEWAY).join(" ");
    const definition = createWorkflow("told", {
      nodes: [createNoop("only")],
      variables: { said: words, known: words },
    });
    mkdirSync(join(folder.path, "workflows"));
    writeFileSync(join(folder.path, "workflows", "told.json"), JSON.stringify(definition));
    served = await serveOpenWop({
      config: PLUGIN_CONFIG,
      hostConfig: HOST_CONFIG,
      environment: ENVIRONMENT,
      readVariable,
      ledgerPath,
      stateDir: folder.path,
      store: ledger.workflows,
      coordinations: {} as never,
      chat: {} as never,
      logger: {
        debug: () => undefined,
        info: () => undefined,
        warn: () => undefined,
        error: () => undefined,
      },
      version: "0.0.0",
      baseUrl: "http://127.0.0.1:1",
    });
    const face = served;
    const server = createServer((request, response) => void face.handle(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const client = clientOf(`http://127.0.0.1:${port}`, IN_GATEWAY["a bearer token"]);
    const { snapshot } = await client.run("told", { inputs: { said: words } });
    expect(snapshot.variables["said"]).toContain("[REDACTED:");
    server.close();
    server.closeAllConnections();
    await served.close();
    served = undefined;
    await ledger.close();
    for (const name of readdirSync(folder.path).filter((each) => each !== "workflows"))
      for (const [kind, secret] of Object.entries(IN_GATEWAY))
        expect(readFileSync(join(folder.path, name)).includes(secret), `${name}: ${kind}`).toBe(false);
  });
});
