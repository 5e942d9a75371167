/**
 * Owns: `approve`, `deny` and `answer`. The gateway finds the question and rules on the answer: no command writes to its ledger, and
 * whoever asks the gateway of another machine has no ledger of it.
 */
import type { Command } from "commander";
import { CoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import type { AnswerKind } from "../../../agents/coordination/contracts/escalation.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import type { GatewayAnswer } from "../../openclaw/host/gateway-call.ts";
import { answerText, createInputError } from "./answer-text.ts";
import { answerOf, throwAnswer } from "../ledger/ask-gateway.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { refuseInModelShell } from "../terminal/model-shell.ts";
import { formatPrintable } from "../terminal/printable.ts";
import {
  runCommand,
  withExamples,
  withJson,
  writeJson,
  writeLines,
  type JsonOption,
} from "../terminal/run-command.ts";

interface AnswerOptions extends JsonOption {
  readonly only?: boolean;
  readonly file?: string;
  readonly ledger?: string;
}

const ID = "the question's id as `questions` lists it, or a unique prefix";
const ONLY = "the only question that is open, whatever its id";

export function addApprove(parent: CommandGroup, host: CliHost): void {
  addRuling(parent, host, {
    answer: "approve",
    description: "Let what people were asked about happen: a held result counts, a doubted step begins",
  });
}

export function addDeny(parent: CommandGroup, host: CliHost): void {
  addRuling(parent, host, {
    answer: "deny",
    description: "Keep what people were asked about from happening: a held result stays withheld",
  });
}

function addRuling(
  parent: CommandGroup,
  host: CliHost,
  { answer, description }: { readonly answer: "approve" | "deny"; readonly description: string },
): void {
  const command = withQuestion(parent.command(answer), description).action(
    (id: string | undefined, options: AnswerOptions) =>
      runCommand(host, options, () => send(host, options, { ...readQuestionId(id, options), answer })),
  );
  withExamples(command, host, [
    `${answer} co-1f0c:escalation-1`,
    `${answer} --only`,
    `${answer} --only --json`,
  ]);
}

export function addAnswer(parent: CommandGroup, host: CliHost): void {
  const command = withQuestion(
    parent.command("answer"),
    "Answer a question with a text: what an agent asked for, or what counts in place of a held result",
  )
    .argument("[text]", "plain text, or a JSON object where it stands for the outputs of a step")
    .option("--file <file>", "take the text from this file, or from the standard input with `-`")
    .action((first: string | undefined, second: string | undefined, options: AnswerOptions) =>
      runCommand(host, options, () => answer(host, [first, second], options)),
    );
  withExamples(command, host, [
    'answer co-1f0c:escalation-2 "Use the staging database"',
    "answer co-1f0c:escalation-2 --file outputs.json",
    'answer --only "The second one"',
  ]);
}

function withQuestion(command: Command, description: string): Command {
  return withJson(command)
    .description(description)
    .argument("[id]", ID)
    .option("--only", ONLY)
    .addOption(command.createOption("--ledger <file>").hideHelp());
}

async function answer(
  host: CliHost,
  words: readonly (string | undefined)[],
  options: AnswerOptions,
): Promise<void> {
  // With --only no id is there, and the first word is the text.
  const [id, text, more] = options.only === true ? [undefined, ...words] : words;
  if (more !== undefined)
    throw createInputError("--only: the question needs no id; put the text into quotes");
  const question = readQuestionId(id, options);
  await send(host, options, {
    ...question,
    answer: "answer",
    text: await answerText({ text, file: options.file }),
  });
}

type Question = { readonly questionId: string } | { readonly only: true };

/** @throws CoordinationError `INPUT_INVALID` */
function readQuestionId(id: string | undefined, { only, ledger }: AnswerOptions): Question {
  // Commands that read take it, so that whoever answers what they showed tries it here too.
  if (ledger !== undefined)
    throw createInputError(
      "--ledger: an answer goes through the gateway, which has a ledger of its own; leave --ledger out",
    );
  if (only === true) {
    if (id !== undefined) throw createInputError("--only: leave the id out, or leave --only out");
    return { only };
  }
  if (id === undefined || id === "")
    throw createInputError("id: expected the id of a question, or --only, got nothing");
  return { questionId: id };
}

type Params = Question & { readonly answer: AnswerKind; readonly text?: string };

async function send(host: CliHost, { json }: JsonOption, params: Params): Promise<void> {
  refuseInModelShell();
  const answered = await answerOf(host, "coordination.answer", { ...params, through: "cli" });
  if (!answered.ok) throwRefusal(answered);
  const { payload } = answered;
  if (json) {
    await writeJson(host, { ok: true, ...payload });
    return;
  }
  const print = (value: unknown): string => formatPrintable(String(value), host.stdout.terminal.unicode);
  await writeLines(host, [
    `${print(payload["resolution"])}: ${print(payload["happened"])}`,
    `See ${host.program} questions show ${print(formatShellArguments(String(payload["questionId"])))}`,
  ]);
}

const LIST = "Run `openclaw coordination questions` to see what is open and which answers it takes.";

/** Advice about a refusal where the advice of its code is for another one. */
const ADVICE: ReadonlyMap<unknown, string> = new Map([
  ["QUESTION_CLOSED", "There is nothing left to answer; `openclaw coordination questions --all` lists it."],
  ["UNKNOWN_QUESTION", LIST],
  ["NOT_FOUND", LIST],
  ["ANSWER_REFUSED", LIST],
]);

class AnswerRefusal extends CoordinationError {
  readonly #advice: string;

  constructor(message: string, advice: string) {
    super("REQUEST_REFUSED", message);
    this.#advice = advice;
  }

  override get advice(): string {
    return this.#advice;
  }
}

/** @throws CoordinationError */
function throwRefusal(refused: GatewayAnswer & { readonly ok: false }): never {
  const { refusal } = (refused.details ?? {}) as { readonly refusal?: unknown };
  const advice = ADVICE.get(refusal);
  if (advice === undefined || refused.code !== "REQUEST_REFUSED") throwAnswer(refused);
  throw new AnswerRefusal(refused.message, advice);
}
