/**
 * Owns: the commands of `openclaw coordination` and `openclaw-coordination`, each loaded when it is needed.
 *
 * Inside the host `command` belongs to the host's own commander: only its methods are used, nothing of our copy.
 */
import { createInputError, type CoordinationError } from "../../agents/coordination/contracts/errors.ts";
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { maskPasswords, formatMessage } from "./terminal/printable.ts";
import { createErrorJson, writeJson } from "./terminal/run-command.ts";

/** By the word that calls it, in the order in which `--help` lists them. */
type CommandLoaders = Readonly<Record<string, () => Promise<(command: CommandGroup, host: CliHost) => void>>>;

const COMMANDS: CommandLoaders = {
  enable: async () => (await import("./switch-command.ts")).addEnableCommand,
  disable: async () => (await import("./switch-command.ts")).addDisableCommand,
  status: async () => (await import("./status-command.ts")).addStatusCommand,
  list: async () => (await import("./ledger/list-command.ts")).addListCommand,
  show: async () => (await import("./timeline/show-command.ts")).addShowCommand,
  timeline: async () => (await import("./timeline/show-command.ts")).addTimelineCommand,
  tree: async () => (await import("./timeline/tree-command.ts")).addTreeCommand,
  events: async () => (await import("./ledger/events-command.ts")).addEventsCommand,
  conflicts: async () => (await import("./conflicts/conflicts-command.ts")).addConflictsCommand,
  claims: async () => (await import("./conflicts/claims-command.ts")).addClaimsCommand,
  questions: async () => (await import("./questions/questions-command.ts")).addQuestionsCommand,
  approve: async () => (await import("./questions/answer-commands.ts")).addApproveCommand,
  deny: async () => (await import("./questions/answer-commands.ts")).addDenyCommand,
  answer: async () => (await import("./questions/answer-commands.ts")).addAnswerCommand,
  runs: async () => (await import("./workflows/runs-command.ts")).addRunsCommand,
  replay: async () => (await import("./ledger/replay-command.ts")).addReplayCommand,
  fork: async () => (await import("./workflows/fork-command.ts")).addForkCommand,
  diff: async () => (await import("./workflows/diff-command.ts")).addDiffCommand,
  stats: async () => (await import("./stats/stats-command.ts")).addStatsCommand,
  verify: async () => (await import("./ledger/verify-command.ts")).addVerifyCommand,
  ledger: async () => (await import("./ledger/ledger-command.ts")).addLedgerCommands,
  plan: async () => (await import("./plans/plan-command.ts")).addPlanCommands,
  policy: async () => (await import("./policies/pack-commands.ts")).addPolicyCommands,
  cancel: async () => (await import("./plans/request-command.ts")).addCancelCommand,
  retry: async () => (await import("./plans/request-command.ts")).addRetryCommand,
  doctor: async () => (await import("./doctor-command.ts")).addDoctorCommand,
  page: async () => (await import("./page-command.ts")).addPageCommand,
  mcp: async () => (await import("./workflows/mcp-command.ts")).addMcpCommand,
};

/** The commands that are to be added. */
export interface WantedCommands {
  /** The word that was called: where it is a command, no other one is loaded. */
  readonly called?: string | undefined;
  /** Commands that only this program has. */
  readonly more?: CommandLoaders | undefined;
}

/**
 * Adds the coordination commands to a command group; where `called` names one of them, loads and adds that one alone.
 * Also has the parser's error messages made safe for a terminal, or printed as those of commands are with `--json`.
 */
export async function addCoordinationCommands(
  command: CommandGroup,
  host: CliHost,
  { called, more = {} }: WantedCommands = {},
): Promise<void> {
  command.configureOutput({
    // Commander repeats arguments as they came.
    outputError: (text, write) => {
      if (isJsonWanted(host)) void writeJson(host, { error: createErrorJson(createParserError(text)) });
      else write(`${formatMessage(maskPasswords(text), host.stderr.terminal.unicode)}\n`);
    },
  });
  const all: CommandLoaders = { ...COMMANDS, ...more };
  const one = called !== undefined && Object.hasOwn(all, called) ? all[called] : undefined;
  for (const load of one ? [one] : Object.values(all)) (await load())(command, host);
}

/** True where `--json` is among the options; a word behind `--` is none. */
function isJsonWanted({ args }: CliHost): boolean {
  const [first] = args.filter((word) => word === "--json" || word === "--");
  return first === "--json";
}

/** Returns what Commander says, such as `error: unknown option '--x'` and a suggestion on a line of its own. */
function createParserError(text: string): CoordinationError {
  return createInputError(
    text
      .trim()
      .replace(/^error: /u, "")
      .replaceAll("\n", " "),
  );
}
