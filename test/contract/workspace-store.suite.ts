/** Owns: what every store must do with workspace files: who has them, their versions, and what was there before an event. */
import { hash } from "node:crypto";
import { expect, it } from "vitest";
import { formatTimestamp } from "../../src/agents/coordination/contracts/ids.ts";
import { WORKFLOW_BOUNDS } from "../../src/agents/coordination/contracts/workflows/workflow-bounds.ts";
import {
  formatWorkspaceEtag,
  type WorkspaceScope,
} from "../../src/agents/coordination/contracts/workflows/workspace.ts";
import type { WorkspaceAsOf, WorkspaceWritten } from "../../src/agents/coordination/ports/workspace-store.ts";
import type { WorkflowAppend, WorkflowStore } from "../../src/agents/coordination/ports/workflow-store.ts";
import {
  beginRun,
  createNodeStarted,
  NOW,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
  type Open,
  type WorkflowAuthor,
} from "./workflow-store-tested.ts";

const OWN: WorkspaceScope = { tenant: "acme", scope: "own" };
const UPDATED = formatTimestamp(NOW);

interface Put {
  readonly at?: WorkspaceScope;
  readonly ifMatch?: readonly string[] | "any";
}

function put(store: WorkflowStore, path: string, text: string, { at = OWN, ifMatch }: Put = {}) {
  const content = { contentType: "text/markdown", text };
  const change = { at, path, content, updatedAt: UPDATED, ...(ifMatch && { ifMatch }) };
  return store.workspace.write(change);
}

function remove(store: WorkflowStore, path: string, { at = OWN, ifMatch }: Put = {}) {
  const change = { at, path, content: null, updatedAt: UPDATED, ...(ifMatch && { ifMatch }) };
  return store.workspace.write(change);
}

function etagOf(written: WorkspaceWritten): string {
  if (written.kind !== "written") throw new Error(`nothing was written: ${written.kind}`);
  return formatWorkspaceEtag(written.entry.version, written.entry.sha256);
}

interface FileQuery {
  readonly at?: WorkspaceScope;
  readonly asOf?: WorkspaceAsOf;
  readonly version?: number;
}

/** A read file: its content, its fate, or that there is none. */
async function read(store: WorkflowStore, path: string, query: FileQuery = {}): Promise<string> {
  const { at = OWN, ...version } = query;
  const found = await store.workspace.get(at, path, version);
  if (!found) return "none";
  return found.kind === "removed" ? `removed ${found.version}` : (found.content ?? "given up");
}

async function listPaths(store: WorkflowStore, { at = OWN, asOf }: FileQuery = {}): Promise<unknown> {
  const files = await store.workspace.list(at, asOf ? { asOf } : {});
  return files?.map(({ path, version }) => `${path} ${version}`);
}

interface RunWrite {
  readonly path: string;
  readonly text: string | null;
  readonly version: number;
  readonly at?: WorkspaceScope;
}

/** An append in which the run writes files, each told by its event. */
function createWrites(author: WorkflowAuthor, files: readonly RunWrite[]): WorkflowAppend {
  const report = files.map(
    ({ path, version }) => ({ type: "workspace.updated", payload: { path, version } }) as const,
  );
  const request = author.propose(report);
  const first = request.events[0]?.sequence ?? 0;
  const workspace = files.map(({ path, text, version, at = OWN }, index) => ({
    at,
    path,
    version,
    previous: version - 1,
    sequence: first + index,
    updatedAt: UPDATED,
    content: text === null ? null : { contentType: "text/plain", text },
  }));
  return { ...request, workspace };
}

/** Makes the append the author's own, so that the next one lies behind it. */
async function append(
  store: WorkflowStore,
  author: WorkflowAuthor,
  files: readonly RunWrite[],
): Promise<void> {
  const request = createWrites(author, files);
  await store.append(request);
  author.append(
    files.map(({ path, version }) => ({ type: "workspace.updated", payload: { path, version } })),
  );
}

async function beginWorkspaceRun(store: WorkflowStore, name: string): Promise<WorkflowAuthor> {
  const { author, request } = beginRun(name);
  await store.append(request);
  return author;
}

const createAsOf = (author: WorkflowAuthor, sequence: number): { readonly asOf: WorkspaceAsOf } => ({
  asOf: { runId: author.runId, sequence },
});

export function describeWorkspace(open: Open): void {
  describeFiles(open);
  describeMatching(open);
  describeRunWrites(open);
  describeAsOf(open);
  describeBounds(open);
}

