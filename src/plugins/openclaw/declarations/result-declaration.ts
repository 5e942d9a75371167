/** Owns: what models read of the tool `coordination_result`. */
import { BOUNDS } from "../../../agents/coordination/contracts/bounds.ts";

/** How much one call reads. */
export const PAGE_CHARS = 8_000;
export const PAGE_CHARS_MAX = 16_000;
export const WANTED_CHARS_MAX = 200;

const DESCRIPTION = `Reads results of subagents and steps of plans that were too long to be told as a whole, bit by bit. Without arguments it lists what there is. With coordinationId and stepId it reads one: a page from the character "from" on, until there is no "next"; or with "find" the places where a text occurs. Prefer "find" to reading everything.`;

const PARAMETERS = {
  type: "object",
  properties: {
    coordinationId: {
      type: "string",
      maxLength: BOUNDS.coordinationIdCharsMax,
      description:
        "As the shortened result names it. Left out: results of the newest coordinations are listed.",
    },
    stepId: {
      type: "string",
      maxLength: BOUNDS.idCharsMax,
      description: "The step whose result is read; needs coordinationId.",
    },
    sha256: { type: "string", description: "Which result of the step. Left out: the newest." },
    from: {
      type: "integer",
      minimum: 0,
      description: "The character to read or search from: the next of the page before. Default: 0.",
    },
    chars: {
      type: "integer",
      minimum: 1,
      maximum: PAGE_CHARS_MAX,
      description: `How many characters are read. Default: ${PAGE_CHARS}.`,
    },
    find: {
      type: "string",
      maxLength: WANTED_CHARS_MAX,
      description: "A text to look for, exactly as it is written; the places are told instead of a page.",
    },
  },
};

export const RESULT_DECLARATION = {
  name: "coordination_result",
  label: "Read a result",
  description: DESCRIPTION,
  parameters: PARAMETERS,
} as const;
