/**
 * A process that begins requests with the same keys as others, appends to one run beside them until it has won a number of
 * times, and takes the events of one fork with them, a portion at a time. Prints what it got.
 */
import { isCoordinationError } from "../../src/agents/coordination/contracts/errors.ts";
import { openAnyLedger } from "../support/any-ledger.ts";
import { FORK_PORTIONS, RACER_KEYS, type RacerReport } from "./workflow-store-racer-report.ts";
import {
  branchOf,
  createNodeStarted,
  NOW,
  readAll,
  SOON,
  createRunStarted,
  createWorkflowAuthor,
  nameWorkflowRun,
} from "./workflow-store-tested.ts";

const WINS = 30;

const [, , path = "", name = ""] = process.argv;
const store = await openAnyLedger(path, { busyTimeoutMs: 10_000 });
const { requests } = store.workflows;
const began: string[] = [];
for (const key of RACER_KEYS) {
  const request = {
    tenant: "acme",
    endpoint: "POST /v1/runs",
    key,
    digest: "d",
    now: NOW,
    leaseUntilMs: SOON,
  };
  const begun = await requests.begin({ ...request, subject: `run-${name}` });
  if (begun.kind === "new") began.push(key);
}
const won: string[] = [];
while (won.length < WINS) {
  const author = createWorkflowAuthor("shared");
  const length = (await readAll(store.workflows, author.runId)).length;
  author.append(Array.from({ length }, () => createNodeStarted("there")));
  const node = `${name}-${won.length}`;
  try {
    await store.workflows.append(author.append([createNodeStarted(node)]));
    won.push(node);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CONFLICT") throw error;
  }
}
const portions: number[] = [];
for (let next = 0; next < FORK_PORTIONS; next += 1) {
  const fork = createWorkflowAuthor(
    "fork",
    branchOf(nameWorkflowRun("source"), "fork", 2 * FORK_PORTIONS - 7),
  );
  fork.append(Array.from({ length: 2 * next }, () => createNodeStarted("there")));
  const drafts = [
    next === 0 ? createRunStarted() : createNodeStarted(`a-${next}`),
    createNodeStarted(`b-${next}`),
  ];
  try {
    await store.workflows.append(fork.append(drafts));
    portions.push(next);
  } catch (error) {
    if (!isCoordinationError(error) || error.code !== "LEDGER_CONFLICT") throw error;
  }
}
await store.close();
process.stdout.write(JSON.stringify({ began, won, portions } satisfies RacerReport));