function describeFiles(open: Open): void {
  it("keeps each version of a file, and reads it as it was written", async () => {
    await using tested = await open();
    const { store } = tested;
    const texts = ["first", "ünïcode 🜁 \u0000 \n", ""];
    for (const [index, text] of texts.entries())
      expect(await put(store, "docs/a.md", text)).toEqual({
        kind: "written",
        entry: {
          path: "docs/a.md",
          version: index + 1,
          contentType: "text/markdown",
          updatedAt: UPDATED,
          sha256: hash("sha256", text),
        },
      });
    expect(await read(store, "docs/a.md")).toBe("");
    for (const [index, text] of texts.entries())
      expect(await read(store, "docs/a.md", { version: index + 1 })).toBe(text);
    expect(await read(store, "docs/a.md", { version: 4 })).toBe("none");
    expect(await read(store, "docs/A.md")).toBe("none");
  });

  it("lists what is there by path, and goes on counting after a removal", async () => {
    await using tested = await open();
    const { store } = tested;
    await put(store, "b", "1");
    await put(store, "a/z", "1");
    await put(store, "B", "1");
    await put(store, "b", "2");
    expect(await listPaths(store)).toEqual(["B 1", "a/z 1", "b 2"]);
    expect(await remove(store, "b")).toEqual({ kind: "removed", version: 3 });
    expect(await read(store, "b")).toBe("removed 3");
    expect(await listPaths(store)).toEqual(["B 1", "a/z 1"]);
    expect(await remove(store, "b")).toEqual({ kind: "absent" });
    expect(await remove(store, "never")).toEqual({ kind: "absent" });
    expect(await put(store, "b", "again")).toMatchObject({ entry: { version: 4 } });
    expect(await read(store, "b", { version: 2 })).toBe("2");
    const listed = await store.workspace.list(OWN, { withRemoved: true });
    expect(listed?.map(({ kind }) => kind)).toEqual(["file", "file", "file"]);
    await remove(store, "B");
    expect(await store.workspace.list(OWN, { withRemoved: true })).toContainEqual({
      kind: "removed",
      path: "B",
      version: 2,
    });
  });

  it("keeps tenants and scopes apart (WCT-1)", async () => {
    await using tested = await open();
    const { store } = tested;
    const author = await beginWorkspaceRun(store, "a");
    await put(store, "a", "mine");
    const strangers = [
      { ...OWN, tenant: "evil" },
      { ...OWN, scope: "other" },
      { tenant: "", scope: "" },
      { tenant: "acme%", scope: "own" },
    ];
    for (const at of strangers) {
      expect(await read(store, "a", { at })).toBe("none");
      expect(await read(store, "a", { at, version: 1 })).toBe("none");
      expect(await read(store, "a", { at, ...createAsOf(author, 9) })).toBe("none");
      expect(await listPaths(store, { at })).toEqual([]);
      expect(await put(store, "a", "theirs", { at })).toMatchObject({ entry: { version: 1 } });
      expect(await read(store, "a", { at })).toBe("theirs");
    }
    expect(await read(store, "a")).toBe("mine");
    expect(await listPaths(store)).toEqual(["a 1"]);
  });
}

function describeMatching(open: Open): void {
  it("writes and removes only what matches, and says what is there", async () => {
    await using tested = await open();
    const { store } = tested;
    for (const ifMatch of ["any", ['"v1-0"']] as const)
      expect(await put(store, "a", "1", { ifMatch })).toEqual({ kind: "conflict", currentVersion: 0 });
    const first = etagOf(await put(store, "a", "1"));
    const second = etagOf(await put(store, "a", "2", { ifMatch: ['"other"', first] }));
    const stale = { kind: "conflict", currentVersion: 2 };
    expect(await put(store, "a", "3", { ifMatch: [first] })).toEqual(stale);
    expect(await remove(store, "a", { ifMatch: [first] })).toEqual(stale);
    expect(await read(store, "a")).toBe("2");
    expect(await remove(store, "a", { ifMatch: [second] })).toEqual({ kind: "removed", version: 3 });
    expect(await put(store, "a", "4", { ifMatch: "any" })).toEqual({ kind: "conflict", currentVersion: 0 });
    // The same words under another version are another file to whoever holds the tag.
    const again = etagOf(await put(store, "a", "1"));
    expect(again).not.toBe(first);
    expect(await put(store, "a", "5", { ifMatch: "any" })).toMatchObject({ kind: "written" });
  });

  it("lets one of several writers of the same version be the first", async () => {
    await using tested = await open();
    const { store } = tested;
    const tag = etagOf(await put(store, "a", "0"));
    const texts = ["1", "2", "3", "4"];
    const written = await Promise.all(texts.map((text) => put(store, "a", text, { ifMatch: [tag] })));
    expect(written.map(({ kind }) => kind).toSorted()).toEqual([
      "conflict",
      "conflict",
      "conflict",
      "written",
    ]);
    const winner = texts[written.findIndex(({ kind }) => kind === "written")];
    expect(await read(store, "a")).toBe(winner);
  });
}

