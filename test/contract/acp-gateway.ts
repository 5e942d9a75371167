/** Owns: a process that runs an ACP agent and is there to be killed. Says `started` or why not. */
import { createAcpScene, orderOf } from "./acp-scene.ts";

const [, , pidFile = "", notesFolder = "", script = "hang"] = process.argv;
const { runner } = createAcpScene({ config: { env: { ACP_PIDS: pidFile } }, notesFolder });
const { kind } = await runner.start(orderOf(`ACP:${script}`));
process.stdout.write(`${kind}\n`);
