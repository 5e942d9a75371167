/** Owns: finding damage in texts, in who keeps them, in the count of the claims, and in definitions of workflows. */
import { hash } from "node:crypto";
import type { Report } from "../../ledger/chain-check.ts";
import type { SendQuery } from "../database/connect.ts";
import { readRows } from "./read-rows.ts";

interface HashedText {
  readonly sha256: string;
  readonly text: string;
}

export async function checkContent(query: SendQuery, report: Report): Promise<void> {
  const contents = readRows<HashedText>(query, "select sha256, text from content order by sha256");
  for await (const { sha256, text } of contents)
    if (hash("sha256", text) !== sha256)
      report({ kind: "content_changed", message: `content ${sha256} does not match its hash` });
}

export async function checkDefinitions(query: SendQuery, report: Report): Promise<void> {
  const definitions = readRows<HashedText>(
    query,
    "select sha256, text from workflow_definition order by definition_key",
  );
  for await (const { sha256, text } of definitions)
    if (hash("sha256", text) !== sha256)
      report({ kind: "content_changed", message: `definition ${sha256} does not match its hash` });
}

/** The mark of a kept text and the rows that say for whom it is kept. */
export async function checkKept(query: SendQuery, report: Report): Promise<void> {
  const rows = readRows<{ sha256: string; kept: number }>(
    query,
    `select sha256, kept
     from content
     where kept <> (exists (select 1 from content_use where content_use.sha256 = content.sha256))::integer
     order by sha256`,
  );
  for await (const { sha256, kept } of rows) {
    const message = kept ? "is kept, but for no coordination" : "is not kept, though a coordination keeps it";
    report({ kind: "index_differs", message: `content ${sha256} ${message}` });
  }
}

/** A count that fell would give a token twice. */
export async function checkClaims(query: SendQuery, report: Report): Promise<void> {
  const counted = await query<{ newest: number }>("select claim_token as newest from ledger_count");
  const [claim] = await query<{ newest: number }>("select coalesce(max(token), 0) as newest from claim");
  const newest = claim?.newest ?? 0;
  if (counted.length !== 1)
    report({ kind: "index_differs", message: "the newest token of claims is not one number" });
  else if (newest > Math.max(...counted.map((row) => row.newest)))
    report({ kind: "index_differs", message: `claim ${newest} is newer than the newest that was counted` });
}
