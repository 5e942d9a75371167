/**
 * Owns: the files of the workspace as runs see them. A tenant's runs share its workspace; a fork, and the runs that it starts,
 * write into one of their own, over the workspace as it was where the fork left its source.
 */
import { isCoordinationError } from "../../../contracts/errors.ts";
import { formatTimestamp, type CoordinationId } from "../../../contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../../contracts/workflows/workflow-bounds.ts";
import type { WorkflowEvent } from "../../../contracts/workflows/workflow-events.ts";
import type { PlannedUpdate, WorkspaceScope } from "../../../contracts/workflows/workspace.ts";
import type { WorkflowStore } from "../../../ports/workflow-store.ts";
import type {
  WorkspaceAsOf,
  WorkspaceListed,
  WorkspaceListing,
  WorkspaceVersion,
  WorkspaceWrite,
} from "../../../ports/workspace-store.ts";
import type { EffectOutcome, NodeEffect, NodeError } from "../../../workflow/node-contract/node-type.ts";
import type { WorkflowRun } from "../../../workflow/state/workflow-state.ts";
import type { TurnFile } from "../../../workflow/node-contract/turn-inputs.ts";
import { readForkLineage, findMemoryHome } from "./fork-memory.ts";
import { maskText } from "./mask-secrets.ts";
import type { WorkflowHostDependencies } from "./workflow-dependencies.ts";

export type WorkspaceDependencies = Pick<WorkflowHostDependencies, "store" | "clock" | "secrets">;

/** A layer of versions; the one below shows where it has no version of a file. */
interface WorkspaceLayer {
  readonly at: WorkspaceScope;
  readonly asOf?: WorkspaceAsOf;
}

/** Returns the scope of the workspace that the clients of a tenant read and write. It is stored with each file. */
export function createOwnWorkspaceScope(tenant: string): WorkspaceScope {
  return { tenant, scope: "own" };
}

/** Lists the layers of files that a run sees, its own first. `before`: an event of the run; absent: now. */
async function listWorkspaceLayers(
  store: WorkflowStore,
  run: WorkflowRun,
  before?: number,
): Promise<[WorkspaceLayer, ...WorkspaceLayer[]]> {
  const { tenant } = run.started.owner;
  const home = findMemoryHome(run);
  const asOf = before === undefined ? undefined : { runId: run.runId, sequence: before };
  const ownLayer: WorkspaceLayer = { at: createLayerScope(tenant, home), ...(asOf && { asOf }) };
  // Before the place of the fork, a fork's own events are its source's.
  let sequence = home === run.runId ? (before ?? Infinity) : Infinity;
  const under: WorkspaceLayer[] = [];
  for (let fork = home; fork !== undefined;) {
    const { sourceRunId, until, below } = await readForkLineage({ store }, fork);
    sequence = Math.min(sequence, until);
    under.push({ at: createLayerScope(tenant, below), asOf: { runId: sourceRunId, sequence } });
    // Files around the source are as they were when the source began.
    if (below !== sourceRunId) sequence = Infinity;
    fork = below;
  }
  return [ownLayer, ...under];
}

function createLayerScope(tenant: string, home: CoordinationId | undefined): WorkspaceScope {
  return home === undefined ? createOwnWorkspaceScope(tenant) : { tenant, scope: `fork:${home}` };
}

export type WorkspaceFile = Extract<WorkspaceListed, { readonly kind: "file" }>;

/** A file that a run sees, and the layer that shows it. */
interface LayeredFile {
  readonly layer: WorkspaceLayer;
  readonly file: WorkspaceFile;
}

