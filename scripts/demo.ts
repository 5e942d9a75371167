/**
 * `npm run demo`: a real gateway with the packed plugin, a parent that spawns two subagents, one of which spawns a third,
 * then a plan of four steps, then two steps that write the same file, then a result that is sent back and one that a person lets
 * through, then a child that may change one folder only beside one whose answer is long, and the timelines of all. Without options
 * the model is a scripted one on loopback.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, styleText } from "node:util";
import type { RunEntry } from "../src/agents/coordination/ports/ledger-store.ts";
import { openLedgerForReading } from "../src/plugins/ledger-reader.ts";
import { joinLedgerPath } from "../src/plugins/ledger-setting.ts";
import { isPostgresUrl } from "../src/plugins/open-ledger-store.ts";
import { startGateway, type Gateway } from "../test/support/gateway.ts";
import type { GatewayOptions } from "../test/support/gateway-config.ts";
import { createTestSchema, type TestSchema } from "../test/support/postgres-server.ts";
import { startScriptedModel, type ScriptedModel } from "../test/support/scripted-model.ts";
import { waitFor } from "../test/support/wait-for.ts";
import { CONFLICT_PLAN, CONFLICT_RULES, findRefusal, waitForConflict } from "./demo-conflict.ts";
import { approveWhile, GATES_CONFIG, GATES_PLAN, GATES_RULES } from "./demo-gates.ts";
import { DEMO_PLAN, DEMO_RULES, DEMO_TASK } from "./demo-script.ts";
import { findRefusedWrite, findShortened, PRICED_MODELS, TREE_RULES, TREE_TASK } from "./demo-tree.ts";
import { installInto, packProject } from "./pack.ts";
import { tellProgress } from "./tell-progress.ts";
import { describeError } from "../src/agents/coordination/std/describe-error.ts";

const HELP = `Usage: npm run demo -- [options]

Runs a parent agent that spawns two subagents, one of which spawns a third, then a plan of four steps, then two steps that
write the same file, then a result that is sent back and one that a person lets through, and then a subagent that may change
one folder only beside one whose answer is long, in a real OpenClaw gateway in a temporary home, prints the timelines and the
last tree with its bill, and stops everything.

Options:
  --postgres             keep the ledger in a PostgreSQL server of the demo's own, or in that of TEST_POSTGRES_URL
  --keep                 print the address of the operator's page, where the held result waits two minutes for you to
                         approve it, and leave the gateway up until Ctrl-C
  --model-base-url URL   an OpenAI-compatible API to use instead of the scripted model
  --model NAME           the model's name there
  --api-key-env VAR      the environment variable that holds the API key (it is not written anywhere)
  --help                 show this

Examples:
  npm run demo
  npm run demo -- --keep
  npm run demo -- --postgres
  npm run demo -- --model-base-url https://api.example.com/v1 --model some-model --api-key-env EXAMPLE_API_KEY
`;

const SESSION = "agent:main:demo";
/** A real model may think for long. */
const PATIENCE_MS = 600_000;
const SCRIPTED_PATIENCE_MS = 90_000;
/** A person who watches the demo needs time to find the question on the page. */
const PERSON_MS = 120_000;

interface Options {
  readonly keep: boolean;
  readonly postgres: boolean;
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
  readonly apiKeyEnv?: string | undefined;
}

/** The gateway of the demo, and the path or the URL of its ledger. */
type DemoGateway = Gateway & { readonly ledgerPlace: string };

