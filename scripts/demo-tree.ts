/** Owns: the fifth part of the demo: a child that may change one folder only, one whose answer is long, and the tree with its bill. */
import type { Json } from "../test/support/gateway.ts";
import { textOf, type Rule, type ScriptedModel } from "../test/support/scripted-model.ts";
import { createWrite } from "./demo-conflict.ts";
import { createTask } from "./demo-script.ts";

const SUMMARY_TASK =
  "Write one sentence about version 2.0 to drafts/summary.md, then the same to notes.md, both with the tool write, and answer with what came of it.";
const REPORT_TASK = "Write a report of about 40,000 characters on version 2.0.";

const SENTENCE = "Version 2.0 runs plans.\n";
const MAY_WRITE = { write: ["drafts/**"] };

export const TREE_TASK = [
  "Spawn two subagents at once and wait for what they say.",
  `Label one summary, give its spawn the argument coordination ${JSON.stringify(MAY_WRITE)}, and tell it: ${SUMMARY_TASK}`,
  `Label the other one report, and tell it: ${REPORT_TASK}`,
].join(" ");

/** The first match answers: the task of the parent quotes those of its children. */
export const TREE_RULES: readonly Rule[] = [
  createTask(
    TREE_TASK,
    {
      delayMs: 300,
      spawn: [
        { label: "summary", task: SUMMARY_TASK, coordination: MAY_WRITE },
        { label: "report", task: REPORT_TASK },
      ],
    },
    { say: "Two helpers are at work." },
  ),
  createTask(
    SUMMARY_TASK,
    { delayMs: 400, call: [createWrite("drafts/summary.md", SENTENCE)] },
    { delayMs: 400, call: [createWrite("notes.md", SENTENCE)] },
    { delayMs: 400, say: "drafts/summary.md is written. notes.md is not mine to change." },
  ),
  createTask(REPORT_TASK, {
    delayMs: 900,
    sayLong: {
      chars: 40_000,
      head: "A report on version 2.0.",
      middle: " The middle of the report. ",
      tail: " The end of the report.",
      lineChars: 100,
    },
  }),
];

/** The model of the gateway's configuration with prices, in US dollars for a million tokens, so that the tree has a bill. */
export const PRICED_MODELS: Json = {
  models: {
    providers: {
      mock: {
        models: [
          {
            id: "scripted",
            name: "Scripted",
            reasoning: false,
            input: ["text"],
            cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 },
            contextWindow: 128_000,
            maxTokens: 8_000,
          },
        ],
      },
    },
  },
};

/** Finds the text that the child was told when it wrote outside of its one folder. */
export const findRefusedWrite = (model: ScriptedModel): string | undefined =>
  findSentence(model, /Coordination refused this call: [^"\\]*?lies outside of[^"\\]*?\)\./u);

/** Finds the text that the parent reads where the middle of the report would be. */
export const findShortened = (model: ScriptedModel): string | undefined =>
  findSentence(model, /\[\[coordination: this is shortened from [^\]]*\]\]/u);

function findSentence({ requests }: ScriptedModel, pattern: RegExp): string | undefined {
  const texts = requests.flatMap(({ body }) => body.messages.map(textOf));
  const [sentence] = texts.flatMap((text) => pattern.exec(text) ?? []);
  return sentence;
}