/** Lists the files before an event of the run, sorted by path. `undefined`: too much has changed since. */
async function listFilesBefore(
  store: WorkflowStore,
  run: WorkflowRun,
  before: number,
  most: Pick<WorkspaceListing, "scanMax"> = {},
): Promise<LayeredFile[] | undefined> {
  const layers = await listWorkspaceLayers(store, run, before);
  const filesByPath = new Map<string, LayeredFile | undefined>();
  for (const layer of layers) {
    const { at, asOf } = layer;
    const withRemoved = layers.length > 1;
    const listed = await store.workspace.list(at, { withRemoved, ...most, ...(asOf && { asOf }) });
    if (!listed) return undefined;
    for (const file of listed)
      if (!filesByPath.has(file.path))
        filesByPath.set(file.path, file.kind === "file" ? { layer, file } : undefined);
  }
  return [...filesByPath.values()]
    .filter((seen) => seen !== undefined)
    .toSorted((one, other) => (one.file.path < other.file.path ? -1 : 1));
}

/** Whoever looks at an old run does not look at all that was written since. */
const SHOWN = { scanMax: 2_000 };

/**
 * Lists the files that a run's workspace held when the run began, by path; `undefined` where too much has changed
 * since to tell.
 */
export async function listFilesAtStart(
  store: WorkflowStore,
  run: WorkflowRun,
): Promise<WorkspaceFile[] | undefined> {
  return (await listFilesBefore(store, run, 0, SHOWN))?.map(({ file }) => file);
}

export type ReadFiles = { readonly files: readonly TurnFile[] } | { readonly error: NodeError };

/** The files that are wanted of a workspace, as they were before an event of the run. */
interface WorkspaceQuery {
  /** An event of the run. */
  readonly before: number;
  /** Those, and what begins with one that ends with a slash; none: all. */
  readonly paths: readonly string[];
  /** Contents of so many files are read, the first by their paths; absent: of all. */
  readonly contentsMax?: number;
}

/**
 * Returns the files at the wanted paths as they were before an event of the run, the first `contentsMax` with their
 * contents, or the error for which they cannot be read.
 */
export async function readWorkspaceFiles(
  store: WorkflowStore,
  run: WorkflowRun,
  { before, paths, contentsMax = Infinity }: WorkspaceQuery,
): Promise<ReadFiles> {
  const wanted = (await listFilesBefore(store, run, before))?.filter(({ file }) =>
    isAmongPaths(file.path, paths),
  );
  if (!wanted) return { error: UNAVAILABLE };
  const read = await readFileContents(store, wanted.slice(0, contentsMax));
  if ("error" in read) return read;
  const files = wanted.map(({ file: { path, version } }, index) => {
    const content = read.texts[index];
    return { path, version, ...(content !== undefined && { content }) };
  });
  return { files };
}

async function readFileContents(
  { workspace }: WorkflowStore,
  seen: readonly LayeredFile[],
): Promise<{ readonly texts: readonly string[] } | { readonly error: NodeError }> {
  const texts: string[] = [];
  let chars = 0;
  for (const { layer, file } of seen) {
    const found = await workspace.get(layer.at, file.path, { version: file.version });
    if (found?.kind !== "file" || found.content === undefined) return { error: UNAVAILABLE };
    chars += found.content.length;
    if (chars > WORKFLOW_BOUNDS.runCharsMax) return { error: TOO_MUCH };
    texts.push(found.content);
  }
  return { texts };
}

const TOO_MUCH: NodeError = {
  code: "workspace_too_large",
  message: `the files hold more than ${WORKFLOW_BOUNDS.runCharsMax} characters in all: say which are wanted`,
};

const UNAVAILABLE: NodeError = {
  code: "workspace_snapshot_unavailable",
  message: "the workspace as it was then is no longer kept, because too much was written since",
};

/** True for a path that is listed or below a listed folder, and for every path where none is listed. */
function isAmongPaths(path: string, paths: readonly string[]): boolean {
  return (
    paths.length === 0 || paths.some((each) => (each.endsWith("/") ? path.startsWith(each) : path === each))
  );
}

type WriteEffect = NodeEffect & { readonly kind: "write_workspace" };
/** A function that takes the outcomes of an effect into the run's log. */
type OutcomeSink = (outcomes: readonly EffectOutcome[]) => Promise<void>;

/** Others may write the same file at the same time: then it is the version after theirs. */
const WRITES_MAX = 8;

/**
 * Plans the write of a workspace file and delivers it as the outcome, or the error for which it is not made. It is
 * planned again, up to `WRITES_MAX` times in all, where others wrote the same file meanwhile.
 */
