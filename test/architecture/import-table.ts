/**
 * The import table of docs/architecture.md as data: for every folder with code, what its files may import. `types` are
 * folders of which only types may come; `lazy` those that may only be loaded when they are needed.
 */
export interface ImportRule {
  /** Folders, from `src/`; a folder may always import itself. */
  readonly folders?: readonly string[];
  readonly types?: readonly string[];
  readonly lazy?: readonly string[];
  /** Packages; `node:*` stands for every built-in module. */
  readonly packages?: readonly string[];
}

const CORE = "agents/coordination";
const contracts = `${CORE}/contracts`;
const ledger = `${CORE}/ledger`;
const openwop = `${CORE}/openwop`;
const plan = `${CORE}/plan`;
const lanes = `${CORE}/lanes`;
const arbitration = `${CORE}/arbitration`;
const gates = `${CORE}/gates`;
const escalation = `${CORE}/escalation`;
const dispatch = `${CORE}/dispatch`;
const replay = `${CORE}/replay`;
const ports = `${CORE}/ports`;
const runtime = `${CORE}/runtime`;
const arbiter = `${CORE}/runtime/arbiter`;
const heldResults = `${CORE}/runtime/gates`;
const workflow = `${CORE}/workflow`;
const workflowNodes = `${CORE}/workflow/nodes`;
const workflows = `${CORE}/runtime/workflows`;

export const IMPORTS: Readonly<Record<string, ImportRule>> = {
  [CORE]: { folders: [contracts, runtime], types: [ports] },
  [contracts]: { packages: ["zod"] },
  [ledger]: { folders: [contracts], packages: ["immutable"] },
  [plan]: { folders: [contracts] },
  [openwop]: { folders: [contracts, ledger] },
  [lanes]: { types: [contracts] },
  [arbitration]: { folders: [contracts] },
  [gates]: { folders: [contracts] },
  [escalation]: { folders: [contracts] },
  [dispatch]: { folders: [contracts, ledger, plan, openwop, lanes, arbitration, gates, escalation] },
  [replay]: { folders: [contracts, ledger, plan, arbitration, gates, dispatch] },
  [ports]: { types: [contracts] },
  [runtime]: {
    folders: [contracts, ledger, plan, openwop, lanes, gates, dispatch, replay, arbiter, heldResults],
    types: [ports],
  },
  [heldResults]: {
    folders: [contracts, ledger, plan, gates, escalation, dispatch, runtime],
    types: [ports],
  },
  [arbiter]: { folders: [contracts, ledger, arbitration, dispatch, runtime], types: [ports] },
  [workflow]: { folders: [contracts, workflowNodes], packages: ["immutable", "re2js"] },
  [workflowNodes]: { folders: [contracts, workflow] },
  [workflows]: { folders: [contracts, workflow, openwop], types: [ports, runtime] },
  "infra/a2a": { folders: [workflow, "infra/http"], types: [ports], packages: ["@a2a-js/sdk"] },
  "infra/acp": {
    folders: [contracts],
    types: [ports],
    packages: ["@agentclientprotocol/sdk", "node:*"],
  },
  "infra/clock": { types: [contracts, ports] },
  "infra/files": { folders: [contracts], types: [ports], packages: ["node:*"] },
  "infra/health": { types: [ports], packages: ["node:*"] },
  "infra/http": { folders: [contracts], types: [ports], packages: ["node:*"] },
  "infra/json-schema": { folders: [contracts], types: [ports], packages: ["ajv", "re2js"] },
  "infra/lanes": { folders: [contracts, lanes], types: [ports], packages: ["p-queue"] },
  "infra/log": { types: [ports], packages: ["pino"] },
  "infra/merge": { folders: [contracts], types: [ports], packages: ["node-diff3"] },
  "infra/mcp": { folders: [workflow, "infra/http"], types: [ports], packages: ["@modelcontextprotocol/sdk"] },
  "infra/model": {
    folders: [workflow, "infra/http"],
    types: [ports],
    packages: ["ai", "@ai-sdk/openai-compatible"],
  },
  "infra/peer": { folders: [contracts, workflow, "infra/http"], types: [ports], packages: ["zod", "node:*"] },
  "infra/sqlite": { folders: [contracts], types: [ports], packages: ["better-sqlite3", "node:*"] },
  "infra/tokens": { folders: [contracts], types: [ports], packages: ["zod", "node:*"] },
  "infra/verify": {
    folders: [contracts, plan, "infra/files"],
    types: [ports],
    lazy: ["infra/json-schema"],
    packages: ["node:*"],
  },
  "infra/webhook": { folders: [contracts, "infra/http"], types: [ports], packages: ["zod", "node:*"] },
  plugins: {
    folders: [
      contracts,
      runtime,
      "infra/clock",
      "infra/files",
      "infra/health",
      "infra/http",
      "infra/lanes",
      "infra/log",
      "infra/sqlite",
      "infra/tokens",
      "plugins/openwop",
      workflows,
    ],
    types: [ports, heldResults, "plugins/hooks", "infra/webhook"],
    lazy: [
      "infra/a2a",
      "infra/acp",
      "infra/json-schema",
      "infra/mcp",
      "infra/merge",
      "infra/model",
      "infra/peer",
      "infra/verify",
      "infra/webhook",
      "plugins/cli",
    ],
    packages: ["node:*"],
  },
  "plugins/cli": {
    folders: [contracts, plan, runtime, heldResults, workflow, workflows, "plugins/openclaw"],
    types: [ports, "plugins"],
    lazy: ["plugins"],
    packages: ["commander", "yaml", "zod", "node:*"],
  },
  // Other plugins carry a copy of their own: nothing but types comes from elsewhere.
  "plugins/hooks": { types: [contracts, ports] },
  "plugins/openclaw": {
    folders: [
      contracts,
      runtime,
      heldResults,
      "plugins",
      "plugins/hooks",
      "plugins/openclaw/gates",
      "plugins/openclaw/writes",
    ],
    types: [ports, arbiter, "plugins/cli", "infra/webhook"],
    lazy: ["plugins/cli"],
    packages: ["openclaw", "zod", "node:*"],
  },
  "plugins/openwop": {
    folders: [contracts, workflow],
    types: [ports, workflows],
    packages: ["hono", "@hono/node-server", "zod", "node:*"],
  },
  "plugins/openclaw/gates": {
    folders: [contracts, gates, heldResults, "plugins/openclaw"],
    packages: ["node:*"],
  },
  "plugins/openclaw/writes": {
    folders: [contracts],
    types: [arbiter],
    packages: ["zod", "node:*"],
  },
};

/** The only files that import both infra and runtime: they put them together. */
export const COMPOSING: readonly string[] = ["plugins/compose-workflows.ts", "plugins/compose.ts"];
/** The only file that imports the host. */
export const SDK = "plugins/openclaw/sdk.ts";
/** What the host loads with the plugin, and must not pull in the parts of a running coordinator. */
export const ENTRY = "plugins/openclaw/index.ts";
