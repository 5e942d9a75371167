/** Owns: which agent a message is for. It is named first, as `@` with its id or the last part of it: `@core.my.agent do this`. */

export type Mention =
  | { readonly kind: "agent"; readonly agentId: string; readonly text: string }
  /** The name is one of several. */
  | { readonly kind: "several"; readonly agentIds: readonly string[] };

/** Whoever is called beside the agent, such as the bot of a group. */
const WORDS_MAX = 4;
const NAME_CHARS_MAX = 256;
/** A name, or what channels make of one of their own. */
const WORD = /^(?:@([A-Za-z0-9][A-Za-z0-9._-]*)[,:;!?]*|<@[^>\s]{1,100}>)(?=\s|$)/u;

/** True where a text begins with `@` or `<@`. Other messages cost no more than this look at their first characters. */
export function mayBeginWithMention(text: string): boolean {
  return /^\s*<?@/u.test(text);
}

/**
 * Returns the agent, or the several, that one of the first words of a message names, with the text behind that word;
 * `undefined` where none does.
 */
export function findMention(text: string, agentIds: readonly string[]): Mention | undefined {
  let rest = text.trimStart();
  for (let words = 0; words < WORDS_MAX; words += 1) {
    const found = WORD.exec(rest.slice(0, NAME_CHARS_MAX + WORDS_MAX));
    if (!found) return undefined;
    rest = rest.slice(found[0].length).trimStart();
    const mention = resolveMention(found[1] ?? "", rest.trimEnd(), agentIds);
    if (mention) return mention;
  }
  return undefined;
}

/**
 * Returns a mention of the agent whose name this is, with the text for it, or of all agents that the name may mean;
 * `undefined` where it means none.
 */
export function resolveMention(name: string, text: string, agentIds: readonly string[]): Mention | undefined {
  const named = findAgentsNamed(name, agentIds);
  const [agentId] = named;
  if (agentId === undefined) return undefined;
  return named.length === 1 ? { kind: "agent", agentId, text } : { kind: "several", agentIds: named };
}

/**
 * Returns the ids of the agents that a name means: by whole id, else in any case, else by the last part of the id;
 * empty where it means none.
 */
export function findAgentsNamed(wanted: string, agentIds: readonly string[]): readonly string[] {
  const name = wanted.replace(/^@/u, "").replace(/\.+$/u, "");
  if (name === "") return [];
  const meanings: readonly ((id: string) => boolean)[] = [
    (id) => id === name,
    (id) => id.toLowerCase() === name.toLowerCase(),
    (id) => readLastIdPart(id).toLowerCase() === name.toLowerCase(),
  ];
  for (const isMeant of meanings) {
    const meant = agentIds.filter(isMeant);
    if (meant.length > 0) return meant;
  }
  return [];
}

function readLastIdPart(id: string): string {
  return id.slice(id.lastIndexOf(".") + 1);
}
