/**
 * Owns: the commands of `openclaw coordination` and `openclaw-coordination`, each loaded when it is needed.
 *
 * Inside the host `command` belongs to the host's own commander: only its methods are used, nothing of our copy.
 */
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { formatMessage } from "./terminal/printable.ts";

/** By the word that calls it, in the order in which `--help` lists them. */
type Commands = Readonly<Record<string, () => Promise<(command: CommandGroup, host: CliHost) => void>>>;

const COMMANDS: Commands = {
  enable: async () => (await import("./switch-command.ts")).addEnable,
  disable: async () => (await import("./switch-command.ts")).addDisable,
  status: async () => (await import("./status-command.ts")).addStatus,
  list: async () => (await import("./ledger/list-command.ts")).addList,
  show: async () => (await import("./timeline/show-command.ts")).addShow,
  timeline: async () => (await import("./timeline/show-command.ts")).addTimeline,
  tree: async () => (await import("./timeline/tree-command.ts")).addTree,
  events: async () => (await import("./ledger/events-command.ts")).addEvents,
  conflicts: async () => (await import("./conflicts/conflicts-command.ts")).addConflicts,
  claims: async () => (await import("./conflicts/claims-command.ts")).addClaims,
  questions: async () => (await import("./questions/questions-command.ts")).addQuestions,
  approve: async () => (await import("./questions/answer-commands.ts")).addApprove,
  deny: async () => (await import("./questions/answer-commands.ts")).addDeny,
  answer: async () => (await import("./questions/answer-commands.ts")).addAnswer,
  runs: async () => (await import("./workflows/runs-command.ts")).addRuns,
  replay: async () => (await import("./ledger/replay-command.ts")).addReplay,
  fork: async () => (await import("./workflows/fork-command.ts")).addFork,
  diff: async () => (await import("./workflows/diff-command.ts")).addDiff,
  stats: async () => (await import("./stats/stats-command.ts")).addStats,
  verify: async () => (await import("./ledger/verify-command.ts")).addVerify,
  ledger: async () => (await import("./ledger/ledger-command.ts")).addLedger,
  plan: async () => (await import("./plans/plan-command.ts")).addPlan,
  policy: async () => (await import("./policies/pack-commands.ts")).addPolicy,
  cancel: async () => (await import("./plans/request-command.ts")).addCancel,
  retry: async () => (await import("./plans/request-command.ts")).addRetry,
  doctor: async () => (await import("./doctor-command.ts")).addDoctor,
  page: async () => (await import("./page-command.ts")).addPage,
  mcp: async () => (await import("./workflows/mcp-command.ts")).addMcp,
};

interface Wanted {
  /** The word that was called: where it is a command, no other one is loaded. */
  readonly called?: string | undefined;
  /** Commands that only this program has. */
  readonly more?: Commands;
}

export async function addCoordinationCommands(
  command: CommandGroup,
  host: CliHost,
  { called, more = {} }: Wanted = {},
): Promise<void> {
  command.configureOutput({
    // Commander repeats arguments as they came.
    outputError: (text, write) => {
      write(`${formatMessage(text, host.stderr.terminal.unicode)}\n`);
    },
  });
  const all: Commands = { ...COMMANDS, ...more };
  const one = called !== undefined && Object.hasOwn(all, called) ? all[called] : undefined;
  for (const load of one ? [one] : Object.values(all)) (await load())(command, host);
}
