/**
 * Owns: the commands of `openclaw coordination` and `openclaw-coordination`.
 *
 * Inside the host `command` belongs to the host's own commander: only its methods are used, nothing of our copy.
 */
import { addAnswer, addApprove, addDeny } from "./questions/answer-commands.ts";
import { addCancel } from "./plans/cancel-command.ts";
import { addClaims } from "./conflicts/claims-command.ts";
import type { CliHost, CommandGroup } from "./terminal/cli-host.ts";
import { addConflicts } from "./conflicts/conflicts-command.ts";
import { addDiff } from "./workflows/diff-command.ts";
import { addDoctor } from "./doctor-command.ts";
import { addEvents } from "./ledger/events-command.ts";
import { addFork } from "./workflows/fork-command.ts";
import { addLedger } from "./ledger/ledger-command.ts";
import { addList } from "./ledger/list-command.ts";
import { addPage } from "./page-command.ts";
import { addPlan } from "./plans/plan-command.ts";
import { addPolicy } from "./policies/pack-commands.ts";
import { addQuestions } from "./questions/questions-command.ts";
import { addReplay } from "./ledger/replay-command.ts";
import { addRetry } from "./plans/retry-command.ts";
import { addMcp } from "./workflows/mcp-command.ts";
import { addRuns } from "./workflows/runs-command.ts";
import { addShow, addTimeline } from "./timeline/show-command.ts";
import { addTree } from "./timeline/tree-command.ts";
import { addStats } from "./stats/stats-command.ts";
import { addStatus } from "./status-command.ts";
import { addDisable, addEnable } from "./switch-command.ts";
import { addVerify } from "./ledger/verify-command.ts";

const ADDITIONS = [
  addEnable,
  addDisable,
  addStatus,
  addList,
  addShow,
  addTimeline,
  addTree,
  addEvents,
  addConflicts,
  addClaims,
  addQuestions,
  addApprove,
  addDeny,
  addAnswer,
  addRuns,
  addReplay,
  addFork,
  addDiff,
  addStats,
  addVerify,
  addLedger,
  addPlan,
  addPolicy,
  addCancel,
  addRetry,
  addDoctor,
  addPage,
  addMcp,
] as const;

export function addCoordinationCommands(command: CommandGroup, host: CliHost): void {
  for (const add of ADDITIONS) add(command, host);
}
