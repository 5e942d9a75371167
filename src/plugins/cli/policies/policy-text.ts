/** Owns: the words and fields that all commands about policy packs share. */
import type { PolicyPack } from "../../../agents/coordination/policies/combine-packs.ts";
import type { CliHost } from "../terminal/cli-host.ts";
import { formatPrintable } from "../terminal/printable.ts";

export const PACK = "a pack that ships, by its name, or a file (JSON or YAML; - reads it from stdin)";

/** Returns what `--json` prints of a policy pack: name, version, description, chain and locks, without its settings. */
export function createPackJson({ name, version, description, chain, locked }: PolicyPack): object {
  return { name, version, ...(description !== undefined && { description }), chain, locked };
}

/**
 * Returns a policy pack and what it extends as a text safe for a terminal, like `careful 1.0.0, extends balanced
 * 1.0.0`.
 */
export function describeChain({ chain }: PolicyPack, { stdout }: CliHost): string {
  return formatPrintable(chain.join(", extends "), stdout.terminal.unicode);
}

/** Returns the value of a setting as JSON that is safe for a terminal; `(none)` where there is none. */
export function formatSetting(value: unknown, isUnicode: boolean): string {
  return value === undefined ? "(none)" : formatPrintable(JSON.stringify(value), isUnicode);
}
