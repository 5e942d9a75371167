/**
 * Owns: `approve`, `deny` and `answer`. The gateway finds the question and rules on the answer: no command writes to its ledger, and
 * whoever asks the gateway of another machine has no ledger of it.
 */
import type { Command } from "commander";
import { CoordinationError, createInputError } from "../../../agents/coordination/contracts/errors.ts";
import type { AnswerKind } from "../../../agents/coordination/contracts/escalation.ts";
import { formatShellArguments } from "../../../agents/coordination/std/shell-arguments.ts";
import type { GatewayAnswer } from "../../openclaw/host/gateway-call.ts";
import { resolveAnswerText } from "./answer-text.ts";
import { requestGatewayAnswer, throwGatewayRefusal } from "../ledger/ask-gateway.ts";
import type { CliHost, CommandGroup } from "../terminal/cli-host.ts";
import { assertNotInModelShell } from "../terminal/model-shell.ts";
import { formatPrintable } from "../terminal/printable.ts";
import {
  runCommand,
  withExamples,
  withJsonOption,
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

/** Adds the command `approve`, which answers a question so that what people were asked about happens. */
export function addApproveCommand(parent: CommandGroup, host: CliHost): void {
  addRulingCommand(parent, host, {
    answer: "approve",
    description: "Let what people were asked about happen: a held result counts, a doubted step begins",
  });
}

/** Adds the command `deny`, which answers a question so that what people were asked about does not happen. */
export function addDenyCommand(parent: CommandGroup, host: CliHost): void {
  addRulingCommand(parent, host, {
    answer: "deny",
    description: "Keep what people were asked about from happening: a held result stays withheld",
  });
}

/** Adds a command that answers a question without a text. */
function addRulingCommand(
  parent: CommandGroup,
  host: CliHost,
  { answer, description }: { readonly answer: "approve" | "deny"; readonly description: string },
): void {
  const command = withQuestionArguments(parent.command(answer), description).action(
    (id: string | undefined, options: AnswerOptions) =>
      runCommand(host, options, () =>
        sendAnswerToGateway(host, options, { ...parseQuestionChoice(id, options), answer }),
      ),
  );
  withExamples(command, host, [
    `${answer} co-1f0c:escalation-1`,
    `${answer} --only`,
    `${answer} --only --json`,
  ]);
}

/** Adds the command `answer`, which answers a question with a text. */
export function addAnswerCommand(parent: CommandGroup, host: CliHost): void {
  const command = withQuestionArguments(
    parent.command("answer"),
    "Answer a question with a text: what an agent asked for, or what counts in place of a held result",
  )
    .argument("[text]", "plain text, or a JSON object where it stands for the outputs of a step")
    .option("--file <file>", "take the text from this file, or from the standard input with `-`")
    .action((first: string | undefined, second: string | undefined, options: AnswerOptions) =>
      runCommand(host, options, () => answerWithText(host, [first, second], options)),
    );
  withExamples(command, host, [
    'answer co-1f0c:escalation-2 "Use the staging database"',
    "answer co-1f0c:escalation-2 --file outputs.json",
    'answer --only "The second one"',
  ]);
}

function withQuestionArguments(command: Command, description: string): Command {
  return withJsonOption(command)
    .description(description)
    .argument("[id]", ID)
    .option("--only", ONLY)
    .addOption(command.createOption("--ledger <file>").hideHelp());
}

async function answerWithText(
  host: CliHost,
  words: readonly (string | undefined)[],
  options: AnswerOptions,
): Promise<void> {
  // With --only no id is there, and the first word is the text.
  const [id, text, more] = options.only === true ? [undefined, ...words] : words;
  if (more !== undefined)
    throw createInputError("--only: the question needs no id; put the text into quotes");
  const question = parseQuestionChoice(id, options);
  await sendAnswerToGateway(host, options, {
    ...question,
    answer: "answer",
    text: await resolveAnswerText({ text, file: options.file }),
  });
}

/** The question that an answer is for: one by its id, or the only open one. */
type ChosenQuestion = { readonly questionId: string } | { readonly only: true };

/** @throws CoordinationError `INPUT_INVALID` */
function parseQuestionChoice(id: string | undefined, { only, ledger }: AnswerOptions): ChosenQuestion {
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

/** The parameters of the gateway's method that answers a question. */
type AnswerParameters = ChosenQuestion & { readonly answer: AnswerKind; readonly text?: string };

async function sendAnswerToGateway(
  host: CliHost,
  { json }: JsonOption,
  params: AnswerParameters,
): Promise<void> {
  assertNotInModelShell();
  const answered = await requestGatewayAnswer(host, "coordination.answer", { ...params, through: "cli" });
  if (!answered.ok) throwAnswerRefusal(answered);
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
function throwAnswerRefusal(refused: GatewayAnswer & { readonly ok: false }): never {
  const { refusal } = (refused.details ?? {}) as { readonly refusal?: unknown };
  const advice = ADVICE.get(refusal);
  if (advice === undefined || refused.code !== "REQUEST_REFUSED") throwGatewayRefusal(refused);
  throw new AnswerRefusal(refused.message, advice);
}
