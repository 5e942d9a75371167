import {
  parsePluginConfig,
  type ConflictsConfig,
} from "../../src/agents/coordination/contracts/config/config.ts";
import type {
  ChangeProposal,
  WriteTarget,
} from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { readToolCall } from "../../src/plugins/openclaw/writes/read-tool-call.ts";
import type { ToolCall, ToolReading } from "../../src/plugins/openclaw/writes/tool-reading.ts";

export const FOLDER = "/repo/space";

export function parseConflicts(config: object = {}): ConflictsConfig {
  return parsePluginConfig({ coordination: { phase1: { conflicts: config } } }).conflicts;
}

export function createToolCall(tool: string, params: unknown, more: Partial<ToolCall> = {}): ToolCall {
  return { tool, params, folder: FOLDER, config: parseConflicts(), extractors: () => [], ...more };
}

export function readCall(
  tool: string,
  params: unknown,
  more?: Partial<ToolCall>,
): Promise<ToolReading | undefined> {
  return readToolCall(createToolCall(tool, params, more));
}

/** A reading without the functions in it. */
export function showReading(read: ToolReading | undefined): unknown {
  return (
    read && {
      ...read,
      targets: read.targets.map(({ at, replaces }) => ("path" in at ? [at.path, replaces] : [at.resource])),
    }
  );
}

export async function readProposed(
  tool: string,
  params: unknown,
  before?: string,
): Promise<ChangeProposal | undefined> {
  const read = await readCall(tool, params);
  return read?.targets[0]?.propose?.(before);
}

export async function targetsOf(tool: string, params: unknown): Promise<readonly WriteTarget[]> {
  return (await readCall(tool, params))?.targets ?? [];
}

export function createPatch(...lines: string[]): { readonly input: string } {
  return { input: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n") };
}
