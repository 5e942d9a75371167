/** Owns: looking into the parameters of a tool call, which may be any JSON. */

/**
 * Returns the own property of that name of a tool's arguments, and none that every object inherits; `undefined` where
 * there is none.
 */
export function readParam(params: unknown, name: string): unknown {
  if (typeof params !== "object" || params === null || !Object.hasOwn(params, name)) return undefined;
  return (params as Readonly<Record<string, unknown>>)[name];
}

/** Returns the argument of that name of a tool call where it is a text; `undefined` else. */
export function readTextParam(params: unknown, name: string): string | undefined {
  const value = readParam(params, name);
  return typeof value === "string" ? value : undefined;
}

/**
 * Returns a tool argument without the marks that close one in some models' own syntax and slip into the value, as the
 * host's tools do it.
 */
export function removeArgumentEnd(value: string): string {
  let end = value.length;
  while (value[end - 1] === ">") end -= 1;
  const marks = value.length - end;
  return marks >= 2 && value.endsWith(ARGUMENT_END, end) ? value.slice(0, end - ARGUMENT_END.length) : value;
}

const ARGUMENT_END = "</arg_value";
