/**
 * Owns: the extractors of plugin authors, one list for the whole process. Module instances of plugins share nothing but
 * `globalThis`, and the host loads each plugin more than once.
 *
 * 1. The newest registration of an id counts. Taking it back brings the one before it back, so that an instance of a
 *    plugin that the host drops late does not take away what another instance registered.
 * 2. Looking up a tool costs one look into a map: it happens at every tool call of the gateway.
 * 3. An extractor whose last instance ended by a reload is waited for, and its tools' calls are refused until it is back or counts as
 *    gone: as long as the hooks of its plugin are (`plugins/hooks/hook-registry.ts`, K2 and K3).
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { followInstance } from "../../hooks/follow-instance.ts";
import { HOOK_LIMITS } from "../../hooks/hook-limits.ts";
import { endInSlot, type Ending, type Slot } from "../../hooks/hook-registry.ts";
import type { HooksLifecycle } from "../../hooks/hook-types.ts";
import { shareInProcess } from "../host/share-in-process.ts";

/** A tool call that an extractor is asked about. */
export interface ExtractorCall {
  readonly tool: string;
  /** A frozen copy. They are a model's words: nothing about them is certain but that they are JSON. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The folder that relative paths are taken from. */
  readonly folder: string;
}

/** Resources that a tool call would change or look at. An empty object: none. */
export interface ExtractedResources {
  /** `queue:<name>`, `session:<key>`, or a name of your own such as `db:customers`. Files go into `paths`. */
  readonly resources?: readonly string[] | undefined;
  /** Files and folders that the call would change, from `folder`. */
  readonly paths?: readonly string[] | undefined;
  /** Files that the call looks at, from `folder`: what is written later is based on them. */
  readonly reads?: readonly string[] | undefined;
}

/** Reads the calls of some tools. Its answer adds to what is known of them otherwise. */
export interface ResourceExtractor {
  /** Names the extractor in the ledger and to people, such as `my-plugin.deploy`. */
  readonly id: string;
  /** The tools whose calls it reads. */
  readonly tools: readonly string[];
  /** Answers within a second. A call that it throws at, or answers too late or wrongly, is refused. */
  extract(call: ExtractorCall): ExtractedResources | Promise<ExtractedResources>;
}

const EXTRACTORS_MAX = 64;
/** Registrations of one id; only instances of one plugin share it. */
const REGISTRATIONS_MAX = 16;

const extractorSchema = z.object({
  id: z
    .string()
    .max(BOUNDS.nameCharsMax)
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$/u),
  tools: z.array(z.string().min(1).max(BOUNDS.nameCharsMax)).min(1).max(BOUNDS.watchedToolsMax),
  extract: z.custom<ResourceExtractor["extract"]>((value) => typeof value === "function"),
});

/** An extractor as it can be found. */
export interface FoundExtractor extends ResourceExtractor {
  /** Since when its plugin is being loaded again; absent where it can be asked. */
  readonly leftAtMs?: number;
}

interface Registry {
  readonly byId: Map<string, Slot<ResourceExtractor>>;
  byTool: ReadonlyMap<string, readonly FoundExtractor[]>;
}

const accessRegistry = shareInProcess<Registry>("resource-extractors", () => ({
  byId: new Map(),
  byTool: new Map(),
}));

/** The part of the plugin API that OpenClaw gives to `register(api)` by which an extractor ends with the instance of its plugin. */
export interface ResourceExtractorApi {
  readonly lifecycle?: HooksLifecycle | undefined;
}

/**
 * Registers an extractor and returns what takes it back. An id that is registered already is replaced. With the `api` of your plugin
 * it ends with the instance that made it; without one, call what is returned when that ends.
 *
 * @throws TypeError where the extractor is not one, RangeError where there are too many
 */
export function registerResourceExtractor(
  extractor: ResourceExtractor,
  { lifecycle }: ResourceExtractorApi = {},
): () => void {
  const parsed = extractorSchema.safeParse(extractor);
  if (!parsed.success) throw new TypeError(`not a resource extractor: ${z.prettifyError(parsed.error)}`);
  const { id, tools } = parsed.data;
  // Its own, so that each registration is told from others, and cannot be changed from outside.
  const entry: ResourceExtractor = { id, tools, extract: (call) => extractor.extract(call) };
  const { byId } = accessRegistry();
  if (!byId.has(id) && byId.size >= EXTRACTORS_MAX)
    throw new RangeError(`there are ${EXTRACTORS_MAX} resource extractors already`);
  const { entries = [] } = byId.get(id) ?? {};
  store(id, { entries: [...entries, entry].slice(-REGISTRATIONS_MAX) });
  const end = (ending: Ending): void => {
    const slot = byId.get(id);
    store(id, slot && endInSlot(slot, entry, ending));
  };
  const forget = lifecycle && followInstance(lifecycle, `${id}.resource-extractor`, end);
  return () => {
    end("withdrawn");
    forget?.();
  };
}

/** Returns the extractors that read the calls of a tool. */
export function extractorsOf(tool: string): readonly FoundExtractor[] {
  const found = accessRegistry().byTool.get(tool) ?? [];
  return found.filter((extractor) => compareAbsence(extractor, HOOK_LIMITS.gatesClosedMs) !== "longer");
}

const POLL_MS = 25;

/**
 * Returns the extractor, or the one that takes its place once its plugin has been loaded again; still away where it is not back in
 * time, `undefined` where nothing of that id reads the tool any more.
 */
export async function awaitExtractor(
  extractor: FoundExtractor,
  tool: string,
): Promise<FoundExtractor | undefined> {
  while (compareAbsence(extractor, HOOK_LIMITS.reloadMs) === "less") {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const current = extractorsOf(tool).find(({ id }) => id === extractor.id);
    if (current?.leftAtMs === undefined) return current;
  }
  return extractor;
}

/** Compares the absence of an extractor with a time. A clock that was put back counts as one that went on. */
function compareAbsence({ leftAtMs }: FoundExtractor, ms: number): "less" | "longer" | undefined {
  if (leftAtMs === undefined) return undefined;
  return Math.abs(Date.now() - leftAtMs) < ms ? "less" : "longer";
}

function findNewest({ entries, left }: Slot<ResourceExtractor>): FoundExtractor[] {
  const newest = entries.at(-1);
  if (newest) return [newest];
  return left ? [{ ...left.entry, leftAtMs: left.atMs }] : [];
}

function store(id: string, slot: Slot<ResourceExtractor> | undefined): void {
  const { byId } = accessRegistry();
  if (slot) byId.set(id, slot);
  else byId.delete(id);
  const current = [...byId.values()].flatMap(findNewest);
  const tools = new Set(current.flatMap((extractor) => extractor.tools));
  accessRegistry().byTool = new Map(
    [...tools].map((tool) => [tool, current.filter((extractor) => extractor.tools.includes(tool))]),
  );
}
