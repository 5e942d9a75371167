/**
 * Owns: what a tool call would change and what it looks at, before it happens. Does not own: what follows from that.
 *
 * 1. A tool that nobody watches costs one look into a set or two: this is asked at every tool call of the gateway.
 * 2. Parameters are a model's words: whatever they are, this answers, in bounded time, and does not throw.
 * 3. A change that cannot be told is said to be one, never left out.
 */
import type { HOST_TOOLS } from "../../../agents/coordination/contracts/config/config.ts";
import { readConfiguredCall } from "./read-configured-call.ts";
import { readEditCall, readNodesCall, readPatchCall, readReadCall, readWriteCall } from "./read-file-call.ts";
import { readSessionsSendCall } from "./read-session-call.ts";
import { readExecCall, readProcessCall, readTerminalCall } from "./read-shell-call.ts";
import { runExtractors } from "./run-extractors.ts";
import { joinReadings, UNREADABLE, type ToolCall, type ToolReading } from "./tool-reading.ts";

/** Reads the files that a call of one tool would change. */
type ToolCallReader = (call: ToolCall) => ToolReading | undefined;

const READERS: ReadonlyMap<string, ToolCallReader> = new Map<string, ToolCallReader>(
  Object.entries({
    read: readReadCall,
    write: readWriteCall,
    edit: readEditCall,
    apply_patch: readPatchCall,
    nodes: readNodesCall,
    exec: readExecCall,
    bash: readExecCall,
    process: readProcessCall,
    terminal: readTerminalCall,
    sessions_send: readSessionsSendCall,
  } satisfies Record<(typeof HOST_TOOLS)[number], ToolCallReader>),
);

/** Whatever they are called with, they may change anything. */
const SHELLS = new Set(["exec", "bash", "process", "terminal"]);

/** A tool, and the places where watching it may be asked for. */
interface NamedTool extends Pick<ToolCall, "tool" | "extractors"> {
  readonly config: { readonly tools: object };
}

/**
 * True when calls of a tool are read for what they change: the tool is a known one of the host, configured, or one
 * that an extractor reads.
 */
export function isToolWatched({ tool, config, extractors }: NamedTool): boolean {
  return READERS.has(tool) || hasToolEntry(config, tool) || extractors(tool).length > 0;
}

/**
 * Returns the resources that a tool call would change and look at, as the host's readers, the configuration and
 * extractors say, for which it waits; `undefined` where that is nothing, or nobody watches the tool.
 */
export async function readToolCall(call: ToolCall): Promise<ToolReading | undefined> {
  if (!isToolWatched(call)) return undefined;
  const hostReading = readHostCallSafely(call);
  const extracted = await runExtractors(call);
  const readings = hostReading ? [hostReading, ...extracted] : extracted;
  return readings.length > 0 ? joinReadings(readings) : undefined;
}

/** Reads a call of one of the host's own or configured tools; one that cannot be read is said to change something. */
function readHostCallSafely(call: ToolCall): ToolReading | undefined {
  try {
    return readHostCall(call);
  } catch {
    return SHELLS.has(call.tool)
      ? { ...UNREADABLE, mayTouchAnything: true, folder: call.folder }
      : UNREADABLE;
  }
}

/** Reads a call of the host's own tools, or of one that the configuration describes. */
function readHostCall(call: ToolCall): ToolReading | undefined {
  const reader = READERS.get(call.tool);
  if (reader) return reader(call);
  const entry = hasToolEntry(call.config, call.tool) ? call.config.tools[call.tool] : undefined;
  return entry && readConfiguredCall(entry, call);
}

function hasToolEntry({ tools }: NamedTool["config"], tool: string): boolean {
  return Object.hasOwn(tools, tool);
}
