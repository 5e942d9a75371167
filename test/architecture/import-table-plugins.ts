/** The part of the import table that is about the plugins (`import-table.ts`). */

/** Names of one line, with spaces between them. `core` stands for `agents/coordination`. */
export type TableLine = Readonly<Partial<Record<"folders" | "types" | "lazy" | "packages", string>>>;

/** For every folder of the plugins, what its files may import; it stands below the folders that it imports from. */
export const PLUGINS_TABLE: Readonly<Record<string, TableLine>> = {
  "plugins/cli/files": {
    folders:
      "core/contracts core/std core/contracts/workflows core/contracts/config core/plan core/policies core/workflow/state platform",
    packages: "node:* yaml zod",
  },
  // Other plugins carry a copy of their own: nothing but types comes from elsewhere.
  "plugins/hooks": { types: "core/contracts core/ports" },
  "plugins/openwop/http": {
    folders: "core/contracts core/contracts/workflows platform core/std",
    types: "core/ports core/runtime/workflow-host/records",
    packages: "hono node:* zod",
  },
  "plugins/openwop/routes": {
    folders: "core/contracts core/contracts/workflows core/workflow platform plugins/openwop/http",
    types: "core/ports core/runtime/workflow-host/records",
    packages: "zod",
  },
  "plugins/openwop/conformance": {
    folders:
      "core/contracts core/std core/contracts/workflows core/openwop core/workflow/state core/workflow/node-contract core/workflow/nodes core/workflow core/runtime/workflow-host/records core/runtime/workflow-host/requests core/telemetry plugins/openwop/http plugins/openwop/routes",
    types: "core/ports",
    packages: "node:* zod",
  },
  "plugins/openwop": {
    folders: "core/std plugins/openwop/http plugins/openwop/routes",
    types: "core/contracts core/contracts/workflows core/ports core/runtime/workflow-host/records",
    packages: "@hono/node-server hono node:*",
  },
  // Parts that the servers of other protocols share.
  "plugins/openwop/runs": {
    folders: "core/contracts core/contracts/workflows core/runtime/workflow-host/agents",
    types: "core/ports core/runtime/workflow-host/records",
  },
  // The A2A server. Loaded only where somebody wants it.
  "plugins/a2a": {
    folders:
      "core/contracts core/std core/contracts/workflows core/workflow core/runtime/workflow-host/records core/runtime/workflow-host/agents platform plugins/openwop/http plugins/openwop/runs",
    types: "core/ports",
    packages: "@a2a-js/sdk node:* zod",
  },
  // The MCP server. Loaded only where somebody wants it.
  "plugins/mcp": {
    folders:
      "core/contracts core/std core/contracts/workflows core/workflow core/runtime/workflow-host/records core/runtime/workflow-host platform plugins/openwop/http plugins/openwop/runs",
    types: "core/ports",
    packages: "@modelcontextprotocol/sdk node:* zod",
  },
  // Metrics for Prometheus. Loaded only where somebody wants it.
  "plugins/metrics": {
    folders: "core/contracts core/ledger core/runtime/log platform",
    types: "core/ports",
    packages: "node:* prom-client",
  },
  // The export of spans. Loaded only where somebody wants it.
  "plugins/telemetry": {
    folders: "core/contracts core/std core/telemetry platform",
    types: "core/contracts/workflows core/ports infra/otlp",
  },
  plugins: {
    folders:
      "core/contracts core/std core/contracts/workflows core/contracts/config core/runtime/workflow-host/records core/runtime/spawns core/runtime/workflow-host/agents core/runtime/ownership core/runtime core/runtime/workflow-host infra/clock infra/files infra/health infra/http infra/lanes infra/ledger infra/ledger/copy infra/log infra/sqlite infra/sqlite/copy infra/otlp infra/tokens platform plugins/a2a plugins/mcp plugins/metrics plugins/telemetry plugins/openwop/http plugins/openwop/runs plugins/openwop plugins/page/server",
    types:
      "core/ports core/workflow/node-contract core/runtime/log core/runtime/environment core/runtime/questions core/runtime/usage infra/webhook plugins/hooks plugins/reports plugins/page/contract",
    lazy: "infra/a2a infra/acp infra/git infra/json-schema infra/mcp infra/merge infra/model infra/peer infra/postgres infra/postgres/copy infra/verify infra/webhook plugins/cli/files plugins/openwop/conformance",
    packages: "node:*",
  },
  // Builders of what `--json` prints, gateway methods answer and the page shows.
  "plugins/reports": {
    folders:
      "core/contracts core/privileges core/runtime/log core/runtime/ownership core/runtime/privileges core/runtime/questions core/stats core/std platform",
    types: "core/contracts/workflows core/ports",
  },
  // Types of what goes over the wire between the page in a browser and its server.
  "plugins/page/contract": {
    types: "core/contracts core/plan core/ports core/runtime core/stats plugins/reports",
  },
  // Pure, because both browsers and the command line draw with it.
  "plugins/page/drawing": { folders: "core/std plugins/reports" },
  "plugins/page/ui/app": { types: "plugins/page/contract", packages: "lit" },
  "plugins/page/ui/parts": {
    folders: "core/std plugins/page/drawing plugins/page/ui/app",
    packages: "lit",
  },
  "plugins/page/ui/views": {
    folders: "core/std plugins/reports plugins/page/drawing plugins/page/ui/app plugins/page/ui/parts",
    types: "plugins/page/contract",
    packages: "@dagrejs/dagre lit uplot",
  },
  "plugins/page/ui": { folders: "plugins/page/drawing plugins/page/ui/views" },
  "plugins/page/server": {
    folders:
      "core/contracts core/contracts/config core/contracts/workflows core/plan core/stats core/std core/runtime core/runtime/log platform plugins/reports plugins/page/contract",
    types: "core/ports",
    lazy: "plugins/cli/files",
    packages: "hono node:* zod",
  },
  "plugins/openclaw/host": {
    folders: "core/contracts core/std core/contracts/config plugins",
    types: "core/ports",
    packages: "node:* openclaw zod",
  },
  "plugins/openclaw/declarations": {
    folders: "core/contracts",
  },
  "plugins/cli/terminal": {
    folders: "core/contracts core/std plugins/cli/files",
    types: "core/runtime/log plugins/openclaw/host",
    packages: "commander node:*",
  },
  "plugins/openclaw/openwop": {
    folders: "core/contracts core/std plugins/openclaw/host",
    types: "core/contracts/config core/ports plugins",
    lazy: "plugins",
    packages: "node:* zod",
  },
  "plugins/openclaw/page": {
    folders: "core/contracts plugins plugins/openclaw/host plugins/openclaw/openwop",
    types: "core/contracts/config core/ports",
    lazy: "plugins",
    packages: "node:*",
  },
  "plugins/openclaw/runners": {
    folders: "core/contracts core/std plugins/openclaw/host",
    types: "core/ports core/runtime/log plugins",
    packages: "node:* zod",
  },
  "plugins/cli/ledger": {
    folders:
      "core/contracts core/std core/contracts/workflows core/runtime/log core/runtime core/runtime/workflow-host plugins/cli/files plugins/cli/terminal plugins/openclaw/host plugins/reports",
    types: "plugins plugins/openclaw/declarations",
    lazy: "plugins",
  },
  "plugins/openclaw/runtime-access": {
    folders:
      "core/contracts core/std core/contracts/config core/gates core/ledger core/results core/runtime/usage core/runtime/environment core/runtime/held-results core/runtime/providers platform plugins/hooks plugins plugins/openclaw/host plugins/openclaw/openwop plugins/openclaw/page plugins/openclaw/runners plugins/openclaw/declarations",
    types:
      "core/runtime/spawns core/ports core/runtime/log core/runtime/questions core/runtime/plans core/runtime",
    packages: "node:*",
  },
  "plugins/cli/stats": {
    folders:
      "core/contracts core/contracts/config core/stats core/std plugins/cli/ledger plugins/cli/terminal plugins/openclaw/host plugins/reports",
    types: "plugins",
  },
  "plugins/cli/policies": {
    folders:
      "core/contracts core/contracts/config core/policies core/runtime core/runtime/log core/std plugins/cli/files plugins/cli/ledger plugins/cli/terminal plugins/openclaw/host",
    types: "plugins",
  },
  "plugins/cli/conflicts": {
    folders:
      "core/contracts core/std plugins/cli/terminal plugins/cli/ledger core/runtime/log plugins/reports",
    types: "plugins",
    packages: "commander node:*",
  },
  "plugins/cli/questions": {
    folders:
      "core/contracts core/std core/runtime/log plugins/cli/files plugins/cli/terminal plugins/cli/ledger plugins/reports",
    types: "plugins plugins/openclaw/host",
    packages: "commander",
  },
  "plugins/openclaw/chats": {
    folders: "core/contracts core/contracts/workflows plugins/openclaw/runtime-access",
    types: "core/contracts/config core/ports plugins plugins/openclaw/host",
  },
  "plugins/openclaw/spawns": {
    folders:
      "core/contracts core/std core/runtime/held-results core/runtime/privileges core/runtime plugins/openclaw/host plugins/openclaw/runtime-access",
    types: "core/ports core/runtime/spawns plugins/hooks",
    packages: "node:* zod",
  },
  "plugins/openclaw/children": {
    folders: "core/gates plugins/openclaw/host plugins/openclaw/runtime-access",
    types: "core/contracts",
  },
  "plugins/openclaw/usage": {
    folders: "core/contracts plugins/openclaw/runtime-access",
    types: "core/runtime/usage plugins/openclaw/host",
  },
  "plugins/openclaw/withholding": {
    folders:
      "core/std core/ledger core/gates core/contracts/config core/runtime plugins/openclaw/host plugins/openclaw/runtime-access plugins/openclaw/declarations",
    types: "core/contracts core/runtime/results",
  },
  "plugins/openclaw/writes": {
    folders: "core/contracts core/std plugins/hooks plugins/openclaw/host plugins/openclaw/runtime-access",
    types: "core/contracts/config core/runtime/arbiter",
    packages: "node:* zod",
  },
  "plugins/openclaw/privileges": {
    folders:
      "core/contracts core/std core/privileges plugins/openclaw/host plugins/openclaw/runtime-access plugins/openclaw/writes plugins/openclaw/declarations",
    types: "core/runtime/privileges",
  },
  "plugins/cli/privileges": {
    folders:
      "core/std core/privileges core/runtime/log plugins/cli/conflicts plugins/cli/terminal plugins/reports",
    types: "plugins",
  },
  "plugins/cli/timeline": {
    folders:
      "core/contracts core/std core/runtime/log core/runtime/held-results core/runtime/questions plugins/cli/terminal plugins/cli/ledger plugins/cli/conflicts plugins/cli/questions plugins/cli/privileges plugins/reports plugins/page/drawing platform",
    types: "plugins",
    packages: "node:*",
  },
  "plugins/openclaw/questions": {
    folders:
      "core/contracts plugins plugins/openclaw/host plugins/openclaw/runtime-access plugins/openclaw/chats plugins/openclaw/declarations",
    types: "core/ports core/runtime/log core/runtime/questions infra/webhook plugins/reports",
    lazy: "core/std plugins/cli/questions plugins/reports",
    packages: "node:* zod",
  },
  "plugins/openclaw/plans": {
    folders:
      "core/contracts core/std core/plan core/results core/contracts/config plugins/openclaw/host plugins/openclaw/runtime-access plugins/openclaw/questions core/runtime/log plugins/openclaw/declarations",
    types: "core/ledger core/runtime/plans core/runtime/questions",
    packages: "node:* zod",
  },
  "plugins/cli/plans": {
    folders:
      "core/contracts core/std core/plan core/privileges core/runtime/held-results plugins/cli/files plugins/openclaw/host plugins/cli/terminal plugins/cli/ledger plugins/openclaw/plans",
    packages: "commander node:*",
    types: "plugins/openclaw/declarations",
  },
  "plugins/openclaw": {
    folders:
      "core/contracts core/std core/contracts/config core/runtime/questions plugins plugins/openclaw/host plugins/openclaw/openwop plugins/openclaw/page plugins/openclaw/runners plugins/openclaw/runtime-access plugins/openclaw/chats plugins/openclaw/children plugins/openclaw/spawns plugins/openclaw/usage plugins/openclaw/withholding plugins/openclaw/writes plugins/openclaw/privileges plugins/openclaw/declarations",
    types: "plugins/openclaw/questions plugins/openclaw/plans",
    lazy: "plugins/openclaw/questions plugins/openclaw/plans plugins/cli",
  },
  "plugins/cli/workflows": {
    folders:
      "core/contracts core/std core/contracts/workflows core/contracts/config core/workflow/state core/workflow platform plugins/cli/files plugins/cli/terminal plugins/cli/ledger plugins/cli/plans core/runtime/log plugins/reports",
    types: "plugins",
    lazy: "plugins",
    packages: "commander node:* zod",
  },
  "plugins/cli": {
    folders:
      "core/contracts core/std core/contracts/config core/runtime/log platform plugins/openclaw/host plugins/cli/terminal plugins/openclaw/openwop plugins/cli/ledger plugins/cli/conflicts plugins/cli/questions plugins/cli/timeline plugins/cli/plans plugins/cli/policies plugins/cli/stats plugins/cli/workflows plugins/reports",
    types: "plugins",
    lazy: "plugins",
    packages: "commander node:*",
  },
};
