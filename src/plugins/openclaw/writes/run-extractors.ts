/**
 * Owns: asking the extractors of plugin authors, whose code may throw, never answer or answer anything. Whatever goes
 * wrong is said with the extractor's id, and the call is refused.
 */
import { z } from "zod";
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";
import { isFileResource, readResourceKind } from "../../../agents/coordination/contracts/resource-names.ts";
import type { ResourceLocation } from "../../../agents/coordination/runtime/arbiter/write-call.ts";
import { copyIsolated } from "../../hooks/isolated-copy.ts";
import {
  awaitExtractors,
  type ExtractorCall,
  type FoundExtractor,
  type ResourceExtractor,
} from "./extractor-registry.ts";
import { PATH_CHARS_MAX, parsePlainPath } from "./host-path.ts";
import { createResourceTarget } from "./resource-target.ts";
import type { ToolCall, ToolReading } from "./tool-reading.ts";

const ANSWER_MS = 1_000;

const pathSchema = z
  .string()
  .max(PATH_CHARS_MAX)
  .refine((path) => path.trim() !== "" && !path.includes("\0"));

/** A file has many names, and only its path leads to the one that it is known by. */
const nameSchema = z
  .string()
  .max(BOUNDS.resourceCharsMax)
  .regex(/^[^\p{Cc}]+$/u)
  .refine((name) => !isFileResource(name) && isResourceOfKind(name))
  .refine((name) => name.normalize("NFC").length <= BOUNDS.resourceCharsMax);

function isResourceOfKind(name: string): boolean {
  const kind = readResourceKind(name);
  return kind !== undefined && name.length > `${kind}:`.length;
}

const extractedSchema = z.strictObject({
  resources: z.array(nameSchema).max(BOUNDS.resourcesPerCallMax).optional(),
  paths: z.array(pathSchema).max(BOUNDS.resourcesPerCallMax).optional(),
  reads: z.array(pathSchema).max(BOUNDS.resourcesPerCallMax).optional(),
});

/**
 * Runs each extractor of a tool on the call and returns their readings, which are empty without extractors; waits for
 * plugins that are loaded again, and an extractor that fails, is late or away makes its reading undetermined.
 */
export async function runExtractors(call: ToolCall): Promise<readonly ToolReading[]> {
  const { tool, folder } = call;
  const extractors = await awaitExtractors(call.extractors, tool);
  if (extractors.length === 0) return [];
  const params = copyParams(call.params);
  return await Promise.all(
    extractors.map((extractor) => runExtractor(extractor, params && { tool, folder, params })),
  );
}

async function runExtractor(
  extractor: FoundExtractor,
  call: ExtractorCall | undefined,
): Promise<ToolReading> {
  try {
    if (!call || extractor.leftAtMs !== undefined) return createFailedReading(extractor);
    const answer = extractedSchema.safeParse(await extractWithinTime(extractor, call));
    return answer.success ? createExtractedReading(answer.data, call.folder) : createFailedReading(extractor);
  } catch {
    return createFailedReading(extractor);
  }
}

async function extractWithinTime(extractor: ResourceExtractor, call: ExtractorCall): Promise<unknown> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("no answer in time")), ANSWER_MS);
  try {
    return await Promise.race([extractor.extract(call), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

function createFailedReading({ id }: ResourceExtractor): ToolReading {
  return { targets: [], reads: [], undetermined: { because: "extractor_failed", extractor: id } };
}

/**
 * Creates the reading of what an extractor answered. For its paths replacing is assumed, because it is worse than
 * adding; its other resources are added to.
 */
function createExtractedReading(extracted: z.output<typeof extractedSchema>, folder: string): ToolReading {
  const { resources = [], paths = [], reads = [] } = extracted;
  return {
    targets: [
      ...parsePlaces(paths, folder).map((at) => ({ at, replaces: true })),
      ...resources.flatMap((name) => createResourceTarget(name) ?? []),
    ],
    reads: parsePlaces(reads, folder),
  };
}

function parsePlaces(paths: readonly string[], folder: string): readonly ResourceLocation[] {
  return paths.map((path) => ({ path: parsePlainPath(path) ?? path, folder }));
}

/** Returns a frozen copy of the params; `undefined` for what are no parameters. */
function copyParams(params: unknown): ExtractorCall["params"] | undefined {
  if (typeof params !== "object" || params === null || Array.isArray(params)) return undefined;
  try {
    return copyIsolated(params) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}
