/** Owns: files that nobody who means well would write: ledgers that were damaged, and texts in YAML and JSON that are none. */
import { readFileSync, writeFileSync } from "node:fs";
import Database from "better-sqlite3";
import { createHostileText, pickOne, type Random } from "../support/hostile-values.ts";
import { forge } from "../support/ledger-fixtures-damage.ts";

const PAGE_BYTES = 4_096;

/** Damages of bytes, as a broken disk or a careless program makes them. */
export function damageBytes(random: Random, path: string): string {
  const whole = readFileSync(path);
  const pickPlace = (): number => Math.floor(random() * whole.length);
  const pickPage = (): number => Math.floor(random() * (whole.length / PAGE_BYTES)) * PAGE_BYTES;
  switch (Math.floor(random() * 6)) {
    case 0: {
      const flips = pickOne(random, [1, 1, 5, 50]);
      for (let count = 0; count < flips; count += 1) {
        const at = pickPlace();
        whole.writeUInt8(whole.readUInt8(at) ^ (1 << Math.floor(random() * 8)), at);
      }
      writeFileSync(path, whole);
      return `${flips} bits flipped`;
    }
    case 1:
      writeFileSync(path, whole.subarray(0, pickPlace()));
      return "cut off";
    case 2: {
      const [one, other] = [pickPage(), pickPage()];
      const page = Buffer.from(whole.subarray(one, one + PAGE_BYTES));
      whole.copy(whole, one, other, other + PAGE_BYTES);
      page.copy(whole, other);
      writeFileSync(path, whole);
      return `pages at ${one} and ${other} swapped`;
    }
    case 3:
      whole.fill(random() < 0.5 ? 0 : 0xff, pickPlace(), pickPlace());
      writeFileSync(path, whole);
      return "a part overwritten";
    case 4:
      writeFileSync(path, Buffer.concat([whole.subarray(0, pickPlace()), whole.subarray(pickPlace())]));
      return "a part cut out or doubled";
    default:
      whole.writeUInt8(Math.floor(random() * 256), Math.floor(random() * 100));
      writeFileSync(path, whole);
      return "a byte of the header changed";
  }
}

/** Changes of events behind the store's back, each of which a proof must notice. */
const EVENT_CHANGES: readonly string[] = [
  "update event set payload = json_set(payload, '$.forged', 1) where event_key = ?",
  "update event set payload = '{\"forged\":1}' where event_key = ?",
  "update event set payload = '[' where event_key = ?",
  "update event set type = type || '.forged' where event_key = ?",
  "update event set type = char(27) || '[31m' where event_key = ?",
  "update event set timestamp_ms = timestamp_ms + 1 where event_key = ?",
  "update event set timestamp_ms = 9223372036854775807 where event_key = ?",
  "update event set timestamp_ms = -1 where event_key = ?",
  "update event set node_id = char(0) || 'x' where event_key = ?",
  "update event set causation_id = 'forged:' || coalesce(causation_id, '') where event_key = ?",
  "update event set hash = zeroblob(32) where event_key = ?",
  "update event set sequence = sequence + 100000 where event_key = ?",
  "delete from event where event_key = ?",
];

/** Changes of what stands around the events, which a reader may refuse or overlook. */
const OTHER_CHANGES: readonly string[] = [
  "create view hostile as select * from event",
  "create trigger hostile after insert on event begin delete from event; end",
  "drop table content_use",
  "drop table reference",
  "drop table claim",
  "drop table run_label",
  "alter table run rename to runs",
  "alter table event rename to hidden; create view event as select * from hidden",
  "alter table content add column more text",
  "create table sqlite(x)",
  "pragma user_version = 2147483647",
  "pragma user_version = -1",
  "pragma application_id = 7",
  "update run set summary = '{'",
  'update run set summary = \'{"status":"\u{1b}[31m"}\'',
  "update run set length = 9223372036854775807",
  "update reference set name = ''",
  "update claim set expires_at_ms = 9223372036854775807",
  "update content set text = text || char(27)",
  "delete from content",
  "delete from migration",
  "update migration set sha256 = ''",
];

/** The statement that forged rows of a ledger. */
export interface ForgedChange {
  readonly words: string;
  /** Whether an event is another one now. */
  readonly isEventChanged: boolean;
}

export function forgeRows(random: Random, path: string): ForgedChange {
  const isEventChanged = random() < 0.6;
  const words = pickOne(random, isEventChanged ? EVENT_CHANGES : OTHER_CHANGES);
  if (isEventChanged)
    forge(path, (database) => void database.prepare(words).run(pickEvent(random, database)));
  else changeSchema(path, words);
  return { words, isEventChanged };
}

/** Triggers of tables that are not there any more stay away. */
function changeSchema(path: string, sql: string): void {
  const database = new Database(path);
  const select = "select name, sql from sqlite_schema where type = 'trigger'";
  const triggers = database.prepare<[], { name: string; sql: string }>(select).all();
  database.pragma("foreign_keys = off");
  for (const { name } of triggers) database.exec(`drop trigger ${name}`);
  database.exec(sql);
  for (const trigger of triggers) {
    try {
      database.exec(trigger.sql);
    } catch {
      continue;
    }
  }
  database.pragma("wal_checkpoint(truncate)");
  database.close();
}

function pickEvent(random: Random, database: Database.Database): number {
  const keys = database.prepare<[], number>("select event_key from event").pluck().all();
  return pickOne(random, keys);
}

const BITS_OF_SYNTAX: readonly string[] = [
  "\u{feff}",
  "\0",
  "\r\n",
  "\t",
  "\u{1b}[31m",
  "&a [*a]",
  "&a [1,2,3] \nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]",
  "<<: *none",
  "!!js/function 'function(){}'",
  "!!binary AAAA",
  "!<tag:yaml.org,2002:set>",
  "---\n",
  "...\n",
  "? [complex, key]\n: 1",
  "[".repeat(5_000),
  "{a: ".repeat(5_000),
  "- ".repeat(5_000),
  "1e999999",
  "0x".concat("f".repeat(400)),
  "9".repeat(5_000),
  ".nan",
  "2026-02-30",
  "%YAML 9.9\n",
  '"\\ud800"',
  "'",
  '"',
  "|\n",
  ">-\n",
  "# \u{202e}",
  "__proto__: {isAdmin: true}\n",
];

/** A text that was one in YAML or JSON, with some places changed. */
export function spoilFile(random: Random, text: string): string {
  const changes = pickOne(random, [0, 1, 1, 2, 5]);
  let spoiled = text;
  for (let count = 0; count < changes; count += 1) {
    const at = Math.floor(random() * (spoiled.length + 1));
    const bit = random() < 0.7 ? pickOne(random, BITS_OF_SYNTAX) : createHostileText(random);
    spoiled = changeAt(random, spoiled, { at, bit });
  }
  return random() < 0.1 ? spoiled.replaceAll("\n", "\r\n") : spoiled;
}

function changeAt(
  random: Random,
  text: string,
  { at, bit }: { readonly at: number; readonly bit: string },
): string {
  const to = at + Math.floor(random() * 30);
  const line = text.lastIndexOf("\n", at) + 1;
  switch (Math.floor(random() * 5)) {
    case 0:
      return text.slice(0, at) + text.slice(to);
    case 1:
      return text.slice(0, at) + text.slice(at, to) + text.slice(at, to) + text.slice(to);
    case 2:
      return `${text.slice(0, line)}${bit}\n${text.slice(line)}`;
    case 3:
      return text.slice(0, at) + bit + text.slice(to);
    default:
      return text.slice(0, at) + bit + text.slice(at);
  }
}