async function run(): Promise<number> {
  const options = readOptions();
  if (!options) return 0;
  const startedAt = performance.now();
  await using endings = new AsyncDisposableStack();
  const { gateway, model } = await openScene(options, endings);
  say(`The gateway is up on 127.0.0.1:${gateway.port}. Asking the agent: ${styleText("italic", DEMO_TASK)}`);
  await offerPage(gateway, options);
  const patienceMs = options.baseUrl ? PATIENCE_MS : SCRIPTED_PATIENCE_MS;
  const spawned = await runTask(gateway, DEMO_TASK, patienceMs);
  show(gateway, spawned);
  say(`Running a plan: ${styleText("italic", DEMO_PLAN.objective)}`);
  const planned = await runPlan(gateway, DEMO_PLAN, patienceMs);
  show(gateway, planned);
  const contested = await runConflict(gateway, model, patienceMs);
  const heldRun = await runHeld(gateway, patienceMs, options.keep ? PERSON_MS : 0);
  const treeRun = await runTree(gateway, model, patienceMs);
  report(gateway, planned, performance.now() - startedAt);
  if (options.keep) await keep(gateway);
  const ended = [spawned, planned, contested, heldRun, treeRun];
  return ended.every(({ summary }) => summary.status === "success") ? 0 : 1;
}

interface Scene {
  readonly gateway: DemoGateway;
  /** Absent: a real model is asked. */
  readonly model?: ScriptedModel | undefined;
}

/** The endings end all that it starts, the last first. */
async function openScene(options: Options, endings: AsyncDisposableStack): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), "openclaw-coordination-demo-"));
  endings.defer(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  say("Packing the plugin and unpacking it with its dependencies ...");
  const dir = await tellProgress("packing", () => packAndUnpack(folder), say);
  const model = options.baseUrl ? undefined : await startScriptedModel({ rules: RULES });
  endings.defer(async () => model?.close());
  const database = options.postgres ? endings.use(await openDatabase()) : undefined;
  say("Starting the gateway with it in a fresh OpenClaw home ...");
  const gatewayOptions: GatewayOptions = {
    plugin: { kind: "path", dir },
    ...createModelOptions(options, model),
    pluginConfig: createConfig(database),
  };
  const started = await tellProgress("starting", () => startGateway(gatewayOptions), say);
  endings.defer(async () => {
    await started.stop();
    forgetAllButLedger(started);
  });
  const ledgerPlace = database ? hidePassword(database) : joinLedgerPath(started.stateDir);
  return { gateway: { ...started, ledgerPlace }, model };
}

/** Installs the package as `openclaw plugins install` does, in a few seconds: its command line takes most of a minute. */
async function packAndUnpack(folder: string): Promise<string> {
  return installInto(join(folder, "plugin"), await packProject(folder));
}

const RULES = [...GATES_RULES, ...DEMO_RULES, ...CONFLICT_RULES, ...TREE_RULES];

function createConfig(database: TestSchema | undefined): NonNullable<GatewayOptions["pluginConfig"]> {
  const ledger = database && { url: hidePassword(database), password: readPassword(database) };
  const phase1 = { enabled: true, settleMs: 1_500, gates: GATES_CONFIG, ...(ledger && { ledger }) };
  return { coordination: { phase1 } };
}

/** The commands that the demo shows read the ledger, too: they find the password in their environment. */
async function openDatabase(): Promise<TestSchema> {
  say("Starting a PostgreSQL server for the ledger ...");
  const database = await tellProgress("starting", () => createTestSchema(), say);
  process.env["PGPASSWORD"] = readPassword(database);
  return database;
}

function readPassword({ url }: TestSchema): string {
  return decodeURIComponent(new URL(url).password);
}

function hidePassword({ url: text }: TestSchema): string {
  const url = new URL(text);
  url.password = "";
  return url.href;
}

function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      keep: { type: "boolean", default: false },
      postgres: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      "model-base-url": { type: "string" },
      model: { type: "string" },
      "api-key-env": { type: "string" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return undefined;
  }
  const { keep, postgres, model } = values;
  const options = {
    keep,
    postgres,
    model,
    baseUrl: values["model-base-url"],
    apiKeyEnv: values["api-key-env"],
  };
  if (Boolean(options.baseUrl) !== Boolean(model))
    throw new Error("--model-base-url and --model go together");
  if (options.apiKeyEnv && !process.env[options.apiKeyEnv])
    throw new Error(`${options.apiKeyEnv} is not set`);
  return options;
}

