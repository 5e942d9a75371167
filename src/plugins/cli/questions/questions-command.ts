/** Owns: `questions` and `questions show`. Does not own: answering (`answer-commands.ts`). */
import type { Command } from "commander";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { LedgerReader } from "../../ledger-reader.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import {
  findQuestion,
  findNewestQuestions,
  createQuestionReads,
  selectQuestions,
  type QuestionReads,
  type QuestionSelection,
} from "../../reports/find-questions.ts";
import { isModelShell } from "../terminal/model-shell.ts";
import { warnOfUnreadable, withLedger } from "../ledger/open-ledger.ts";
import { findCoordination, readKeptText } from "../../reports/find-coordination.ts";
import {
  createQuestionReport,
  findHeldText,
  type FoundQuestion,
  type QuestionReport,
} from "../../reports/question-report.ts";
import { renderQuestionStory, renderQuestionList, type HeldText } from "./question-story.ts";
import {
  runCommand,
  parseWholeNumber,
  assertNoOptionsOfParent,
  withExamples,
  withReaderOptions,
  writeJson,
  type ReaderOptions,
} from "../terminal/run-command.ts";

const LIMIT_MAX = 10_000;

interface QuestionsOptions extends ReaderOptions {
  readonly all?: boolean;
  readonly undelivered?: boolean;
  readonly coordination?: string;
  readonly limit: string;
}

/** Adds the command `questions`, which lists what people are asked, and its subcommand `show`. */
export function addQuestionsCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("questions"))
    .description("List what people are asked, newest first")
    .option("--all", "with questions that are closed")
    .option("--undelivered", "only those of which somebody could not be told, open or closed")
    .option("--coordination <id>", "only those of this coordination; a unique prefix is enough")
    .option("--limit <n>", "at most this many", "50")
    .action((options: QuestionsOptions) => runCommand(host, options, () => showQuestions(host, options)));
  withExamples(command, host, [
    "questions",
    "questions --all --coordination co-1f0c",
    "questions --undelivered --json",
    "questions show co-1f0c:escalation-1",
  ]);
  addShowQuestionCommand(command, host);
}

function addShowQuestionCommand(parent: CommandGroup, host: CliHost): void {
  const command = withReaderOptions(parent.command("show"))
    .description("Tell all about one question, with the result that it is about")
    .argument("<id>", "its id; of an open one a unique prefix is enough")
    .action((id: string, _: ReaderOptions, typed: Command) => {
      // `--json` and `--ledger` are options of `questions`, too, which takes them wherever they stand.
      const options = typed.optsWithGlobals<ReaderOptions>();
      return runCommand(host, options, async () => {
        assertNoOptionsOfParent(typed, OPTIONS_OF_LIST, "it is for listing questions, not for showing one");
        await showQuestion(host, id, options);
      });
    });
  withExamples(command, host, ["questions show co-1f0c:escalation-1", "questions show co-1f0c --json"]);
}

const OPTIONS_OF_LIST = ["all", "undelivered", "coordination", "limit"];

async function showQuestions(host: CliHost, options: QuestionsOptions): Promise<void> {
  const limit = parseWholeNumber(options.limit, { option: "--limit", min: 1, max: LIMIT_MAX });
  const wanted = chooseWanted(options);
  await withLedger(host, options, async (reader) => {
    // One more than is shown tells whether there are more.
    const query = { wanted, limit: limit + 1 };
    const { questions: foundQuestions, unreadable } = await (options.coordination === undefined
      ? findNewestQuestions(createQuestionReads(reader), query)
      : findQuestionsOfCoordination(reader, options.coordination, query));
    await warnOfUnreadable(host, "questions of", unreadable);
    const reports: QuestionReport[] = [];
    for (const each of foundQuestions.slice(0, limit))
      reports.push(await createQuestionReport(reader, each, { isForOperator: true }));
    if (options.json) await writeJson(host, reports);
    else
      await host.stdout.write(
        renderQuestionListing(host, reports, { wanted, isMore: foundQuestions.length > limit }),
      );
  });
}

function chooseWanted({ all, undelivered }: QuestionsOptions): QuestionSelection {
  if (undelivered === true) return "undelivered";
  return all === true ? "all" : "open";
}

async function findQuestionsOfCoordination(
  reader: LedgerReader,
  id: string,
  { wanted, limit }: { readonly wanted: QuestionSelection; readonly limit: number },
): ReturnType<typeof findNewestQuestions> {
  const view = await findCoordination(reader, id);
  return { questions: selectQuestions(view, wanted).slice(0, limit), unreadable: [] };
}

const NOTHING: Readonly<Record<QuestionSelection, string>> = {
  open: "no open questions\n",
  all: "no questions\n",
  undelivered: "nobody missed a question\n",
};

function renderQuestionListing(
  host: CliHost,
  reports: readonly QuestionReport[],
  { wanted, isMore }: { readonly wanted: QuestionSelection; readonly isMore: boolean },
): string {
  if (reports.length === 0) return NOTHING[wanted];
  const more = isMore ? "\nand more: raise --limit, or narrow it with --coordination\n" : "";
  return renderQuestionList(reports, { terminal: host.stdout.terminal, now: host.now() }) + more;
}

async function showQuestion(host: CliHost, id: string, options: ReaderOptions): Promise<void> {
  await withLedger(host, options, async (reader) => {
    const found = await findQuestionOrThrow(createQuestionReads(reader), id);
    const report = await createQuestionReport(reader, found, { isForOperator: true });
    const heldText = await readHeldText(reader, found);
    if (options.json) {
      await writeJson(host, { ...report, ...(heldText !== undefined && { resultText: heldText }) });
      return;
    }
    const { stdout, program } = host;
    const page = { terminal: stdout.terminal, now: host.now() };
    await stdout.write(renderQuestionStory(report, heldText, { page, program }));
  });
}

/**
 * Reads the text that a question rules on; `undefined` where it rules on none, and in a model's shell, because a model
 * must not read there what is kept back from it.
 */
async function readHeldText(reader: LedgerReader, found: FoundQuestion): Promise<HeldText> {
  if (isModelShell()) return undefined;
  const text = findHeldText(found);
  return text && readKeptText(reader, text);
}

/** @throws CoordinationError `INPUT_INVALID`, and `COORDINATION_NOT_FOUND` for the id of a pruned coordination */
async function findQuestionOrThrow(reads: QuestionReads, id: string): Promise<FoundQuestion> {
  const named = await findQuestion(reads, id);
  if (named.kind === "found") return named.found;
  if (named.kind === "pruned") throw named.error;
  const problem =
    named.kind === "unknown"
      ? "names no question; `questions --all` lists them"
      : `may be ${named.questionIds.join(", ")}`;
  throw new CoordinationError("INPUT_INVALID", `id: ${JSON.stringify(id)} ${problem}`);
}
