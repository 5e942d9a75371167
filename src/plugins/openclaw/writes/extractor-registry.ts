/**
 * Owns: the extractors of plugin authors, one list for the whole process. Module instances of plugins share nothing but
 * `globalThis`, and the host loads each plugin more than once.
 *
 * 1. The newest registration of an id counts. Taking it back brings the one before it back, so that an instance of a
 *    plugin that the host drops late does not take away what another instance registered.
 * 2. Looking up a tool costs one look into a map: it happens at every tool call of the gateway.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { followInstance } from "../../hooks/follow-instance.ts";
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

interface Registry {
  /** Registrations by id, the newest last. */
  readonly byId: Map<string, readonly ResourceExtractor[]>;
  byTool: ReadonlyMap<string, readonly ResourceExtractor[]>;
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
  store(id, [...(byId.get(id) ?? []), entry].slice(-REGISTRATIONS_MAX));
  const takeBack = (): void =>
    store(
      id,
      (byId.get(id) ?? []).filter((other) => other !== entry),
    );
  if (lifecycle) followInstance(lifecycle, `${id}.resource-extractor`, takeBack);
  return takeBack;
}

/** Returns the extractors that read the calls of a tool. */
export function extractorsOf(tool: string): readonly ResourceExtractor[] {
  return accessRegistry().byTool.get(tool) ?? [];
}

function store(id: string, registrations: readonly ResourceExtractor[]): void {
  const { byId } = accessRegistry();
  if (registrations.length === 0) byId.delete(id);
  else byId.set(id, registrations);
  const current = [...byId.values()].flatMap((each) => each.at(-1) ?? []);
  const tools = new Set(current.flatMap((extractor) => extractor.tools));
  accessRegistry().byTool = new Map(
    [...tools].map((tool) => [tool, current.filter((extractor) => extractor.tools.includes(tool))]),
  );
}
