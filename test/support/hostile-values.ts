/**
 * Owns: inputs that nobody who means well would send, made from a JSON schema and a seed: values that fit it, values that almost
 * do, and texts that are no JSON at all.
 */

export type Random = () => number;

type Schema = Readonly<Record<string, unknown>>;

const DEPTH_MAX = 6;
const DEEP = 200;
const LONG = 20_000;

const HOSTILE_TEXTS: readonly string[] = [
  "",
  " ",
  "\0",
  "..",
  "../../etc/passwd",
  "%2e%2e%2f",
  "__proto__",
  "constructor",
  "toString",
  "\u{d800}",
  "\u{202e}gnp.exe",
  "\u{1b}[2J\u{1b}]0;owned\u{7}",
  "' or 1=1 --",
  "${process.exit()}",
  "{{7*7}}",
  "9".repeat(400),
  "é́".repeat(60),
  "2026-02-30T25:61:61Z",
  "00-00000000000000000000000000000000-0000000000000000-00",
  "x".repeat(LONG),
];

const HOSTILE_NUMBERS: readonly number[] = [
  0,
  -0,
  -1,
  0.1,
  1e-320,
  1e308,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  -(2 ** 63),
];

export function pickOne<T>(random: Random, items: readonly [T, ...T[]] | readonly T[]): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined && items.length === 0) throw new Error("there is nothing to pick from");
  return item as T;
}

/** A value that has nothing to do with what is wanted. */
export function createHostileValue(random: Random, depth = 0): unknown {
  switch (Math.floor(random() * (depth < 2 ? 9 : 5))) {
    case 0:
      return pickOne(random, HOSTILE_TEXTS);
    case 1:
      return pickOne(random, HOSTILE_NUMBERS);
    case 2:
      return null;
    case 3:
      return random() < 0.5;
    case 4:
      return [];
    case 5:
      return Array.from({ length: Math.floor(random() * 40) }, () => createHostileValue(random, depth + 1));
    case 6:
      return Object.fromEntries(
        Array.from({ length: Math.floor(random() * 8) }, () => [
          pickOne(random, HOSTILE_TEXTS).slice(0, 300),
          createHostileValue(random, depth + 1),
        ]),
      );
    case 7:
      return nest(random, DEEP);
    default:
      return JSON.parse(
        '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}',
      ) as unknown;
  }
}

function nest(random: Random, depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = random() < 0.5 ? [value] : { a: value };
  return value;
}

/** The chance and the words by which hostile values are made. */
export interface ValueRecipe {
  readonly random: Random;
  /** How likely each part is replaced by a hostile one. */
  readonly chance: number;
  /** Words that mean something to whoever reads the value. */
  readonly words: readonly string[];
}

/** A value of a schema. */
export function createFromSchema(making: ValueRecipe, schema: Schema, depth = 0): unknown {
  const { random, chance } = making;
  if (random() < chance) return createHostileValue(random);
  const forms = listForms(schema);
  if (forms.length > 0) return createFromSchema(making, pickOne(random, forms), depth + 1);
  if ("const" in schema) return schema["const"];
  const choices = (schema["enum"] ?? []) as readonly unknown[];
  if (choices.length > 0) return pickOne(random, choices);
  return depth > DEPTH_MAX ? null : createOfType(making, schema, depth);
}

function listForms(schema: Schema): readonly Schema[] {
  return (schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"] ?? []) as readonly Schema[];
}

function createOfType(making: ValueRecipe, schema: Schema, depth: number): unknown {
  const { random } = making;
  switch (schema["type"]) {
    case "object":
      return createObject(making, schema, depth);
    case "array": {
      const items = (schema["items"] ?? {}) as Schema;
      const length = Math.floor(random() * 4);
      return Array.from({ length }, () => createFromSchema(making, items, depth + 1));
    }
    case "string":
      return createText(making, schema);
    case "integer":
      return Math.floor(random() * 20) + Math.max(0, Number(schema["minimum"] ?? 0));
    case "number":
      return random();
    case "boolean":
      return random() < 0.5;
    case "null":
      return null;
    default:
      return createHostileValue(random, 1);
  }
}

function createText({ random, words }: ValueRecipe, { minLength = 0, maxLength = 40 }: Schema): string {
  const choice = random();
  if (choice < 0.5 && words.length > 0) return pickOne(random, words);
  if (choice < 0.7) return pickOne(random, HOSTILE_TEXTS);
  return "a".repeat(Math.max(Number(minLength), Math.floor(random() * Math.min(Number(maxLength), 40))));
}

function createObject(making: ValueRecipe, schema: Schema, depth: number): unknown {
  const { random, chance } = making;
  const properties = Object.entries((schema["properties"] ?? {}) as Readonly<Record<string, Schema>>);
  const required = new Set((schema["required"] ?? []) as readonly string[]);
  const entries = properties
    .filter(([name]) => (required.has(name) ? random() > chance / 2 : random() < 0.3))
    .map(([name, member]) => [name, createFromSchema(making, member, depth + 1)] as const);
  const isExtended = random() < chance;
  const extra = isExtended ? [[pickOne(random, HOSTILE_TEXTS), createHostileValue(random)] as const] : [];
  return Object.fromEntries([...entries, ...extra]);
}

/** A body as it goes over the wire: mostly JSON of the value, now and then spoiled. */
export function spoilText(random: Random, value: unknown, chance: number): string | Uint8Array {
  const text = JSON.stringify(value);
  if (random() >= chance) return text;
  switch (Math.floor(random() * 6)) {
    case 0:
      return text.slice(0, Math.floor(random() * text.length));
    case 1:
      return `\u{feff}${text}`;
    case 2:
      return Uint8Array.from([...new TextEncoder().encode(text), 0xff, 0xfe, 0xc0, 0x80]);
    case 3:
      return `${text}${text}`;
    case 4:
      return "[".repeat(DEEP * 10);
    default:
      return `{"a":1,"a":${text || "1"}}`;
  }
}

/** A part of a path or a query. */
export function createHostileText(random: Random): string {
  return pickOne(random, HOSTILE_TEXTS);
}
