/** Owns: processes that run an ACP agent, which are killed while their agent is at work. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { TempFolder } from "../support/temp-ledger.ts";
import { waitFor } from "../support/wait-for.ts";

/** Starts a process that runs an agent with the script, and notes it in a folder of that name. */
export async function startGateway(
  folder: TempFolder,
  script: string,
  notesName = "notes",
): Promise<ChildProcess> {
  const program = fileURLToPath(new URL("./acp-gateway.ts", import.meta.url));
  const gateway = spawn(process.execPath, [program, folder.file("pids"), folder.file(notesName), script], {
    env: { ...process.env, TMPDIR: folder.path },
  });
  const [chunk] = (await once(gateway.stdout, "data")) as [Buffer];
  expect(chunk.toString()).toBe("started\n");
  return gateway;
}

/** Kills such a process, once its agent has started so many processes. Returns their ids. */
export async function killGateway(
  folder: TempFolder,
  script: string,
  { processes = 1, notesName = "notes" } = {},
): Promise<readonly number[]> {
  const gateway = await startGateway(folder, script, notesName);
  const readPids = (): number[] => readFileSync(folder.file("pids"), "utf8").trim().split("\n").map(Number);
  await waitFor(() => readPids().length === processes, { what: "what the agent starts" });
  gateway.kill("SIGKILL");
  await once(gateway, "exit");
  return readPids();
}
