/**
 * Packs the package, installs it as the host does, without scripts and without dev or peer dependencies, and uses it from
 * there: the command line answers and a durable event is appended and verified.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installInto, packProject } from "./pack.ts";

const PROBE = `
import { composeCoordinator, openLedgerForReading, systemClock } from "./dist/plugins/compose.js";
import { createHookHost } from "./dist/plugins/hooks/hook-host.js";
import { verifyLedger, parsePluginConfig } from "./dist/agents/coordination/index.js";

const ledgerPath = process.argv[2];
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const observer = { observe: async () => ({ kind: "unknown" }), bind: async () => {} };
const hooks = createHookHost({ clock: systemClock, logger: quiet });
const given = { ledgerPath, config: parsePluginConfig({}), observer, hooks, channels: () => ({}), logger: quiet };
const coordinator = await composeCoordinator(given);
const content = { text: "x", ref: { sha256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", bytes: 1 } };
const spawn = { runner: "subagent", agentId: "main", collect: false, call: {} };
const source = { sourceSession: "agent:main:main", sourceAgent: "main" };
const admission = await coordinator.admitSpawn({ ...source, spawn, input: content, objective: content });
await coordinator.close();
const ledger = await openLedgerForReading(ledgerPath);
const { ok, events } = await verifyLedger(ledger);
await ledger.close();
if (admission.kind !== "admitted" || !ok || events !== 6) throw new Error(JSON.stringify({ admission, ok, events }));
`;

const folder = mkdtempSync(join(tmpdir(), "coordination-smoke-"));
try {
  const plugin = await installInto(join(folder, "plugin"), await packProject(folder));
  for (const needed of ["openclaw.plugin.json", "README.md", "LICENSE", "CHANGELOG.md"]) {
    if (!readdirSync(plugin).includes(needed)) throw new Error(`the package lacks ${needed}`);
  }
  writeFileSync(join(plugin, "probe.mjs"), PROBE);
  run(plugin, "probe.mjs", join(folder, "ledger", "ledger.sqlite"));
  const listed = run(
    plugin,
    "dist/plugins/cli/main.js",
    "list",
    "--json",
    "--ledger",
    join(folder, "ledger", "ledger.sqlite"),
  );
  if ((JSON.parse(listed) as unknown[]).length !== 1) throw new Error(`list printed ${listed}`);
  process.stdout.write(
    "The packed package installs without scripts, appends durably and lists what it appended.\n",
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function run(cwd: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, encoding: "utf8" });
  if (status === 0) return stdout;
  throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`);
}
