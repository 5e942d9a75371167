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
const api = {
  pluginConfig: { coordination: { phase1: { enabled: true } } },
  logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
  runtime: {
    state: { resolveStateDir: () => stateDir },
    tasks: { async: { runs: { bindSession: () => ({ list: () => Promise.resolve([]) }) } } },
    agent: { session: { patchSessionEntry: () => Promise.resolve(null) } },
  },
};

const before = resident();
const handlersFile = join(pluginDir, "dist", "plugins", "openclaw", "hook-handlers.js");
const { createHookHandlers } = await import(pathToFileURL(handlersFile).href);
const handlers = createHookHandlers(api);
await handlers.start();
for (let index = 0; index < SPAWNS; index += 1) {
  const event = {
    toolName: "sessions_spawn",
    toolCallId: `call-${index}`,
    runId: "run",
    params: { task: `task ${index}` },
  };
  const answer = await handlers.beforeSpawn(event, {
    sessionKey: "agent:main:main",
    agentId: "main",
    runId: "run",
  });
  if (!answer?.params?.coordination) throw new Error("the spawn was not coordinated");
}
process.stdout.write(String((resident() - before) / MEGABYTE));
await handlers.stop();

function resident() {
  for (let round = 0; round < 5; round += 1) globalThis.gc();
  return process.memoryUsage().rss;
}
