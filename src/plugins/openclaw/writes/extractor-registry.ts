/**
 * Owns: the extractors of plugin authors, one list for the whole process. Module instances of plugins share nothing but
 * `globalThis`, and the host loads each plugin more than once.
 *
 * 1. The newest registration of an id counts. Taking it back brings the one before it back, so that an instance of a
 *    plugin that the host drops late does not take away what another instance registered.
 * 2. Looking up a tool costs one look into a map: it happens at every tool call of the gateway.
 * 3. An extractor whose last instance ended by a reload is waited for, and its tools' calls are refused until it is back or counts as
 *    gone: as long as the hooks of its plugin are (`plugins/hooks/hook-registry.ts`, K2 and K3). It is not waited for once a newer
 *    instance of its plugin has registered any extractor: that one does not have it any more.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { followInstance } from "../../hooks/follow-instance.ts";
import { HOOK_LIMITS } from "../../hooks/hook-limits.ts";
import { assertVersion, endInSlot, type HookEnding, type PluginSlot } from "../../hooks/hook-registry.ts";
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

/** An extractor as it was registered. */
interface ExtractorRegistration extends ResourceExtractor {
  /** The id of its plugin; absent where that is not known. */
  readonly plugin: string | undefined;
  /** The instance of the plugin that made it. */
  readonly instance: HooksLifecycle | undefined;
  /** Its place among all registrations, counted from 1. */
  readonly ordinal: number;
}

/** All extractors that plugins registered in this process. */
interface ExtractorRegistry {
  readonly version: 1;
  readonly byId: Map<string, PluginSlot<ExtractorRegistration>>;
  /** How many registrations there ever were. */
  registrations: number;
  byTool: ReadonlyMap<string, readonly FoundExtractor[]>;
}

const accessRegistry = shareInProcess<ExtractorRegistry>("resource-extractors", () => ({
  version: 1,
  byId: new Map(),
  registrations: 0,
  byTool: new Map(),
}));

/** The part of the plugin API that OpenClaw gives to `register(api)` by which an extractor ends with the instance of its plugin. */
export interface ResourceExtractorApi {
  /** The id of the plugin. */
  readonly id?: string | undefined;
  readonly lifecycle?: HooksLifecycle | undefined;
}

/**
 * Registers an extractor and returns what takes it back. An id that is registered already is replaced. With the `api` of your plugin
 * it ends with the instance that made it; without one, call what is returned when that ends.
 *
 * @throws TypeError where the extractor is not one, RangeError where there are too many, Error where another version of the package
 * holds the list
 */
export function registerResourceExtractor(
  extractor: ResourceExtractor,
  { id: plugin, lifecycle: instance }: ResourceExtractorApi = {},
): () => void {
  const parsed = extractorSchema.safeParse(extractor);
  if (!parsed.success) throw new TypeError(`not a resource extractor: ${z.prettifyError(parsed.error)}`);
  const { id, tools } = parsed.data;
  const registry = accessRegistry();
  assertVersion(registry, 1);
  const { byId } = registry;
  if (!byId.has(id) && byId.size >= EXTRACTORS_MAX)
    throw new RangeError(`there are ${EXTRACTORS_MAX} resource extractors already`);
  registry.registrations += 1;
  // Its own, so that each registration is told from others, and cannot be changed from outside.
  const entry: ExtractorRegistration = {
    id,
    tools,
    extract: (call) => extractor.extract(call),
    plugin,
    instance,
    ordinal: registry.registrations,
  };
  const { entries = [] } = byId.get(id) ?? {};
  storeRegistrations(id, { entries: [...entries, entry].slice(-REGISTRATIONS_MAX) });
  const end = (ending: HookEnding): void => {
    const slot = byId.get(id);
    storeRegistrations(id, slot && endInSlot(slot, entry, ending));
  };
  const forget = instance && followInstance(instance, `${id}.resource-extractor`, end);
  return () => {
    end("withdrawn");
    forget?.();
  };
}

/**
 * Returns the registered extractors that read the calls of a tool, also those whose plugin is being loaded again;
 * those that have been away too long are left out.
 */
export function findExtractors(tool: string): readonly FoundExtractor[] {
  const found = accessRegistry().byTool.get(tool) ?? [];
  return found.filter((extractor) => compareAbsence(extractor, HOOK_LIMITS.gatesClosedMs) !== "longer");
}

const POLL_MS = 25;

/**
 * Returns the extractors that `findCurrent` finds for a tool, at once where the plugins of all are there; while one is
 * being loaded again, waits for it, and after some seconds returns also those that are still away.
 */
export async function awaitExtractors(
  findCurrent: typeof findExtractors,
  tool: string,
): Promise<readonly FoundExtractor[]> {
  const untilMs = Date.now() + HOOK_LIMITS.reloadMs;
  for (;;) {
    const found = findCurrent(tool);
    const isAwaited = found.some((extractor) => compareAbsence(extractor, HOOK_LIMITS.reloadMs) === "less");
    if (!isAwaited || Date.now() >= untilMs) return found;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Compares the absence of an extractor with a time. A clock that was put back counts as one that went on. */
function compareAbsence({ leftAtMs }: FoundExtractor, ms: number): "less" | "longer" | undefined {
  if (leftAtMs === undefined) return undefined;
  return Math.abs(Date.now() - leftAtMs) < ms ? "less" : "longer";
}

function findNewest({ entries, left }: PluginSlot<ExtractorRegistration>): FoundExtractor[] {
  const newest = entries.at(-1);
  if (newest) return [newest];
  return left ? [{ ...left.entry, leftAtMs: left.atMs }] : [];
}

/** Stores the registrations of an id, and works out anew which extractors read each tool. */
function storeRegistrations(id: string, slot: PluginSlot<ExtractorRegistration> | undefined): void {
  const { byId } = accessRegistry();
  if (slot) byId.set(id, slot);
  else byId.delete(id);
  const entries = [...byId.values()].flatMap((each) => each.entries);
  for (const [leftId, { left }] of byId)
    if (left && entries.some((entry) => isOfNewerInstance(entry, left.entry))) byId.delete(leftId);
  const current = [...byId.values()].flatMap(findNewest);
  const tools = new Set(current.flatMap((extractor) => extractor.tools));
  accessRegistry().byTool = new Map(
    [...tools].map((tool) => [tool, current.filter((extractor) => extractor.tools.includes(tool))]),
  );
}

/** True for the registration of an instance of the same plugin that is newer than the one of the other registration. */
function isOfNewerInstance(entry: ExtractorRegistration, other: ExtractorRegistration): boolean {
  const isOfSamePlugin = entry.plugin !== undefined && entry.plugin === other.plugin;
  return isOfSamePlugin && entry.instance !== other.instance && entry.ordinal > other.ordinal;
}
