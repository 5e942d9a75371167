/** Owns: ledgers with something in every table, and everything that a ledger holds as rows. */
import Database from "better-sqlite3";
import type { EpochMs, SessionKey } from "../../src/agents/coordination/contracts/ids.ts";
import type { OpenedLedger } from "../../src/infra/ledger/opened-ledger.ts";
import { COPIED_TABLES } from "../../src/infra/ledger/copy/copied-tables.ts";
import { contentOf, createAuthor, openingOf, openRun, spawnOf } from "../support/ledger-fixtures.ts";
import type { TestSchema } from "../support/postgres-server.ts";
import { createAcquired, createReleased } from "./ledger-store-claim-play.ts";
import { appendEnd } from "./ledger-store-tested.ts";
import {
  branchOf,
  createMemoryEntry,
  createNodeStarted,
  createRunStarted,
  createWholeRun,
  createWorkflowAuthor,
  definitionOf,
  nameWorkflowRun,
  NOW,
  SCOPE,
} from "./workflow-store-tested.ts";

/** Texts that PostgreSQL cannot hold as they are, and some that only look so. */
export const HOSTILE_TEXT = "\u0000nul \u0001\u0001 \u0001\u0002 ünïcode 🜁 \\u0000 \ud800 ' \" @x $1";
/** As it comes back from UTF-8. */
const STORABLE_TEXT = HOSTILE_TEXT.toWellFormed();

/** Appends to every table. `name`: in all ids. */
export async function fillLedger(store: OpenedLedger, name = "one"): Promise<void> {
  await fillCoordinations(store, name);
  await fillWorkflows(store, name);
  await fillBeside(store, name);
}

async function fillCoordinations(store: OpenedLedger, name: string): Promise<void> {
  const { lastToken } = await store.overlapping({ resource: "x", atMs: 0 as EpochMs, limit: 1 });
  const { author, request } = openRun(name);
  const contents = [
    { ...contentOf(`kept by ${name} ${STORABLE_TEXT}`), keepWhileRunning: true },
    contentOf(`not kept of ${name}`),
  ];
  await store.append({ ...request, contents });
  const claims = [1, 2, 3].map((token) => createAcquired(lastToken + token, `queue:${name}-${token}`));
  await store.append({
    ...author.append(spawnOf(`more-${name}`)),
    // The newest token is of a claim that is gone.
    claims: [...claims, createReleased(lastToken + 3)],
  });
  const ended = openRun(`ended-${name}`);
  await store.append(ended.request);
  await store.append(appendEnd(ended.author));
  const pruned = openRun(`pruned-${name}`);
  await store.append(pruned.request);
  await store.append(appendEnd(pruned.author));
  const hostile = createAuthor(`hostile-${name}`);
  await store.append(
    hostile.append(
      openingOf(`trace ${name}`, `agent:main:${STORABLE_TEXT}` as SessionKey),
      spawnOf("c\u0000"),
    ),
  );
  const page = await store.pruning.page({
    before: Number.MAX_SAFE_INTEGER,
    limit: 100,
    beforeMs: (NOW + 1) as EpochMs,
  });
  await store.pruning.remove(
    page.filter(({ runId }) => runId === pruned.author.runId),
    { newest: page[0]?.ordinal ?? 0, familyOf: (runId) => runId },
  );
}

async function fillWorkflows({ workflows }: OpenedLedger, name: string): Promise<void> {
  const scope = { ...SCOPE, scope: `notes\u0000${name}` };
  const author = createWorkflowAuthor(`memory-${name}`);
  const append = async (...ids: readonly string[]): Promise<void> => {
    const entries = ids.map((id) => createMemoryEntry(id, { tags: ["t", "\u0001"], content: STORABLE_TEXT }));
    await workflows.append(author.append([], { scope, entries }));
  };
  await workflows.append(author.append([createRunStarted()]));
  await append("m", "expired\u0000");
  await append("m");
  await append("n");
  const expiring = createMemoryEntry("brief", { expiresAt: new Date(NOW + 1).toISOString(), tags: ["u"] });
  await workflows.append(author.append([], { scope, entries: [expiring] }));
  // Replaced by an entry that is deleted again.
  await workflows.append(author.append([], { entries: [createMemoryEntry("gone"), expiring] }));
  await workflows.append(createWholeRun(`whole-${name}`));
  const source = nameWorkflowRun(`memory-${name}`);
  const fork = createWorkflowAuthor(`fork-${name}`, branchOf(source, `fork-${name}`, 1));
  await workflows.append(fork.append([createRunStarted(), createNodeStarted("a")]));
}

async function fillBeside({ workflows }: OpenedLedger, name: string): Promise<void> {
  await workflows.putDefinition(definitionOf(`wf-${name}`, "acme"));
  await workflows.putDefinition(definitionOf(`unregistered-${name}`));
  const at = { tenant: SCOPE.tenant, scope: `files\u0000${name}` };
  const updatedAt = new Date(NOW).toISOString();
  for (const path of ["a.txt", "b.txt"])
    for (const text of ["one", STORABLE_TEXT])
      await workflows.workspace.write({ at, path, updatedAt, content: { contentType: "text/plain", text } });
  await workflows.workspace.write({ at, path: "b.txt", updatedAt, content: null });
  for (const key of ["answered", "open\u0000"]) {
    const request = { tenant: "acme", endpoint: `POST ${name}`, key };
    const subject = nameWorkflowRun(key);
    const leaseUntilMs = (NOW + 1_000) as EpochMs;
    await workflows.requests.begin({ ...request, digest: "d", subject, now: NOW, leaseUntilMs });
    if (key === "answered") await workflows.requests.finish(request, { status: 201, body: STORABLE_TEXT });
  }
  await workflows.owners.beat({ id: `owner-${name}` });
}

type Dump = Readonly<Record<string, readonly unknown[]>>;

/** Returns all rows that a copy has to have, of every table of the file, integers as they are. */
export function readFileRows(path: string): Dump {
  const database = new Database(path, { readonly: true });
  try {
    database.defaultSafeIntegers();
    const select = (sql: string): unknown[] => database.prepare(sql).all();
    return {
      ...Object.fromEntries(
        COPIED_TABLES.map(({ name, key }) => [
          name,
          select(`select * from ${name} order by ${key.join(", ")}`),
        ]),
      ),
      content: select("select sha256, stored_at_ms, text, kept from content order by sha256"),
      counts: select("select seq, newest from sqlite_sequence, claim_token"),
      blocks: select("select * from memory_block order by tenant, scope, lane, bits, block"),
      schema: select(
        "select type, name, sql from sqlite_schema where name not like 'sqlite_stat%' order by 1, 2",
      ),
    };
  } finally {
    database.close();
  }
}

/** Returns all rows that a copy has to have, of every table of a schema. */
export async function readSchemaRows(schema: TestSchema): Promise<Dump> {
  const dumped: Record<string, readonly unknown[]> = {};
  for (const { name, key } of COPIED_TABLES)
    dumped[name] = await schema.query(`select * from ${name} order by ${key.join(", ")}`);
  dumped["counts"] = await schema.query("select events, runs, claim_token from ledger_count");
  dumped["triggers"] = await schema.query(
    `select tgname, tgenabled
     from pg_trigger
     join pg_class on pg_class.oid = tgrelid
     where relnamespace = current_schema()::regnamespace and not tgisinternal
     order by tgname`,
  );
  return dumped;
}
