/** Owns: that a running gateway has taken another configuration, as its log says. */
import { waitFor } from "./wait-for.ts";

/** How the host ended a reload of its configuration, in its own words. */
export type Reload = { readonly words: string; readonly isApplied: boolean };

const RELOAD_ENDED = /\[reload\] config (?:hot reload (applied)|reload (?:superseded|failed|skipped).*)/u;

/** Waits for the end of the first reload whose end is logged behind `since`, in characters. */
export async function waitForReload(log: () => string, since = 0): Promise<Reload> {
  const [words, applied] = await waitFor(() => RELOAD_ENDED.exec(log().slice(since)), {
    what: "the host to reload its configuration, or to say why not",
    timeoutMs: 90_000,
  }).catch((cause: unknown) => {
    throw new Error(`the host did not reload its configuration; its log ends with\n${log().slice(-4_000)}`, {
      cause,
    });
  });
  return { words, isApplied: applied !== undefined };
}
