/**
 * Writes openclaw.plugin.json from package.json and the config schema; `--check` only compares. The manifest is the host's
 * cold-path contract: it validates the operator's config without running our code.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { pluginConfigSchema } from "../src/agents/coordination/contracts/config/config.ts";
import { TOOL_NAMES } from "../src/plugins/openclaw/declarations/tool-declarations.ts";
import { listHints, listPackHints } from "./config-hints.ts";

const MANIFEST = new URL("../openclaw.plugin.json", import.meta.url);
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

export function formatManifest(): string {
  const withDefaults = z.toJSONSchema(pluginConfigSchema, { io: "input", target: "draft-7" });
  // The host would write defaults into the configuration that it hands over. They could not be told from the operator's
  // own settings then, and a policy pack holds in place of the ones and not of the others.
  const { $schema: _, ...configSchema } = z.toJSONSchema(pluginConfigSchema, {
    io: "input",
    target: "draft-7",
    override: ({ jsonSchema }) => {
      delete jsonSchema.default;
    },
  });
  const hints = listHints(withDefaults);
  const manifest = {
    id: "coordination",
    name: "Coordination",
    description: "Coordinates subagent spawns: envelope, lanes, causal ledger, recovery.",
    version,
    categories: ["agent-orchestration"],
    activation: { onStartup: true },
    cliCommands: [
      {
        name: "coordination",
        description: "Inspect and switch the coordination of subagents",
        hasSubcommands: true,
      },
    ],
    // Without it the host copies a ledger that is being written byte by byte, which is no ledger afterwards.
    backupResources: [{ disposition: "include", scope: "state", relativePath: "coordination" }],
    // A skill says itself that it is for gateways with the flag on.
    skills: ["./skills"],
    contracts: { tools: TOOL_NAMES },
    uiHints: Object.fromEntries([...hints, ...listPackHints(hints)]),
    configSchema,
  };
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

if (import.meta.main) {
  const text = formatManifest();
  if (!process.argv.includes("--check")) writeFileSync(MANIFEST, text);
  else if (readFileSync(MANIFEST, "utf8") !== text) {
    console.error("openclaw.plugin.json differs from the config schema: run `npm run manifest`");
    process.exitCode = 1;
  }
}
