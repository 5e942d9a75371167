/**
 * The import table of docs/architecture.md as data: for every folder with code, what its files may import. `types` are
 * folders of which only types may come; `lazy` those that may only be loaded when they are needed.
 */
import { PLUGINS_TABLE, type TableLine } from "./import-table-plugins.ts";

export interface ImportRule {
  /** Folders, from `src/`; a folder may always import itself. */
  readonly folders?: readonly string[];
  readonly types?: readonly string[];
  readonly lazy?: readonly string[];
  /** Packages; `node:*` stands for every built-in module. */
  readonly packages?: readonly string[];
}

/** A folder of the core or of the plugins stands below the folders that it imports from. */
const TABLE: Readonly<Record<string, TableLine>> = {
  "core/contracts": { folders: "core/std", packages: "zod" },
  "core/std": {},
  "core/arbitration": { folders: "core/contracts core/std core/std" },
  "core/privileges": { folders: "core/contracts core/std" },
  "core/contracts/workflows": { folders: "core/contracts", packages: "zod" },
  "core/escalation": { folders: "core/contracts" },
  "core/lanes": { folders: "core/contracts" },
  "core/ledger": { folders: "core/contracts", packages: "immutable" },
  "core/plan": { folders: "core/contracts core/std" },
  "core/contracts/config": {
    folders: "core/contracts core/std core/contracts/workflows",
    packages: "zod",
  },
  "core/telemetry": { folders: "core/contracts", types: "core/contracts/workflows" },
  "core/stats": { folders: "core/contracts", types: "core/contracts/config" },
  "core/policies": { folders: "core/contracts core/std core/contracts/config" },
  "core/openwop": { folders: "core/contracts core/ledger core/std" },
  "core/ports": { types: "core/contracts core/contracts/workflows" },
  "core/workflow/state": {
    folders: "core/contracts core/std core/contracts/workflows",
    packages: "immutable re2js",
  },
  "core/results": { types: "core/contracts" },
  "core/gates": { folders: "core/contracts", types: "core/contracts/config" },
  "core/workflow/node-contract": {
    folders: "core/contracts core/std core/workflow/state",
    types: "core/contracts/workflows",
  },
  "core/dispatch": {
    folders: "core/contracts core/arbitration core/escalation core/ledger core/plan core/openwop core/gates",
  },
  "core/dispatch/effects": {
    folders: "core/contracts core/escalation core/gates core/lanes core/ledger core/dispatch",
  },
  "core/workflow/nodes": {
    folders:
      "core/contracts core/std core/contracts/workflows core/plan core/workflow/state core/workflow/node-contract",
  },
  "core/replay": {
    folders:
      "core/contracts core/arbitration core/ledger core/plan core/contracts/config core/gates core/dispatch core/dispatch/effects",
  },
  "core/workflow": {
    folders:
      "core/contracts core/std core/contracts/workflows core/workflow/state core/workflow/node-contract core/workflow/nodes",
  },
  "core/runtime/ownership": {
    folders: "core/contracts core/std core/ledger",
    types: "core/ports core/dispatch/effects",
  },
  "core/runtime/log": {
    folders: "core/contracts core/std core/ledger core/plan core/dispatch core/runtime/ownership",
    types: "core/ports",
  },
  "core/runtime/environment": {
    folders: "core/contracts core/std",
    types: "core/ledger core/contracts/config core/ports core/runtime/log core/runtime/ownership",
  },
  "core/runtime/workflow-host/records": {
    folders:
      "core/contracts core/std core/contracts/workflows core/workflow/state core/workflow/node-contract core/workflow core/runtime/log",
    types: "core/ports",
  },
  "core/runtime/arbiter": {
    folders: "core/contracts core/std core/arbitration core/ledger core/dispatch core/runtime/log",
    types: "core/contracts/config core/ports core/runtime/environment",
  },
  "core/runtime/privileges": {
    folders: "core/contracts core/std core/privileges core/ledger core/runtime/log core/runtime/attempts",
    types: "core/contracts/config core/ports core/runtime/arbiter",
  },
  "core/runtime/held-results": {
    folders:
      "core/contracts core/ledger core/plan core/gates core/dispatch core/runtime/log core/runtime/environment",
    types: "core/contracts/config core/ports core/dispatch/effects",
  },
  "core/runtime/workflow-host/models": {
    folders:
      "core/contracts/workflows core/openwop core/workflow/state core/workflow/node-contract core/workflow core/std",
    types: "core/ports core/runtime/workflow-host/records",
  },
  "core/runtime/results": {
    folders: "core/runtime/log",
    types: "core/contracts core/ports core/runtime/environment",
  },
  "core/runtime/attempts": {
    folders:
      "core/contracts core/std core/ledger core/plan core/gates core/results core/telemetry core/dispatch core/runtime/log core/runtime/environment core/runtime/held-results",
    types: "core/ports",
  },
  "core/runtime/providers": { folders: "core/contracts core/std core/lanes", types: "core/ports" },
  "core/runtime/spawns": {
    folders:
      "core/contracts core/std core/lanes core/ledger core/dispatch core/dispatch/effects core/runtime/held-results core/runtime/log core/runtime/environment core/runtime/privileges core/runtime/attempts",
    types: "core/contracts/config core/gates core/ports core/std",
  },
  "core/runtime/workflow-host/agents": {
    folders:
      "core/contracts core/std core/contracts/workflows core/openwop core/workflow/state core/workflow/node-contract core/workflow/nodes core/runtime/workflow-host/records core/runtime/workflow-host/models",
    types: "core/ports",
  },
  "core/runtime/questions": {
    folders:
      "core/contracts core/std core/escalation core/ledger core/plan core/results core/runtime/log core/runtime/environment core/runtime/attempts",
    types: "core/ports core/dispatch core/dispatch/effects",
  },
  "core/runtime/worktrees": {
    folders: "core/contracts core/std core/ledger core/dispatch core/runtime/attempts core/runtime/questions",
    types: "core/ports core/runtime/environment",
  },
  "core/runtime/workflow-host/driving": {
    folders:
      "core/contracts core/std core/contracts/workflows core/plan core/workflow/state core/workflow/node-contract core/workflow/nodes core/workflow core/runtime/workflow-host/records core/runtime/workflow-host/agents core/runtime/ownership",
    types: "core/ports",
  },
  "core/runtime/plans": {
    folders:
      "core/contracts core/ledger core/plan core/gates core/dispatch core/replay core/runtime/log core/runtime/environment core/runtime/held-results core/runtime/privileges core/runtime/attempts core/runtime/questions core/runtime/spawns core/std",
    types: "core/contracts/config core/ports",
  },
  "core/runtime/workflow-host/effects": {
    folders:
      "core/contracts core/contracts/workflows core/workflow/state core/workflow/node-contract core/workflow core/runtime/workflow-host/records core/runtime/workflow-host/models core/runtime/workflow-host/agents core/runtime/workflow-host/driving core/runtime/log core/telemetry core/std",
    types: "core/ports",
  },
  "core/runtime/effects": {
    folders:
      "core/contracts core/std core/ledger core/dispatch core/runtime/log core/runtime/environment core/runtime/held-results core/runtime/attempts core/runtime/questions core/runtime/plans core/runtime/worktrees core/dispatch/effects",
    types: "core/lanes core/ports core/runtime/spawns core/runtime/ownership",
  },
  "core/runtime/workflow-host/requests": {
    folders:
      "core/contracts core/std core/contracts/workflows core/workflow/state core/workflow/node-contract core/workflow/nodes core/workflow core/runtime/workflow-host/records core/runtime/workflow-host/models core/runtime/workflow-host/agents core/runtime/workflow-host/driving core/runtime/workflow-host/effects core/runtime/ownership",
    types: "core/ports",
  },
  "core/runtime/usage": {
    folders: "core/contracts core/std core/ledger core/dispatch core/runtime/log",
    types: "core/ports",
  },
  "core/runtime": {
    folders:
      "core/contracts core/std core/ledger core/openwop core/dispatch core/replay core/runtime/usage core/runtime/log core/runtime/environment core/runtime/arbiter core/runtime/privileges core/runtime/held-results core/runtime/results core/runtime/spawns core/runtime/questions core/runtime/plans core/runtime/effects core/runtime/ownership",
    types: "core/dispatch/effects core/plan core/contracts/config core/ports",
  },
  "core/runtime/workflow-host": {
    folders:
      "core/contracts core/std core/contracts/workflows core/openwop core/workflow/state core/workflow/node-contract core/workflow core/runtime/workflow-host/records core/runtime/workflow-host/agents core/runtime/workflow-host/driving core/runtime/workflow-host/requests core/runtime/log",
    types: "core/ports core/runtime",
  },
  core: { folders: "core/contracts core/contracts/config core/runtime", types: "core/ports" },
  "infra/a2a": { folders: "core/std core/workflow infra/http", types: "core/ports", packages: "@a2a-js/sdk" },
  "infra/acp": {
    folders: "core/contracts core/std platform",
    types: "core/contracts/config core/ports",
    packages: "@agentclientprotocol/sdk node:*",
  },
  "infra/clock": { types: "core/contracts core/ports" },
  "infra/files": { folders: "core/contracts platform", types: "core/ports", packages: "node:*" },
  "infra/git": {
    folders: "core/contracts core/std infra/files platform",
    types: "core/ports",
    packages: "node:*",
  },
  "infra/health": { folders: "platform", types: "core/ports", packages: "node:*" },
  "infra/http": { folders: "core/contracts", types: "core/ports", packages: "node:*" },
  "infra/json-schema": { folders: "core/contracts", types: "core/ports", packages: "ajv re2js" },
  "infra/lanes": {
    folders: "core/contracts core/lanes",
    types: "core/contracts/config core/ports",
    packages: "p-queue",
  },
  "infra/log": { types: "core/ports", packages: "pino" },
  "infra/mcp": {
    folders: "core/std core/workflow infra/http",
    types: "core/ports",
    packages: "@modelcontextprotocol/sdk",
  },
  "infra/merge": {
    folders: "core/contracts infra/merge/formats infra/merge/pieces",
    types: "core/ports",
    packages: "node-diff3",
  },
  "infra/merge/formats": {
    types: "infra/merge/pieces",
    packages:
      "@lezer/common @lezer/javascript @lezer/markdown @lezer/python jsonc-parser toml-eslint-parser yaml",
  },
  "infra/merge/pieces": { types: "core/contracts" },
  "infra/model": {
    folders: "core/std core/workflow infra/http",
    types: "core/ports",
    packages: "@ai-sdk/openai-compatible ai",
  },
  "infra/peer": {
    folders: "core/contracts core/contracts/workflows core/workflow infra/http core/std",
    types: "core/ports",
    packages: "node:* zod",
  },
  "infra/ledger": {
    folders: "core/contracts core/contracts/workflows platform",
    types: "core/ports",
    packages: "node:*",
  },
  "infra/otlp": {
    folders: "core/std platform",
    types: "core/telemetry",
    packages:
      "@opentelemetry/api @opentelemetry/otlp-exporter-base @opentelemetry/otlp-transformer @opentelemetry/resources @opentelemetry/sdk-trace node:*",
  },
  "infra/ledger/copy": { folders: "core/contracts", types: "infra/ledger", packages: "node:*" },
  "infra/ledger/inspect": { folders: "infra/ledger", types: "core/ports", packages: "node:*" },
  "infra/postgres": {
    folders:
      "core/contracts core/contracts/workflows infra/ledger infra/postgres/database infra/postgres/inspect infra/postgres/workflows",
    types: "core/ports",
    packages: "node:*",
  },
  "infra/postgres/copy": {
    folders: "core/contracts infra/ledger/copy infra/postgres/database",
  },
  "infra/postgres/database": {
    folders: "core/contracts core/contracts/workflows core/std infra/ledger platform",
    types: "core/ports",
    packages: "pg node:*",
  },
  "infra/postgres/inspect": {
    folders:
      "core/contracts core/contracts/workflows core/std infra/ledger infra/ledger/inspect infra/postgres/database",
    types: "core/ports",
    packages: "node:*",
  },
  "infra/postgres/workflows": {
    folders: "core/contracts core/contracts/workflows infra/ledger infra/postgres/database",
    types: "core/ports",
  },
  "infra/sqlite": {
    folders:
      "core/contracts core/std core/contracts/workflows infra/ledger infra/sqlite/database infra/sqlite/inspect infra/sqlite/workflows platform",
    types: "core/ports",
    packages: "better-sqlite3 node:*",
  },
  "infra/sqlite/copy": {
    folders: "core/contracts infra/ledger infra/ledger/copy infra/sqlite/database",
    packages: "better-sqlite3",
  },
  "infra/sqlite/database": {
    folders: "core/contracts core/std infra/ledger platform",
    types: "core/ports",
    packages: "better-sqlite3 node:*",
  },
  "infra/sqlite/inspect": {
    folders: "core/std infra/ledger infra/ledger/inspect infra/sqlite/database infra/sqlite/workflows",
    types: "core/contracts core/contracts/workflows core/ports",
    packages: "better-sqlite3 node:*",
  },
  "infra/sqlite/workflows": {
    folders: "core/contracts core/contracts/workflows infra/ledger infra/sqlite/database",
    types: "core/ports",
    packages: "better-sqlite3 node:*",
  },
  "infra/tokens": {
    folders: "core/contracts core/std platform",
    types: "core/ports",
    packages: "node:* zod",
  },
  "infra/verify": {
    folders: "core/contracts core/std core/plan infra/files platform",
    types: "core/ports",
    lazy: "infra/json-schema",
    packages: "node:*",
  },
  "infra/webhook": {
    folders: "core/contracts infra/http core/std",
    types: "core/contracts/config core/ports",
    packages: "node:* zod",
  },
  platform: { packages: "node:*" },
  ...PLUGINS_TABLE,
};

const splitNames = (line = ""): string[] => line.split(" ").filter(Boolean).map(resolveInSource);
const resolveInSource = (folder: string): string => folder.replace(/^core(?=\/|$)/u, "agents/coordination");

/** For every folder of `src/`, what its files may import. */
export const IMPORTS: Readonly<Record<string, ImportRule>> = Object.fromEntries(
  Object.entries(TABLE).map(([folder, { folders, types, lazy, packages }]) => [
    resolveInSource(folder),
    {
      folders: splitNames(folders),
      types: splitNames(types),
      lazy: splitNames(lazy),
      packages: splitNames(packages),
    },
  ]),
);

/** The only files that import both infra and runtime: they put them together. */
export const COMPOSING: readonly string[] = ["plugins/compose-workflows.ts", "plugins/compose.ts"];
/** The only file that imports the host. */
export const SDK = "plugins/openclaw/host/sdk.ts";
/** Files that the host loads with the plugin, and that must not pull in the parts of a running coordinator. */
export const ENTRY = "plugins/openclaw/index.ts";
