/**
 * What the plugin thinks, without a word of the host, so that a test needs none.
 *
 * The host runs several instances of a plugin, and events reach the newest one: what is counted lies on `globalThis`.
 */
const shared = (globalThis[Symbol.for("hook-plugin")] ??= { events: {}, dropped: 0, questions: 0 });

/** `file:` and a path with a folder `vendor` in it. */
const VENDORED = /^file:(?:.*\/)?vendor\//;

export function createHooks(log) {
  return {
    hooks: {
      /** Nobody takes a vendored file from who holds it; about others the operator's strategy rules. */
      arbitrate: ({ resource, names = [] }) =>
        [resource, ...names].some((name) => VENDORED.test(name))
          ? { award: "holder", reason: "Files below vendor/ stay with who holds them." }
          : undefined,

      /** The agent `reviewed` says who reviewed its work, or does it again. */
      verify: {
        agents: ["reviewed"],
        budgetMs: 5_000,
        run: ({ text }) =>
          /^Reviewed-by: \S/m.test(text)
            ? { verdict: "pass", criteria: ["reviewed-by"], confidence: 1 }
            : { verdict: "revise", criteria: ["reviewed-by"], confidence: 1 },
      },

      /** A real channel would send it to people, and call `answer` when they have answered. */
      escalate: ({ questionId, title, answers }) => {
        shared.questions += 1;
        log(`open question ${questionId}: ${title} (${answers.join(", ")})`);
      },

      observe: ({ type }, { dropped }) => {
        shared.events[type] = (shared.events[type] ?? 0) + 1;
        shared.dropped += dropped;
      },
    },
    counts: () => ({ ...shared, events: { ...shared.events } }),
  };
}
