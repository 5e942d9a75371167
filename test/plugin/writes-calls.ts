import {
  parsePluginConfig,
  type ConflictsConfig,
} from "../../src/agents/coordination/contracts/config/config.ts";
import type { Proposed, WriteTarget } from "../../src/agents/coordination/runtime/arbiter/write-call.ts";
import { readToolCall } from "../../src/plugins/openclaw/writes/read-tool-call.ts";
import type { ToolCall, ToolReading } from "../../src/plugins/openclaw/writes/tool-reading.ts";

export const FOLDER = "/repo/space";

export function conflicts(config: object = {}): ConflictsConfig {
  return parsePluginConfig({ coordination: { phase1: { conflicts: config } } }).conflicts;
}

export function toolCall(tool: string, params: unknown, more: Partial<ToolCall> = {}): ToolCall {
  return { tool, params, folder: FOLDER, config: conflicts(), extractors: () => [], ...more };
}

export function reading(
  tool: string,
  params: unknown,
  more?: Partial<ToolCall>,
): Promise<ToolReading | undefined> {
  return readToolCall(toolCall(tool, params, more));
}

/** What a reading says but for the functions in it. */
export function shown(read: ToolReading | undefined): unknown {
  return (
    read && {
      ...read,
      targets: read.targets.map(({ at, replaces }) => ("path" in at ? [at.path, replaces] : [at.resource])),
    }
  );
}

export async function proposed(
  tool: string,
  params: unknown,
  before?: string,
): Promise<Proposed | undefined> {
  const read = await reading(tool, params);
  return read?.targets[0]?.propose?.(before);
}

export async function targetsOf(tool: string, params: unknown): Promise<readonly WriteTarget[]> {
  return (await reading(tool, params))?.targets ?? [];
}

export function patch(...lines: string[]): { readonly input: string } {
  return { input: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n") };
}