function createModelOptions(
  options: Options,
  scripted: ScriptedModel | undefined,
): Pick<GatewayOptions, "modelBaseUrl" | "configPatch" | "env"> {
  if (scripted) return { modelBaseUrl: scripted.baseUrl, configPatch: PRICED_MODELS };
  const { baseUrl = "", model = "", apiKeyEnv } = options;
  const described = {
    id: model,
    name: model,
    reasoning: false,
    input: ["text"],
    contextWindow: 128_000,
    maxTokens: 8_000,
  };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  // The host reads the key from its environment, so that it is in no file.
  const apiKey = apiKeyEnv ? `\${${apiKeyEnv}}` : "none";
  return {
    modelBaseUrl: baseUrl,
    configPatch: {
      models: {
        providers: { demo: { baseUrl, apiKey, api: "openai-completions", models: [{ ...described, cost }] } },
      },
      agents: { defaults: { model: { primary: `demo/${model}` } } },
    },
    ...(apiKeyEnv && { env: { [apiKeyEnv]: process.env[apiKeyEnv] ?? "" } }),
  };
}

function runTask(gateway: DemoGateway, message: string, patienceMs: number): Promise<RunEntry> {
  const work = async () => {
    await gateway.agent({ message, sessionKey: SESSION, timeoutMs: patienceMs });
    return waitForNewest(gateway, patienceMs);
  };
  return tellProgress("at work", work, say);
}

function runPlan(gateway: DemoGateway, plan: object, patienceMs: number): Promise<RunEntry> {
  const work = async () => {
    await gateway.call("coordination.plan.run", { plan });
    return waitForNewest(gateway, patienceMs);
  };
  return tellProgress("at work", work, say);
}

/** A real model may do as it likes, and need not meet the other; the scripted one does. */
async function runConflict(
  gateway: DemoGateway,
  scripted: ScriptedModel | undefined,
  patienceMs: number,
): Promise<RunEntry> {
  say(`Two steps, one file: ${styleText("italic", CONFLICT_PLAN.objective)}`);
  const ended = runPlan(gateway, CONFLICT_PLAN, patienceMs);
  const ledger = ["--ledger", gateway.ledgerPlace];
  if (scripted) {
    await Promise.race([waitForConflict(gateway, patienceMs), ended]);
    process.stdout.write("\n");
    runCli("claims", ...ledger);
  }
  const entry = await ended;
  const refusal = scripted && findRefusal(scripted);
  if (refusal !== undefined) process.stdout.write(`\nThe second one was told: ${refusal}\n`);
  process.stdout.write("\n");
  runCli("conflicts", ...ledger);
  show(gateway, entry);
  return entry;
}

async function runHeld(gateway: DemoGateway, patienceMs: number, personMs: number): Promise<RunEntry> {
  say(`A check and a person: ${styleText("italic", GATES_PLAN.objective)}`);
  const ended = runPlan(gateway, GATES_PLAN, patienceMs + personMs);
  await approveWhile(gateway, ended, { personMs, report: say });
  const entry = await ended;
  runCli("questions", "--all", "--ledger", gateway.ledgerPlace);
  show(gateway, entry);
  return entry;
}

/** A real model may do as it likes; the scripted one writes where it must not. */
async function runTree(
  gateway: DemoGateway,
  scripted: ScriptedModel | undefined,
  patienceMs: number,
): Promise<RunEntry> {
  say("A child that may change one folder, and one whose answer is long");
  const entry = await runTask(gateway, TREE_TASK, patienceMs);
  const refusal = scripted && findRefusedWrite(scripted);
  if (refusal !== undefined) process.stdout.write(`\nThe first one was told: ${refusal}\n`);
  const shortened = scripted && findShortened(scripted);
  if (shortened !== undefined)
    process.stdout.write(`\nIn the answer of the second one its parent reads: ${shortened}\n`);
  show(gateway, entry);
  runCli("tree", entry.runId, "--ledger", gateway.ledgerPlace);
  process.stdout.write("\n");
  return entry;
}

