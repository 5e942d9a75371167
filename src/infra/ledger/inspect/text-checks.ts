/** Owns: finding damage in texts, in who keeps them, and in definitions of workflows. */
import { hash } from "node:crypto";
import { createRowCheck, type RowCheck } from "./row-check.ts";

export const CONTENT_CHECK = createTextCheck("content", "select sha256, text from content order by sha256");

export const DEFINITION_CHECK = createTextCheck(
  "definition",
  "select sha256, text from workflow_definition order by definition_key",
);

function createTextCheck(subject: string, sql: string): RowCheck {
  return createRowCheck(
    sql,
    ({ sha256, text }: { readonly sha256: string; readonly text: string }, report) => {
      if (hash("sha256", text) !== sha256)
        report({ kind: "content_changed", message: `${subject} ${sha256} does not match its hash` });
    },
  );
}

/** The mark of a kept text and the rows that say for whom it is kept. */
export const KEPT_CHECK = createRowCheck(
  `select sha256, kept
   from content
   where kept <> case
     when exists (select 1 from content_use where content_use.sha256 = content.sha256) then 1
     else 0
   end
   order by sha256`,
  ({ sha256, kept }: { readonly sha256: string; readonly kept: number }, report) => {
    const message = kept ? "is kept, but for no coordination" : "is not kept, though a coordination keeps it";
    report({ kind: "index_differs", message: `content ${sha256} ${message}` });
  },
);
