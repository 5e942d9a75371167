/**
 * `node serve.mjs FILE`: OpenWorkflow with its SQLite backend behind a thin HTTP face, so that the load client of the
 * benchmark can put the same load on it. Prints one JSON line when it listens: where, and how the backend writes, read back.
 *
 * Two workflows: `noop`, one step that does nothing, and `handoff`, a step that decides, a child run of `noop`, and a step
 * that decides to end. Every change of a run's state is a transaction of its own in OpenWorkflow.
 *
 * Its worker asks the database for work every 0.1 to 1 s while it has none. Here it is asked to look (`tick`) as soon as
 * there is something, which is the fastest form: what is compared is then the work, not the waiting.
 */
import { Buffer } from "node:buffer";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers";

/** More than there are clients, for parents and their children. */
const WORKERS = 40;
const SYNCHRONOUS = ["off", "normal", "full", "extra"];
const NOT_INSTALLED = 3;
const [, , file] = process.argv;

const found = await import("openworkflow/sqlite").catch(() => undefined);
if (!found) {
  process.stderr.write(
    "OpenWorkflow is not installed. Run: npm ci --ignore-scripts --prefix test/bench/openworkflow\n",
  );
  process.exit(NOT_INSTALLED);
}
const { OpenWorkflow } = await import("openworkflow");
const backend = found.BackendSqlite.connect(file);
/** Who waits for the end of a run. */
const waiting = new Map();
const engine = new OpenWorkflow({ backend });
const noop = engine.defineWorkflow({ name: "noop" }, async ({ step }) => {
  await step.run({ name: "noop" }, () => ({}));
  return {};
});
const handoff = engine.defineWorkflow({ name: "handoff" }, async ({ step }) => {
  await step.run({ name: "decide-1" }, () => ({ kind: "next-worker", nextWorkerIds: ["noop"] }));
  const parentResult = await step.runWorkflow(noop.workflow.spec, {});
  await step.run({ name: "decide-2" }, () => ({ kind: "terminate" }));
  return { parentResult };
});
const workflows = { noop, handoff };
const workers = Array.from({ length: WORKERS }, () => engine.newWorker({ concurrency: 1 }));
const news = { isLooking: false, isThere: false };
watch();

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    response.writeHead(500).end(String(error));
  });
});
server.listen(0, "127.0.0.1", () => {
  const pragma = (name) => Object.values(backend.db.prepare(`PRAGMA ${name}`).get())[0];
  const told = {
    baseUrl: `http://127.0.0.1:${server.address().port}`,
    journalMode: pragma("journal_mode"),
    synchronous: SYNCHRONOUS[pragma("synchronous")],
    version: versionOf("openworkflow"),
  };
  process.stdout.write(`${JSON.stringify(told)}\n`);
});

async function answer(request, response) {
  const [, runId, rest] = /^\/v1\/runs(?:\/([^/?]+)(.*))?$/.exec(request.url ?? "") ?? [];
  if (request.method === "POST") {
    const { workflowId } = JSON.parse(await textOf(request));
    const { workflowRun } = await workflows[workflowId].run({});
    return send(response, 201, { runId: workflowRun.id, status: "pending" });
  }
  if (rest?.startsWith("/events/poll")) await ended(runId);
  const run = await backend.getWorkflowRun({ workflowRunId: runId });
  return send(response, 200, { runId, status: run.status, outputs: run.output });
}

function send(response, status, body) {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
  });
  response.end(text);
}

async function textOf(request) {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}

async function ended(runId) {
  const run = await backend.getWorkflowRun({ workflowRunId: runId });
  if (run.status !== "completed") await new Promise((resolve) => waiting.set(runId, resolve));
}

/** Whenever something may have become ready, it is looked for; whoever waits for the end of a run is told of it. */
function watch() {
  for (const name of ["createWorkflowRun", "sleepWorkflowRun", "completeWorkflowRun"]) {
    const write = backend[name].bind(backend);
    backend[name] = async (params) => {
      const run = await write(params);
      // By then the worker is free again.
      setImmediate(look);
      if (name === "completeWorkflowRun") {
        waiting.get(run.id)?.();
        waiting.delete(run.id);
      }
      return run;
    };
  }
}

/** One worker at a time is asked for one run, until there is none: more would ask in vain. */
async function look() {
  news.isThere = true;
  if (news.isLooking) return;
  news.isLooking = true;
  while (news.isThere) {
    news.isThere = false;
    for (const worker of workers)
      if (worker.activeExecutions.size === 0 && (await worker.tick()) === 0) break;
  }
  news.isLooking = false;
}

function versionOf(name) {
  const path = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(path, "utf8")).version;
}
