/** Owns: the path in the gateway at which people's signed answers to questions come in. */

/** Where the gateway takes signed answers to questions, by the name of their webhook below it. */
export const ANSWER_PATH = "/coordination/answers";