export async function writeWorkspaceFile(
  dependencies: WorkspaceDependencies,
  run: WorkflowRun,
  { effect, deliver }: { readonly effect: WriteEffect; readonly deliver: OutcomeSink },
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const planned = await planFileWrite(dependencies, run, effect);
    try {
      await deliver(["code" in planned ? { kind: "failed", error: planned } : createWriteOutcome(planned)]);
      return;
    } catch (error) {
      const isLate = isCoordinationError(error) && error.code === "WORKSPACE_CONFLICT";
      if (!isLate || tries >= WRITES_MAX) throw error;
    }
  }
}

function createWriteOutcome(update: PlannedUpdate): EffectOutcome {
  return { kind: "workspace_written", update };
}

/** Returns the next version of the file, or the error where it cannot be written. */
async function planFileWrite(
  { store, clock, secrets }: WorkspaceDependencies,
  run: WorkflowRun,
  effect: WriteEffect,
): Promise<PlannedUpdate | NodeError> {
  const { path, content } = effect;
  const layers = await listWorkspaceLayers(store, run);
  const [{ at }] = layers;
  const { ownVersion, seen } = await findNewestVersion(store, layers, path);
  const current = seen?.kind === "file" ? seen.version : 0;
  if (effect.ifVersion !== undefined && effect.ifVersion !== current)
    return createVersionConflict(path, current);
  if (current === 0 && !(await hasRoomForFile(store, at))) return FULL;
  const text = maskText(content.text, secrets);
  if (new TextEncoder().encode(text).length > WORKFLOW_BOUNDS.workspaceFileBytesMax) return TOO_LARGE;
  return {
    at,
    path,
    version: (seen?.version ?? 0) + 1,
    previous: ownVersion,
    content: { ...content, text },
    updatedAt: formatTimestamp(clock.now()),
  };
}

/** The newest version of a file that the layers show, and that of the own layer. */
interface NewestVersions {
  /** The version in the own layer, 0 where it has none. */
  readonly ownVersion: number;
  readonly seen?: WorkspaceVersion;
}

/** Finds the version of a file that the layers show, and that of the own layer. */
async function findNewestVersion(
  { workspace }: WorkflowStore,
  layers: readonly WorkspaceLayer[],
  path: string,
): Promise<NewestVersions> {
  let ownVersion: number | undefined;
  for (const { at, asOf } of layers) {
    const seen = await workspace.get(at, path, asOf && { asOf });
    ownVersion ??= seen?.version ?? 0;
    if (seen) return { ownVersion, seen };
  }
  return { ownVersion: ownVersion ?? 0 };
}

async function hasRoomForFile({ workspace }: WorkflowStore, at: WorkspaceScope): Promise<boolean> {
  return ((await workspace.list(at))?.length ?? 0) < WORKFLOW_BOUNDS.workspaceFilesMax;
}

function createVersionConflict(path: string, version: number): NodeError {
  const message = version === 0 ? `there is no ${path}` : `${path} has the version ${version}`;
  return { code: "workspace_conflict", message };
}

const FULL: NodeError = {
  code: "workspace_too_large",
  message: `a workspace has at most ${WORKFLOW_BOUNDS.workspaceFilesMax} files`,
};

const TOO_LARGE: NodeError = {
  code: "workspace_too_large",
  message: `a file has at most ${WORKFLOW_BOUNDS.workspaceFileBytesMax} bytes`,
};

/**
 * Creates the workspace write that is stored with the events of an outcome; empty for an outcome that wrote no file,
 * or of which no event tells.
 */
export function createWorkspaceWrites(
  { nodeId }: NodeEffect,
  outcome: EffectOutcome,
  events: readonly WorkflowEvent[],
): WorkspaceWrite[] {
  if (outcome.kind !== "workspace_written") return [];
  const teller = events.find((event) => event.type === "workspace.updated" && event.nodeId === nodeId);
  return teller ? [{ ...outcome.update, sequence: teller.sequence }] : [];
}