function describeRunWrites(open: Open): void {
  it("takes a run's write with the event that tells of it, or not at all", async () => {
    await using tested = await open();
    const { store } = tested;
    const author = await beginWorkspaceRun(store, "a");
    const good = createWrites(author, [{ path: "a", text: "run", version: 1 }]);
    const [write] = good.workspace ?? [];
    if (!write) throw new Error("one write");
    const wrong = [
      [{ ...write, sequence: 0 }],
      [{ ...write, path: "b" }],
      [{ ...write, version: 2 }],
      [write, write],
    ];
    for (const workspace of wrong)
      await expect(store.append({ ...good, workspace })).rejects.toMatchObject({
        name: "InvariantViolation",
      });
    expect(await read(store, "a")).toBe("none");
    await store.append(good);
    expect(await read(store, "a")).toBe("run");
    // Placed where another append is: neither event nor file.
    await expect(store.append({ ...good, workspace: [{ ...write, previous: 1 }] })).rejects.toMatchObject({
      code: "LEDGER_CONFLICT",
    });
  });

  it("refuses a run's write where another one came first, and writes nothing of the append", async () => {
    await using tested = await open();
    const { store } = tested;
    const author = await beginWorkspaceRun(store, "a");
    await put(store, "a", "by hand");
    const late = createWrites(author, [
      { path: "b", text: "b", version: 1 },
      { path: "a", text: "run", version: 1 },
    ]);
    await expect(store.append(late)).rejects.toMatchObject({ code: "WORKSPACE_CONFLICT" });
    expect(await listPaths(store)).toEqual(["a 1"]);
    expect((await store.entry(author.runId))?.length).toBe(2);
    await append(store, author, [
      { path: "b", text: "b", version: 1 },
      { path: "a", text: "run", version: 2 },
      { path: "a", text: "run again", version: 3 },
    ]);
    expect(await read(store, "a")).toBe("run again");
    expect(await listPaths(store)).toEqual(["a 3", "b 1"]);
  });

  it("gives versions that are asked for together one after the other", async () => {
    await using tested = await open();
    const { store } = tested;
    const authors = await Promise.all(["a", "b", "c"].map((name) => beginWorkspaceRun(store, name)));
    const [one, two, three] = authors;
    if (!one || !two || !three) throw new Error("three runs");
    const pendingAnswer = [
      put(store, "f", "by hand"),
      store.append(createWrites(one, [{ path: "f", text: "of one", version: 1 }])),
      store.append(createWrites(two, [{ path: "f", text: "of two", version: 1 }])),
      store.append(createWrites(three, [{ path: "f", text: "of three", version: 2 }])),
    ];
    const ended = await Promise.allSettled(pendingAnswer);
    const isWritten = ended.map(({ status }) => status === "fulfilled");
    const newest = (await store.workspace.get(OWN, "f"))?.version ?? 0;
    expect(newest).toBe(isWritten.filter(Boolean).length);
    const texts = await Promise.all(
      Array.from({ length: newest }, (_, index) => read(store, "f", { version: index + 1 })),
    );
    expect(new Set(texts).size).toBe(newest);
  });
}

