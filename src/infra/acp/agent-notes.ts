/**
 * Owns: notes of the agent processes that run, one file each, by which a gateway finds those that an earlier process of it left
 * running when it was killed. An agent that ignores the end of its input would write on beside the next attempt.
 *
 * Where the system does not tell when a process began, nothing is noted: its number may be another's by then.
 */
import { hash } from "node:crypto";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { addMs, type IdempotencyKey } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import type { Logger } from "../../agents/coordination/ports/logger.ts";
import { isRecord } from "../../agents/coordination/std/is-record.ts";
import { isProcessThere, parsePid, readProcessName } from "../../platform/process-name.ts";
import { replaceWholeFile } from "../../platform/whole-file.ts";
import type { AcpLimits } from "./acp-limits.ts";
import { AgentFailure } from "./agent-failure.ts";

const POLL_MS = 10;

export interface AgentNotes {
  /** Notes the process of an attempt. @throws AgentFailure where that cannot be written */
  add(key: IdempotencyKey, pid: number): Promise<void>;
  /** Forgets an attempt whose process is gone. */
  remove(key: IdempotencyKey): Promise<void>;
  /** Ends what earlier processes of the gateway left running. Returns the attempts that may still run. */
  endLeft(): Promise<ReadonlySet<string>>;
}

export interface NotesOptions {
  readonly notesFolder: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: AcpLimits;
}

/** Names of processes, of the agent and of the gateway that started it. */
interface ProcessNote {
  readonly key: string;
  readonly agent: string;
  readonly gateway: string;
}

/**
 * Creates the notes on disk of which agent processes a gateway started. `endLeft` kills those that other processes of
 * the gateway left, and returns the keys of the ones that it could not; never those of this process.
 */
export function createAgentNotes(options: NotesOptions): AgentNotes {
  const { notesFolder } = options;
  const findPath = (key: string): string => join(notesFolder, `${hash("sha256", key)}.json`);
  return {
    add: async (key, pid) => {
      const agent = readProcessName(pid);
      const gateway = readProcessName();
      if (agent === undefined || gateway === undefined) return;
      const note: ProcessNote = { key, agent, gateway };
      try {
        await mkdir(notesFolder, { recursive: true, mode: 0o700 });
        replaceWholeFile(findPath(key), JSON.stringify(note));
      } catch (error) {
        throw new AgentFailure("The agent's process could not be noted on disk.", { cause: error });
      }
    },
    remove: (key) => removeNote(findPath(key)),
    endLeft: async () => {
      const left = new Set<string>();
      for (const name of await readdir(notesFolder).catch(() => [])) {
        const path = join(notesFolder, name);
        const note = await readAgentNote(path);
        if (note?.gateway === readProcessName()) continue;
        if (note && !(await killLeftoverAgent(note, options))) left.add(note.key);
        else await removeNote(path);
      }
      return left;
    },
  };
}

/** Deletes the file of a note. A failure is ignored: a note that stays names a process that is gone. */
async function removeNote(path: string): Promise<void> {
  await rm(path, { force: true }).catch(() => undefined);
}

/** Reads a note; `undefined` where its file is missing or not whole. */
async function readAgentNote(path: string): Promise<ProcessNote | undefined> {
  try {
    const note: unknown = JSON.parse(await readFile(path, "utf8"));
    if (!isRecord(note)) return undefined;
    const { key, agent, gateway } = note;
    const isWhole = typeof key === "string" && typeof agent === "string" && typeof gateway === "string";
    return isWhole ? { key, agent, gateway } : undefined;
  } catch {
    // The prompt of an agent is sent once its note is whole: this one did nothing.
    return undefined;
  }
}

/**
 * Kills an agent with its group, unless the gateway that started it still runs. Returns false where it may still run.
 */
async function killLeftoverAgent(
  { key, agent, gateway }: ProcessNote,
  options: NotesOptions,
): Promise<boolean> {
  const { clock, limits, logger } = options;
  if (!isProcessThere(agent)) return true;
  if (isProcessThere(gateway)) return false;
  const pid = parsePid(agent);
  const untilMs = addMs(clock.now(), limits.killMs);
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It is gone, or is not ours to kill.
  }
  while (isProcessThere(agent) && clock.now() < untilMs)
    await new Promise<void>((resolve) => clock.wakeAt(addMs(clock.now(), POLL_MS), resolve));
  const isEnded = !isProcessThere(agent);
  const fields = { idempotencyKey: key, pid };
  if (isEnded) logger.warn(fields, "an ACP agent that the gateway left running when it ended was killed");
  else logger.warn(fields, "an ACP agent that the gateway left running when it ended cannot be killed");
  return isEnded;
}
