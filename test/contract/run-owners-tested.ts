/** Owns: what a suite of `RunOwners` is given to test, and the runs of either kind that it begins, takes and appends to. */
import type { CoordinationId } from "../../src/agents/coordination/contracts/ids.ts";
import type {
  RunArrival,
  OwnerToken,
  RunOwners,
  TakeRuns,
} from "../../src/agents/coordination/ports/run-owners.ts";
import type { RunAppend, RunStore } from "../../src/agents/coordination/ports/run-store.ts";

export type Append = RunAppend<{ readonly sequence: number }, unknown>;

export interface OwnedStore<Request extends Append> extends RunStore<
  Request["events"][number],
  Request["summary"],
  Request
> {
  readonly owners: RunOwners;
}

export interface OpenedOwners<Request extends Append> {
  readonly store: OwnedStore<Request>;
  close(): Promise<void>;
}

/** Writes the appends of one run, one after the other. */
export interface OwnedAuthor<Request extends Append> {
  readonly runId: CoordinationId;
  readonly begin: Request;
  /** Returns an append whose place the next one has too. */
  propose(): Request;
  append(): Request;
  /** Returns the append that ends the run, behind the one that began it. */
  end(): Request;
}

/** A ledger, empty at first, and the stores of one kind of run that are opened on it. */
export interface TestedOwners<Request extends Append> extends AsyncDisposable {
  readonly store: OwnedStore<Request>;
  readonly openAgain: () => Promise<OpenedOwners<Request>>;
  readonly createAuthor: (name: string) => OwnedAuthor<Request>;
}

export type Open<Request extends Append> = () => Promise<TestedOwners<Request>>;

export const notOwner = { code: "NOT_OWNER" };

/** Begins runs of one owner, or of nobody. */
export async function beginRuns<Request extends Append>(
  { store, createAuthor }: TestedOwners<Request>,
  names: readonly string[],
  id?: string,
): Promise<OwnedAuthor<Request>[]> {
  const authors = names.map((name) => createAuthor(name));
  for (const { begin } of authors)
    await store.append({ ...begin, ...(id !== undefined && { owner: { id, token: 1 } }) });
  return authors;
}

export async function beginOne<Request extends Append>(
  tested: TestedOwners<Request>,
  name: string,
  id?: string,
): Promise<OwnedAuthor<Request>> {
  const [author] = await beginRuns(tested, [name], id);
  if (!author) throw new Error("the run was not begun");
  return author;
}

export async function ownerOf(
  { owners }: { readonly owners: RunOwners },
  runId: CoordinationId,
): Promise<OwnerToken | undefined> {
  return (await owners.ownersOf([runId])).get(runId);
}

export async function listLog<Request extends Append>(
  store: OwnedStore<Request>,
  runId: CoordinationId,
): Promise<Request["events"][number][]> {
  return store.read(runId, { from: 0, limit: 10_000 });
}

export async function takeIds(
  owners: RunOwners,
  owner: string,
  { from = [], limit = 10, ...reach }: Partial<Omit<TakeRuns, "owner">> = {},
): Promise<CoordinationId[]> {
  return (await owners.take({ owner, from, limit, ...reach })).map(({ runId }) => runId);
}

export async function arrivalOf<Request extends Append>(
  store: OwnedStore<Request>,
  { runId }: OwnedAuthor<Request>,
): Promise<RunArrival> {
  return { runId, length: (await listLog(store, runId)).length };
}

export async function appendAs<Request extends Append>(
  store: OwnedStore<Request>,
  author: OwnedAuthor<Request>,
  owner: OwnerToken | undefined,
): Promise<void> {
  await store.append({ ...author.propose(), ...(owner && { owner }) });
  author.append();
}
