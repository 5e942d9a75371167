/** Owns: the routes that read. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { readCoordinationView } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { listEventsPage } from "./list-events.ts";
import {
  listConflicts,
  listHeldClaims,
  listShownQuestions,
  readQuestionDetail,
  type OpenWanted,
} from "./list-questions.ts";
import { listRunsPage } from "./list-runs.ts";
import { createSuccessAnswer, createRefusalAnswer, type JsonAnswer } from "./page-answer.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageDependencies, PageRequest, PageRoute } from "./page-dependencies.ts";
import { createHourCounter, readHealthReport } from "./read-health.ts";
import { createMeasuresReader } from "./read-measures.ts";
import { readQueryChoice, readQueryNumber } from "./read-query.ts";
import { readRunDetail, readStepResult } from "./run-detail.ts";

/**
 * Creates the GET routes of the page's API for one server, with the right that each needs; they keep what they counted
 * between requests.
 */
export function createReadRoutes(): readonly PageRoute[] {
  const hours = createHourCounter();
  const readMeasures = createMeasuresReader();
  return [
    { method: "GET", path: "runs", right: "read", handle: serveRuns },
    { method: "GET", path: "runs/:id", right: "read", handle: serveRun },
    { method: "GET", path: "runs/:id/events", right: "read", handle: serveEvents },
    { method: "GET", path: "runs/:id/steps/:stepId/result", right: "results", handle: serveResult },
    { method: "GET", path: "questions", right: "read", handle: serveQuestions },
    { method: "GET", path: "questions/:id", right: "read", handle: serveQuestion },
    { method: "GET", path: "conflicts", right: "read", handle: serveConflicts },
    { method: "GET", path: "claims", right: "read", handle: serveClaims },
    {
      method: "GET",
      path: "health",
      right: "read",
      handle: async (_, dependencies) => createSuccessAnswer(await readHealthReport(dependencies, hours)),
    },
    {
      method: "GET",
      path: "measures",
      right: "read",
      handle: async (_, dependencies) => createSuccessAnswer(await readMeasures(dependencies)),
    },
  ];
}

const UNKNOWN_RUN = "The ledger has no coordination and no run of this id.";

async function serveRuns(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  return createSuccessAnswer(await listRunsPage(await reader(), request));
}

async function serveRun({ param }: PageRequest, { reader, clock }: PageDependencies): Promise<JsonAnswer> {
  const detail = await readRunDetail(await reader(), param("id") as CoordinationId, clock.now());
  return detail ? createSuccessAnswer(detail) : createRefusalAnswer("not_found", UNKNOWN_RUN);
}

async function serveEvents(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  const page = await listEventsPage(await reader(), request.param("id") as CoordinationId, request);
  return page ? createSuccessAnswer(page) : createRefusalAnswer("not_found", UNKNOWN_RUN);
}

async function serveResult({ param }: PageRequest, { reader: open }: PageDependencies): Promise<JsonAnswer> {
  const reader = await open();
  const view = await readCoordinationView(reader, param("id") as CoordinationId);
  const step = view?.steps.find(({ stepId }) => stepId === param("stepId"));
  const result = step && (await readStepResult(reader, step));
  return result
    ? createSuccessAnswer(result)
    : createRefusalAnswer("not_found", "There is no such step, or it has no result.");
}

function readOpenFilter(request: PageRequest): OpenWanted {
  const isOpen = readQueryChoice(request, "which", ["open", "all"]) !== "all";
  const { questionsDefault, questionsMax: max } = PAGE_BOUNDS;
  const limit = readQueryNumber(request, "limit", { min: 1, max }) ?? (isOpen ? max : questionsDefault);
  return { isOpen, limit };
}

async function serveQuestions(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  const wanted = readOpenFilter(request);
  return createSuccessAnswer(await listShownQuestions(await reader(), wanted, request.session.rights));
}

async function serveQuestion(
  { param, session }: PageRequest,
  { reader }: PageDependencies,
): Promise<JsonAnswer> {
  const question = await readQuestionDetail(await reader(), param("id"), session.rights);
  return question
    ? createSuccessAnswer(question)
    : createRefusalAnswer("not_found", "There is no such question.");
}

async function serveConflicts(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  return createSuccessAnswer(await listConflicts(await reader(), readOpenFilter(request)));
}

async function serveClaims(_: PageRequest, { reader, clock }: PageDependencies): Promise<JsonAnswer> {
  return createSuccessAnswer(await listHeldClaims(await reader(), clock.now()));
}
