/** Owns: which rights follow from where the page is served and who asked for the link, and why one is not there. */
import type { PageHome, Rights } from "../contract/session.ts";

/** Whoever starts `serve` reads the ledger's file: all that reads is theirs, and what needs a gateway says so when it is asked. */
export const SERVE_RIGHTS: Rights = { read: true, approve: true, write: true, results: true };

/** The scope of the gateway that each right follows from. */
const SCOPES = {
  read: "operator.read",
  approve: "operator.approvals",
  write: "operator.write",
  // As the host asks it for the history of sessions.
  results: "operator.read",
} as const satisfies Record<keyof Rights, string>;

const ADMIN = "operator.admin";

/** Returns which rights on the page somebody with these scopes of the gateway has. */
export function deriveRights(scopes: readonly string[]): Rights {
  const has = (scope: string): boolean => scopes.includes(scope) || scopes.includes(ADMIN);
  return {
    read: has(SCOPES.read) || has(SCOPES.write),
    approve: has(SCOPES.approve),
    write: has(SCOPES.write),
    results: has(SCOPES.results) || has(SCOPES.write),
  };
}

const WORDS: Readonly<Record<keyof Rights, string>> = {
  read: "see this",
  approve: "answer questions",
  write: "change anything",
  results: "read results and what agents ask",
};

/**
 * Returns, for each right that is missing, a sentence that says why and what to do; none for the rights that are
 * there.
 */
export function createRefusalSentences(
  rights: Rights,
  home: PageHome,
): Partial<Record<keyof Rights, string>> {
  const refusals: Partial<Record<keyof Rights, string>> = {};
  for (const right of Object.keys(WORDS) as (keyof Rights)[])
    if (!rights[right]) refusals[right] = describeRefusal(right, home);
  return refusals;
}

function describeRefusal(right: keyof Rights, home: PageHome): string {
  const how =
    home === "gateway"
      ? `it takes the scope ${SCOPES[right]} of the gateway. Run \`openclaw coordination page\` with it`
      : "start `openclaw-coordination serve` yourself";
  return `You may not ${WORDS[right]} here: ${how}.`;
}
