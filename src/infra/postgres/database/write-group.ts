/**
 * Owns: writing the rows of a group. Each table has one statement, whatever the number of rows, and all are sent at once: where
 * one fails, the server refuses those behind it, and the commit that follows rolls back.
 */
import type { MemoryWrite } from "../../../agents/coordination/ports/workflow-store.ts";
import { hashMemoryEntry } from "../../ledger/memory-entries.ts";
import type { SendQuery } from "./connect.ts";
import type { GroupState, GroupRows, NewLabel, RunChange } from "./group.ts";
import { writeVersions } from "./write-versions.ts";

/**
 * Sends the statements that insert and update all rows of a group of writes, and does not commit. Resolves when the
 * server has carried them out; the caller may send the commit before.
 */
export function sendGroupRows(query: SendQuery, { rows, now }: GroupState): Promise<unknown> {
  const parts = [
    writeRuns,
    writeEvents,
    writeReferences,
    writeLabels,
    writeContents,
    writeClaims,
    writeMemory,
    writeVersions,
  ];
  return Promise.all(parts.flatMap((write) => write(query, rows, now)));
}

/** Queries that are under way. */
type SentQueries = Promise<unknown>[];

function writeRuns(query: SendQuery, { runs }: GroupRows): SentQueries {
  const changedRuns = [...runs].map(([runKey, change]) => ({ runKey, ...change }));
  const created = changedRuns.filter(({ isNew }) => isNew);
  const grown = changedRuns.filter(({ isNew }) => !isNew);
  const sent: SentQueries = [];
  if (created.length > 0)
    sent.push(
      query(
        `insert into run (
           run_key, run_id, kind, length, head_hash, ended, summary, origin, owner_id, owner_token, arrived
         )
         select *
         from unnest(
           @runKeys::bigint[], @runIds::text[], @kinds::text[], @lengths::bigint[],
           @heads::bytea[], @ended::integer[], @summaries::text[], @origins::text[],
           @ownerIds::text[], @tokens::bigint[], @arrived::integer[]
         )`,
        {
          ...createRunValues(created),
          runIds: created.map(({ runId }) => runId),
          kinds: created.map(({ kind }) => kind),
          origins: created.map(({ origin }) => origin),
          ownerIds: created.map(({ owner_id }) => owner_id),
        },
      ),
    );
  if (grown.length > 0)
    sent.push(
      query(
        `update run
         set
           length = change.length,
           head_hash = change.head,
           ended = greatest(run.ended, change.ended),
           summary = change.summary,
           owner_token = change.owner_token,
           arrived = greatest(run.arrived, change.arrived)
         from unnest(
           @runKeys::bigint[], @lengths::bigint[], @heads::bytea[], @ended::integer[], @summaries::text[],
           @tokens::bigint[], @arrived::integer[]
         ) as change (run_key, length, head, ended, summary, owner_token, arrived)
         where run.run_key = change.run_key`,
        createRunValues(grown),
      ),
    );
  return sent;
}

function createRunValues(runs: readonly (RunChange & { readonly runKey: number })[]) {
  return {
    runKeys: runs.map(({ runKey }) => runKey),
    lengths: runs.map(({ length }) => length),
    heads: runs.map(({ head }) => head),
    ended: runs.map(({ ended }) => ended),
    summaries: runs.map(({ summary }) => summary),
    tokens: runs.map(({ owner_token }) => owner_token),
    arrived: runs.map(({ arrived }) => arrived),
  };
}

function writeEvents(query: SendQuery, { events }: GroupRows): SentQueries {
  if (events.length === 0) return [];
  return [
    query(
      `insert into event (
         event_key, run_key, sequence, type, timestamp_ms, node_id, causation_id, payload, hash
       )
       select *
       from unnest(
         @eventKeys::bigint[], @runKeys::bigint[], @sequences::bigint[], @types::text[], @times::bigint[],
         @nodeIds::text[], @causationIds::text[], @payloads::text[], @hashes::bytea[]
       )`,
      {
        eventKeys: events.map(({ eventKey }) => eventKey),
        runKeys: events.map(({ runKey }) => runKey),
        sequences: events.map(({ sequence }) => sequence),
        types: events.map(({ type }) => type),
        times: events.map(({ timestamp_ms }) => timestamp_ms),
        nodeIds: events.map(({ node_id }) => node_id),
        causationIds: events.map(({ causation_id }) => causation_id),
        payloads: events.map(({ payload }) => payload),
        hashes: events.map(({ hash }) => hash),
      },
    ),
  ];
}

