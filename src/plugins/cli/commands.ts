/**
 * Owns: the commands of `openclaw coordination` and `openclaw-coordination`.
 *
 * Inside the host `command` belongs to the host's own commander: only its methods are used, nothing of our copy.
 */
import { addAnswer, addApprove, addDeny } from "./answer-commands.ts";
import { addCancel } from "./cancel-command.ts";
import { addClaims } from "./claims-command.ts";
import type { CliHost, CommandGroup } from "./cli-host.ts";
import { addConflicts } from "./conflicts-command.ts";
import { addDiff } from "./diff-command.ts";
import { addDoctor } from "./doctor-command.ts";
import { addEvents } from "./events-command.ts";
import { addFork } from "./fork-command.ts";
import { addList } from "./list-command.ts";
import { addPlan } from "./plan-command.ts";
import { addQuestions } from "./questions-command.ts";
import { addReplay } from "./replay-command.ts";
import { addRetry } from "./retry-command.ts";
import { addRuns } from "./runs-command.ts";
import { addShow, addTimeline } from "./show-command.ts";
import { addStatus } from "./status-command.ts";
import { addDisable, addEnable } from "./switch-command.ts";
import { addVerify } from "./verify-command.ts";

const ADDITIONS = [
  addEnable,
  addDisable,
  addStatus,
  addList,
  addShow,
  addTimeline,
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
  addVerify,
  addPlan,
  addCancel,
  addRetry,
  addDoctor,
] as const;

export function addCoordinationCommands(command: CommandGroup, host: CliHost): void {
  for (const add of ADDITIONS) add(command, host);
}
