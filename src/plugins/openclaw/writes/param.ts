/** Owns: looking into the parameters of a tool call, which may be any JSON. */

/** A parameter that the call itself carries; nothing that every object has. */
export function readParam(params: unknown, name: string): unknown {
  if (typeof params !== "object" || params === null || !Object.hasOwn(params, name)) return undefined;
  return (params as Readonly<Record<string, unknown>>)[name];
}

/** The parameter where it is a text. */
export function readTextParam(params: unknown, name: string): string | undefined {
  const value = readParam(params, name);
  return typeof value === "string" ? value : undefined;
}

/** Cuts off what closes an argument in some models' own syntax and slips into the value, as the host's tools do. */
export function withoutArgumentEnd(value: string): string {
  let end = value.length;
  while (value[end - 1] === ">") end -= 1;
  const marks = value.length - end;
  return marks >= 2 && value.endsWith(ARGUMENT_END, end) ? value.slice(0, end - ARGUMENT_END.length) : value;
}

const ARGUMENT_END = "</arg_value";