/** Sends the references, whose keys are in the order of appending. */
function writeReferences(query: SendQuery, { references }: GroupRows): SentQueries {
  if (references.length === 0) return [];
  return [
    query(
      `insert into reference (name, run_key, step_id)
       select name, run_key, step_id
       from unnest(@names::text[], @runKeys::bigint[], @stepIds::text[])
         with ordinality as added (name, run_key, step_id, place)
       order by place`,
      {
        names: references.map(({ name }) => name),
        runKeys: references.map(({ runKey }) => runKey),
        stepIds: references.map(({ stepId }) => stepId),
      },
    ),
  ];
}

/** Sends the labels, those of coordinations first: a step gets no label that its coordination has. */
function writeLabels(query: SendQuery, { labels }: GroupRows): SentQueries {
  const ofRuns = labels.filter(({ stepId }) => stepId === "");
  const ofSteps = labels.filter(({ stepId }) => stepId !== "");
  return [
    ...(ofRuns.length > 0 ? [insertLabels(query, ofRuns, "")] : []),
    ...(ofSteps.length > 0 ? [insertLabels(query, ofSteps, IS_NEW_TO_STEP)] : []),
  ];
}

/** No coordination has a child's label. */
const IS_NEW_TO_STEP = `
  where added.kind = 'child' or not exists (
    select 1
    from run_label as label
    where label.kind = added.kind
      and label.value = added.value
      and label.started_at_ms = added.started_at_ms
      and label.run_key = added.run_key
      and label.step_id = ''
  )`;

function insertLabels(query: SendQuery, labels: readonly NewLabel[], condition: string): Promise<unknown> {
  return query(
    `insert into run_label (kind, value, started_at_ms, run_key, step_id)
     select kind, value, started_at_ms, run_key, step_id
     from unnest(
       @kinds::text[], @values::text[], @starts::bigint[], @runKeys::bigint[], @stepIds::text[]
     ) as added (kind, value, started_at_ms, run_key, step_id)
     ${condition}
     on conflict do nothing`,
    {
      kinds: labels.map(({ kind }) => kind),
      values: labels.map(({ value }) => value),
      starts: labels.map(({ startedAtMs }) => startedAtMs),
      runKeys: labels.map(({ runKey }) => runKey),
      stepIds: labels.map(({ stepId }) => stepId),
    },
  );
}

/** Sends who keeps which texts, and then the texts: a text is stored with the mark of whether anybody keeps it. */
function writeContents(query: SendQuery, { uses, contents, kept }: GroupRows, now: number): SentQueries {
  const sent: SentQueries = [];
  if (uses.length > 0)
    sent.push(
      query(
        `insert into content_use (run_key, sha256)
         select * from unnest(@runKeys::bigint[], @sha256s::text[])
         on conflict do nothing`,
        { runKeys: uses.map(({ runKey }) => runKey), sha256s: uses.map(({ sha256 }) => sha256) },
      ),
    );
  if (contents.size > 0)
    sent.push(
      query(
        `insert into content (sha256, stored_at_ms, text, kept)
         select
           added.sha256,
           @now::bigint,
           added.text,
           (exists (select 1 from content_use where content_use.sha256 = added.sha256))::integer
         from unnest(@sha256s::text[], @texts::text[]) as added (sha256, text)
         on conflict (sha256) do update
         set stored_at_ms = excluded.stored_at_ms, text = excluded.text, kept = excluded.kept`,
        { now, sha256s: [...contents.keys()], texts: [...contents.values()] },
      ),
    );
  if (kept.size > 0)
    sent.push(
      query("update content set kept = 1 where sha256 = any (@sha256s::text[]) and kept = 0", {
        sha256s: [...kept],
      }),
    );
  return sent;
}

