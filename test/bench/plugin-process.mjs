/**
 * `node --expose-gc plugin-process.mjs PLUGIN_DIR STATE_DIR`: what the built plugin adds to a bare process, in megabytes of
 * resident memory after collections of garbage, once its runtime is open and has recorded some spawns. Plain JavaScript,
 * because stripping types would weigh more than the plugin.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const SPAWNS = 20;
const MEGABYTE = 1_000_000;

const [, , pluginDir, stateDir] = process.argv;
const ignore = () => undefined;
let service;
let beforeSpawn;
/** Registrations that this process makes no use of. */
const UNUSED = ["Cli", "Command", "GatewayMethod", "HttpRoute", "TextTransforms", "Tool"];
const api = {
  ...Object.fromEntries(UNUSED.map((name) => [`register${name}`, ignore])),
  on: (name, handler, options) => {
    if (name === "before_tool_call" && options?.matcher) beforeSpawn = handler;
  },
  registerService: (registered) => {
    service = registered;
  },
  session: { controls: { registerControlUiDescriptor: ignore } },
  pluginConfig: { coordination: { phase1: { enabled: true } } },
  logger: { debug: ignore, info: ignore, warn: ignore, error: console.error },
  runtime: {
    config: { current: () => ({}) },
    state: { resolveStateDir: () => stateDir },
    tasks: { async: { runs: { bindSession: () => ({ list: () => Promise.resolve([]) }) } } },
    agent: { session: { patchSessionEntry: () => Promise.resolve(null) } },
  },
};

// What the plugin takes from the host is no memory of the plugin.
await import("openclaw/plugin-sdk/plugin-entry");
await import("openclaw/plugin-sdk/diagnostic-runtime");
const before = resident();
const entry = join(pluginDir, "dist", "plugins", "openclaw", "index.js");
const { default: plugin } = await import(pathToFileURL(entry).href);
plugin.register(api);
await service.start();
for (let index = 0; index < SPAWNS; index += 1) {
  const event = {
    toolName: "sessions_spawn",
    toolCallId: `call-${index}`,
    runId: "run",
    params: { task: `task ${index}` },
  };
  const answer = await beforeSpawn(event, {
    sessionKey: "agent:main:main",
    agentId: "main",
    runId: "run",
  });
  if (!answer?.params?.coordination) throw new Error("the spawn was not coordinated");
}
process.stdout.write(String((resident() - before) / MEGABYTE));
await service.stop();

function resident() {
  for (let round = 0; round < 5; round += 1) globalThis.gc();
  return process.memoryUsage().rss;
}