function waitForNewest(gateway: DemoGateway, patienceMs: number): Promise<RunEntry> {
  let lastLine = "";
  return waitFor(
    async () => {
      const ledger = await openLedgerForReading(gateway.ledgerPlace);
      try {
        const [newest] = await ledger.list({ limit: 1 });
        if (!newest) throw new Error("the agent spawned nothing");
        const { steps, status } = newest.summary;
        const progress = `${steps.total - steps.open} of ${steps.total} steps done`;
        if (progress !== lastLine) say((lastLine = progress));
        return status === "running" ? undefined : newest;
      } finally {
        await ledger.close();
      }
    },
    { what: "the coordination to end", timeoutMs: patienceMs, everyMs: 200 },
  );
}

function show(gateway: DemoGateway, { runId }: RunEntry): void {
  process.stdout.write("\n");
  runCli("timeline", runId, "--ledger", gateway.ledgerPlace);
  process.stdout.write("\n");
}

function report({ ledgerPlace }: DemoGateway, { runId }: RunEntry, elapsedMs: number): void {
  runCli("verify", "--ledger", ledgerPlace);
  process.stdout.write(
    isPostgresUrl(ledgerPlace)
      ? `\nThe ledger is in ${ledgerPlace} and goes with the demo.\n`
      : `\nThe ledger lies in ${ledgerPlace}\nLook around:  npm run -s cli -- events ${runId} --ledger ${ledgerPlace}\n`,
  );
  process.stdout.write(`The demo took ${(elapsedMs / 1_000).toFixed(0)} s.\n`);
}

/** The packed command line itself, so that the picture is the one that users see. */
function runCli(...args: readonly string[]): void {
  const main = join(import.meta.dirname, "..", "dist", "plugins", "cli", "main.js");
  const { status } = spawnSync(process.execPath, [main, ...args], { stdio: "inherit" });
  if (status !== 0) throw new Error(`openclaw-coordination ${args.join(" ")} ended with ${String(status)}`);
}

async function offerPage(gateway: Gateway, options: Options): Promise<void> {
  if (!options.keep) return;
  say("Watch the work in a browser, and answer what it asks there:");
  await showPage(gateway);
}

/** Prints the address of the operator's page. */
async function showPage(gateway: Gateway): Promise<void> {
  const { address } = await gateway.call("coordination.page.link");
  process.stdout.write(`\n  ${String(address)}\n  It signs in once, within five minutes.\n\n`);
}

async function keep(gateway: Gateway): Promise<void> {
  const { port, token, home, stateDir, configPath } = gateway;
  process.stdout.write(
    `\nThe gateway stays up on http://127.0.0.1:${port} until Ctrl-C (token ${token}, home ${home}). Its page:\n`,
  );
  await showPage(gateway);
  const env = `OPENCLAW_STATE_DIR=${stateDir} OPENCLAW_CONFIG_PATH=${configPath}`;
  process.stdout.write(`From another terminal:  ${env} npx openclaw coordination list\n`);
  const alive = setInterval(() => undefined, 60_000);
  // Until now Ctrl-C would have killed the gateway at once; from here on it is stopped as at any end.
  process.removeAllListeners("SIGINT");
  await new Promise((resolve) => process.once("SIGINT", resolve));
  clearInterval(alive);
}

/** Deletes the temporary home but for the ledger, which the demo is about. */
function forgetAllButLedger({ home, stateDir }: Gateway): void {
  const ledger = join(stateDir, "coordination");
  spawnSync("find", [
    home,
    "-depth",
    "-not",
    "-path",
    `${ledger}*`,
    "-not",
    "-path",
    home,
    "-not",
    "-path",
    stateDir,
    "-delete",
  ]);
}

function say(text: string): void {
  process.stderr.write(`${styleText("dim", "demo")}  ${text}\n`);
}

process.exitCode = await run().catch((error: unknown) => {
  process.stderr.write(`demo: ${describeError(error)}\n`);
  return 1;
});