function writeClaims(query: SendQuery, { claims }: GroupRows): SentQueries {
  const acquired = claims.flatMap(({ runKey, claim }) =>
    claim.kind === "acquired" ? [{ ...claim, runKey }] : [],
  );
  const renewed = claims.flatMap(({ claim }) => (claim.kind === "renewed" ? [claim] : []));
  const released = claims.flatMap(({ claim }) => (claim.kind === "released" ? [claim.token] : []));
  const sent: SentQueries = [];
  if (acquired.length > 0)
    sent.push(
      query(
        `insert into claim (token, resource, run_key, step_id, priority, acquired_at_ms, expires_at_ms)
         select *
         from unnest(
           @tokens::bigint[], @resources::text[], @runKeys::bigint[], @stepIds::text[],
           @priorities::text[], @acquired::bigint[], @expires::bigint[]
         )`,
        {
          tokens: acquired.map(({ token }) => token),
          resources: acquired.map(({ resource }) => resource),
          runKeys: acquired.map(({ runKey }) => runKey),
          stepIds: acquired.map(({ stepId }) => stepId),
          priorities: acquired.map(({ priority }) => priority),
          acquired: acquired.map(({ acquiredAtMs }) => acquiredAtMs),
          expires: acquired.map(({ expiresAtMs }) => expiresAtMs),
        },
      ),
    );
  // The last of several renewals of one claim counts.
  const expiries = new Map(renewed.map(({ token, expiresAtMs }) => [token, expiresAtMs]));
  if (expiries.size > 0)
    sent.push(
      query(
        `update claim
         set expires_at_ms = renewed.expires_at_ms
         from unnest(@tokens::bigint[], @expires::bigint[]) as renewed (token, expires_at_ms)
         where claim.token = renewed.token`,
        { tokens: [...expiries.keys()], expires: [...expiries.values()] },
      ),
    );
  if (released.length > 0)
    sent.push(query("delete from claim where token = any (@tokens::bigint[])", { tokens: released }));
  return sent;
}

function writeMemory(query: SendQuery, { memory }: GroupRows): SentQueries {
  if (memory.length === 0) return [];
  const entries = memory.map(({ eventKey, write }) => ({ eventKey, ...createMemoryRow(write) }));
  const tags = entries.flatMap(({ eventKey, tenant, scope, tags: ofEntry }) =>
    [...new Set(ofEntry)].map((tag) => ({ eventKey, tenant, scope, tag })),
  );
  const sent: SentQueries = [
    query(
      `insert into memory_entry (
         event_key, tenant, scope, memory_id, content, tags, created_at, expires_at, expires_at_ms, hash
       )
       select *
       from unnest(
         @eventKeys::bigint[], @tenants::text[], @scopes::text[], @ids::text[], @contents::text[],
         @tags::text[], @created::text[], @expires::text[], @expiresMs::bigint[], @hashes::bytea[]
       )`,
      {
        eventKeys: entries.map(({ eventKey }) => eventKey),
        tenants: entries.map(({ tenant }) => tenant),
        scopes: entries.map(({ scope }) => scope),
        ids: entries.map(({ row }) => row.memory_id),
        contents: entries.map(({ row }) => row.content),
        tags: entries.map(({ row }) => row.tags),
        created: entries.map(({ row }) => row.created_at),
        expires: entries.map(({ row }) => row.expires_at),
        expiresMs: entries.map(({ expiresAtMs }) => expiresAtMs),
        hashes: entries.map(({ tenant, scope, row }) => hashMemoryEntry({ tenant, scope }, row)),
      },
    ),
  ];
  if (tags.length > 0)
    sent.push(
      query(
        `insert into memory_tag (tenant, scope, tag, event_key)
         select * from unnest(@tenants::text[], @scopes::text[], @tags::text[], @eventKeys::bigint[])`,
        {
          tenants: tags.map(({ tenant }) => tenant),
          scopes: tags.map(({ scope }) => scope),
          tags: tags.map(({ tag }) => tag),
          eventKeys: tags.map(({ eventKey }) => eventKey),
        },
      ),
    );
  return sent;
}

function createMemoryRow({ at, entry }: MemoryWrite) {
  const { id, content, tags, createdAt, expiresAt } = entry;
  return {
    tenant: at.tenant,
    scope: at.scope,
    tags,
    expiresAtMs: expiresAt === undefined ? null : Date.parse(expiresAt),
    row: {
      memory_id: id,
      content,
      tags: JSON.stringify(tags),
      created_at: createdAt,
      expires_at: expiresAt ?? null,
    },
  };
}