function describeAsOf(open: Open): void {
  it("has before an event what was written before it, by anybody, and nothing later", async () => {
    await using tested = await open();
    const { store } = tested;
    await put(store, "hand", "1");
    const one = await beginWorkspaceRun(store, "one");
    await put(store, "hand", "2");
    const other = await beginWorkspaceRun(store, "other");
    await append(store, one, [{ path: "run", text: "1", version: 1 }]);
    await remove(store, "hand");
    await append(store, other, [{ path: "run", text: "2", version: 2 }]);
    await put(store, "hand", "4");

    expect(await listPaths(store, createAsOf(one, 0))).toEqual(["hand 1"]);
    expect(await listPaths(store, createAsOf(one, 1))).toEqual(["hand 1"]);
    // The run's own write is not there before the event that tells of it.
    expect(await listPaths(store, createAsOf(one, 2))).toEqual(["hand 2"]);
    expect(await read(store, "run", createAsOf(one, 2))).toBe("none");
    expect(await read(store, "hand", createAsOf(other, 0))).toBe("2");
    expect(await listPaths(store, createAsOf(other, 2))).toEqual(["run 1"]);
    expect(await read(store, "hand", createAsOf(other, 2))).toBe("removed 3");
    expect(await read(store, "run", { ...createAsOf(other, 2), version: 2 })).toBe("none");
    // At the end of a log is what the run itself wrote, and nothing that came behind its last event.
    expect(await listPaths(store, createAsOf(one, 3))).toEqual(["hand 2", "run 1"]);
    expect(await listPaths(store, createAsOf(other, 3))).toEqual(["run 2"]);
    expect(await listPaths(store, createAsOf(other, 99))).toEqual(["run 2"]);
    expect(await listPaths(store)).toEqual(["hand 4", "run 2"]);
  });

  it("gives two who look behind a run's end the same, whatever was written between them", async () => {
    await using tested = await open();
    const { store } = tested;
    const one = await beginWorkspaceRun(store, "one");
    const first = await listPaths(store, createAsOf(one, 2));
    await put(store, "a", "late");
    expect(await listPaths(store, createAsOf(one, 2))).toEqual(first);
    await store.append(one.append([createNodeStarted("second")]));
    expect(await listPaths(store, createAsOf(one, 2))).toEqual(["a 1"]);
  });

  it("knows nothing of a time that no run tells of", async () => {
    await using tested = await open();
    const { store } = tested;
    await put(store, "a", "1");
    const asOf = { runId: nameWorkflowRun("never"), sequence: 3 };
    expect(await store.workspace.get(OWN, "a", { asOf })).toBeUndefined();
    expect(await store.workspace.list(OWN, { asOf })).toBeUndefined();
  });

  it("is found again by another store of the ledger", async () => {
    await using tested = await open();
    const one = await beginWorkspaceRun(tested.store, "one");
    await append(tested.store, one, [{ path: "a", text: "1", version: 1 }]);
    await put(tested.store, "a", "2");
    const opened = await tested.ledger.open();
    expect(await read(opened.workflows, "a", createAsOf(one, 3))).toBe("1");
    expect(await put(opened.workflows, "a", "3")).toMatchObject({ entry: { version: 3 } });
    await opened.close();
    expect(await read(tested.store, "a")).toBe("3");
  });
}

function describeBounds(open: Open): void {
  it("keeps the contents of so many versions, and says of the others that they are given up", async () => {
    await using tested = await open();
    const { store } = tested;
    const author = createWorkflowAuthor("a");
    await put(store, "a", "1");
    await store.append(author.append([createRunStarted()]));
    const { workspaceVersionsMax: kept } = WORKFLOW_BOUNDS;
    for (let version = 2; version <= kept + 2; version += 1) await put(store, "a", String(version));
    expect(await read(store, "a", { version: 2 })).toBe("given up");
    expect(await read(store, "a", { version: 3 })).toBe("3");
    // It was there, and what was in it is not known any more: that is not the same as no file.
    expect(await read(store, "a", createAsOf(author, 0))).toBe("given up");
    expect(await listPaths(store, createAsOf(author, 0))).toEqual(["a 1"]);
  });

  it("takes no more files than have room, and again when one is removed", async () => {
    await using tested = await open();
    const { store } = tested;
    const { workspaceFilesMax: most } = WORKFLOW_BOUNDS;
    const names = Array.from({ length: most }, (_, index) => `f${index}`);
    await Promise.all(names.map((name) => put(store, name, name)));
    expect(await put(store, "one-more", "")).toEqual({ kind: "full" });
    expect(await put(store, "f0", "again")).toMatchObject({ kind: "written" });
    expect(await put(store, "elsewhere", "", { at: { ...OWN, scope: "other" } })).toMatchObject({
      kind: "written",
    });
    const author = await beginWorkspaceRun(store, "a");
    const more = createWrites(author, [{ path: "one-more", text: "", version: 1 }]);
    await expect(store.append(more)).rejects.toMatchObject({ code: "WORKSPACE_CONFLICT" });
    await append(store, author, [{ path: "f2", text: "again", version: 2 }]);
    await remove(store, "f1");
    expect(await put(store, "one-more", "")).toMatchObject({ kind: "written" });
    expect(await put(store, "f1", "")).toEqual({ kind: "full" });
  });
}
