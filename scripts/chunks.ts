/**
 * Owns: which chunk of the package each module is written to. A bundler left to itself writes one chunk for each set of
 * entries that share modules, 335 of them, and OpenClaw copies each file of a plugin every time that it loads it.
 *
 * Here modules that are loaded together share a chunk. Layers come first: a module belongs to the first layer that
 * needs it, so that a chunk imports only chunks of its own and earlier layers. Behind the layers, modules that the same
 * lazily loaded parts need are one chunk, and small ones that need no such part are one chunk for all of them.
 */
import type { OutputChunk } from "rolldown";

interface Layer {
  readonly name: string;
  /** Each matches the paths of entries, from the root of the project. A module that all of them need is of the layer. */
  readonly neededBy: readonly RegExp[];
}

const PLUGIN = /^src\/plugins\/openclaw\/(index|writes\/resources)\.ts$/u;
const GATEWAY = /^src\/plugins\/openclaw\//u;
/** Entries that work without the host. They get no chunk that imports the host's modules. */
const WITHOUT_HOST = /^(?!src\/plugins\/(openclaw|hooks)\/)/u;

const LAYERS: readonly Layer[] = [
  // The gateway loads this and the next layer while the flag is off.
  { name: "common", neededBy: [PLUGIN, WITHOUT_HOST] },
  { name: "plugin", neededBy: [PLUGIN] },
  { name: "hooks", neededBy: [/^src\/plugins\/hooks\//u] },
  // The command that is called most often waits for no other.
  { name: "ledger", neededBy: [/^src\/plugins\/ledger-(reader|setting)\.ts$/u] },
  { name: "command-line", neededBy: [/^src\/plugins\/cli\/(program|ledger\/list-command)\.ts$/u] },
  { name: "coordination", neededBy: [/^src\/agents\/coordination\/index\.ts$/u] },
  // The gateway loads this and the next layer while the flag is on.
  { name: "runtime", neededBy: [GATEWAY, WITHOUT_HOST] },
  { name: "gateway", neededBy: [GATEWAY] },
  { name: "commands", neededBy: [/^src\/plugins\/(cli|reports)\//u] },
];

/** Bytes. */
const SMALL_MAX = 20_000;
const SMALL_CHUNK = "shared";

/** The chunks of a bundle that nothing was decided about, and what is decided about each. */
interface Plan {
  readonly chunks: ReadonlyMap<string, OutputChunk>;
  readonly chosen: Map<string, string>;
}

/** Returns the chunk of each module, by the module's id, for the chunks that a bundler made by itself. */
export function chooseChunks(output: readonly OutputChunk[], root: string): Map<string, string> {
  const plan: Plan = {
    chunks: new Map(output.map((chunk) => [chunk.fileName, chunk])),
    chosen: new Map(),
  };
  const entries = output.filter(({ isEntry, isDynamicEntry }) => isEntry || isDynamicEntry);
  for (const { name, neededBy } of LAYERS) {
    const [first = new Set<string>(), ...others] = neededBy.map((paths) =>
      listNeeded(
        plan,
        entries.filter(({ facadeModuleId }) => paths.test((facadeModuleId ?? "").slice(root.length + 1))),
      ),
    );
    for (const file of first) if (others.every((needed) => needed.has(file))) choose(plan, file, name);
  }
  const users = findUsers(
    plan,
    entries.filter(({ fileName }) => !plan.chosen.has(fileName)),
  );
  gatherSmall(plan, users.keys());
  gatherByUsers(plan, users);
  return new Map(
    output.flatMap(({ fileName, moduleIds }) =>
      moduleIds.map((id) => [id, plan.chosen.get(fileName) ?? SMALL_CHUNK] as const),
    ),
  );
}

/** The first choice counts. */
function choose({ chosen }: Plan, file: string, name: string): void {
  if (!chosen.has(file)) chosen.set(file, name);
}

/** Lists the files of entries and of all that they import at once. */
function listNeeded({ chunks }: Plan, entries: readonly OutputChunk[]): Set<string> {
  const needed = new Set(entries.map(({ fileName }) => fileName));
  for (const file of needed) {
    for (const imported of chunks.get(file)?.imports ?? []) if (chunks.has(imported)) needed.add(imported);
  }
  return needed;
}

/** Finds the entries that need each file of no layer. */
function findUsers(plan: Plan, entries: readonly OutputChunk[]): Map<string, string[]> {
  const users = new Map<string, string[]>();
  for (const entry of entries) {
    for (const file of listNeeded(plan, [entry])) {
      if (plan.chosen.has(file)) continue;
      users.set(file, [...(users.get(file) ?? []), entry.fileName]);
    }
  }
  return users;
}

/** Gathers what is small and imports nothing but layers and what is gathered already. */
function gatherSmall({ chunks, chosen }: Plan, files: Iterable<string>): void {
  const left = new Set(files);
  for (let before = -1; before !== left.size;) {
    before = left.size;
    for (const file of left) {
      const { code = "", imports = [] } = chunks.get(file) ?? {};
      const isReady = imports.every((imported) => !chunks.has(imported) || chosen.has(imported));
      if (code.length > SMALL_MAX || !isReady) continue;
      chosen.set(file, SMALL_CHUNK);
      left.delete(file);
    }
  }
}

/** Gathers what the same entries need, under the name of the first of it. */
function gatherByUsers(plan: Plan, users: ReadonlyMap<string, readonly string[]>): void {
  const names = new Map<string, string>();
  for (const [file, entries] of users) {
    const key = entries.toSorted().join();
    const name = names.get(key) ?? `${plan.chunks.get(file)?.name}-of-${entries.length}`;
    names.set(key, name);
    choose(plan, file, name);
  }
}
