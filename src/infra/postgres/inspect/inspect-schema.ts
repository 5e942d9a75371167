/**
 * Owns: whether the schema is that of the migrations. A forger who drops a trigger first leaves this trace. Servers write
 * definitions in their own ways, so what is compared is which tables, indexes and triggers there are, that triggers are on,
 * and the text of the functions.
 */
import { reportMigrations, type ProblemReporter } from "../../ledger/inspect/report.ts";
import type { Migration } from "../../ledger/migrations.ts";
import type { SendQuery } from "../database/connect.ts";
import { loadMigrations, readAppliedMigrations } from "../database/migrate-schema.ts";

const CHANGED = /^(create|drop) (table|index|trigger|function) (\w+)/gmu;
const BODY = /^create function (\w+)\(\)[^$]*\$\$([^$]*)\$\$/gmu;

/**
 * Reports each table, index, trigger and function of a PostgreSQL ledger that was dropped or added since the
 * migrations, each trigger that is off, and each function whose text was changed.
 */
export async function checkSchema(query: SendQuery, report: ProblemReporter): Promise<void> {
  const migrations = await listLedgerMigrations(query);
  const expected = listExpectedObjects(migrations);
  const actual = await listActualObjects(query);
  for (const name of expected)
    if (!actual.has(name)) report({ kind: "schema_changed", message: `${name} was changed or dropped` });
  for (const name of actual)
    if (!expected.has(name)) report({ kind: "schema_changed", message: `${name} was added` });
  await checkFunctions(query, migrations, report);
}

/**
 * Returns the migrations of this release that the ledger has: those that it records, or more where its counts say so.
 * A ledger that is only read may lack the last ones.
 */
async function listLedgerMigrations(query: SendQuery): Promise<readonly Migration[]> {
  const [ledger] = await query<{ newest: number }>(
    `select greatest(
       (select count(*) from migration),
       (select max((to_jsonb(ledger_count) ->> 'newest_migration')::bigint) from ledger_count)
     ) as newest`,
  );
  return loadMigrations().slice(0, ledger?.newest);
}

/** Names the tables, indexes, triggers and functions that the migrations make. */
function listExpectedObjects(migrations: readonly Migration[]): Set<string> {
  const names = new Set(["table migration"]);
  for (const { sql } of migrations)
    for (const [, verb, type = "", name = ""] of sql.matchAll(CHANGED)) {
      if (verb === "create") names.add(`${type} ${name}`);
      else names.delete(`${type} ${name}`);
    }
  return names;
}

/**
 * Names those that the schema has. Without the indexes of constraints, which come with their tables, and without what
 * belongs to an extension of the server.
 */
async function listActualObjects(query: SendQuery): Promise<Set<string>> {
  const rows = await query<{ name: string }>(
    `with
       extended as (
         select classid, objid
         from pg_depend
         where deptype = 'e'
       ),
       relation as (
         select oid, relname, relkind
         from pg_class
         left join pg_index on indexrelid = oid
         where relnamespace = current_schema()::regnamespace
           and not exists (
             select 1
             from extended
             where classid = 'pg_class'::regclass and objid = coalesce(indrelid, oid)
           )
       )
     select case relkind when 'i' then 'index ' else 'table ' end || relname as name
     from relation
     where relkind in ('r', 'p', 'v', 'm', 'f')
       or (relkind = 'i' and not exists (select 1 from pg_constraint where conindid = relation.oid))
     union all
     select 'trigger ' || tgname
     from pg_trigger
     join relation on relation.oid = tgrelid
     where not tgisinternal and tgenabled in ('O', 'A')
     union all
     select 'function ' || proname
     from pg_proc
     where pronamespace = current_schema()::regnamespace
       and not exists (select 1 from extended where classid = 'pg_proc'::regclass and objid = pg_proc.oid)
     order by 1`,
  );
  return new Set(rows.map(({ name }) => name));
}

async function checkFunctions(
  query: SendQuery,
  migrations: readonly Migration[],
  report: ProblemReporter,
): Promise<void> {
  const bodies = new Map<string, string>();
  for (const { sql } of migrations)
    for (const [, name = "", body = ""] of sql.matchAll(BODY)) bodies.set(name, body);
  const rows = await query<{ name: string; body: string }>(
    `select proname::text as name, prosrc as body
     from pg_proc
     where pronamespace = current_schema()::regnamespace
     order by proname`,
  );
  for (const { name, body } of rows)
    if (bodies.has(name) && bodies.get(name) !== body)
      report({ kind: "schema_changed", message: `function ${name} was changed` });
}

/** Reports the migrations of a PostgreSQL ledger that it has not recorded, or has recorded with another hash. */
export async function checkMigrations(query: SendQuery, report: ProblemReporter): Promise<void> {
  reportMigrations((await readAppliedMigrations(query)) ?? [], await listLedgerMigrations(query), report);
}
