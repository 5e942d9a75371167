/** Owns: the routes that read. */
import type { CoordinationId } from "../../../agents/coordination/contracts/ids.ts";
import { readCoordination } from "../../../agents/coordination/runtime/log/coordination-view.ts";
import { listEventsPage } from "./list-events.ts";
import {
  listConflicts,
  listHeldClaims,
  listQuestions,
  readQuestionDetail,
  type OpenWanted,
} from "./list-questions.ts";
import { listRunsPage } from "./list-runs.ts";
import { answerWith, refuse, type JsonAnswer } from "./page-answer.ts";
import { PAGE_BOUNDS } from "./page-bounds.ts";
import type { PageDependencies, PageRequest, PageRoute } from "./page-dependencies.ts";
import { createHourCounter, readHealthReport } from "./read-health.ts";
import { createMeasuresReader } from "./read-measures.ts";
import { readChoice, readNumber } from "./read-query.ts";
import { readRunDetail, readStepResult } from "./run-detail.ts";

/** Returns the routes of one server; what they count, they keep. */
export function createReadRoutes(): readonly PageRoute[] {
  const hours = createHourCounter();
  const readMeasures = createMeasuresReader();
  return [
    { method: "GET", path: "runs", right: "read", handle: readRuns },
    { method: "GET", path: "runs/:id", right: "read", handle: readRun },
    { method: "GET", path: "runs/:id/events", right: "read", handle: readEvents },
    { method: "GET", path: "runs/:id/steps/:stepId/result", right: "results", handle: readResult },
    { method: "GET", path: "questions", right: "read", handle: readQuestions },
    { method: "GET", path: "questions/:id", right: "read", handle: readQuestion },
    { method: "GET", path: "conflicts", right: "read", handle: readConflicts },
    { method: "GET", path: "claims", right: "read", handle: readClaims },
    {
      method: "GET",
      path: "health",
      right: "read",
      handle: async (_, dependencies) => answerWith(await readHealthReport(dependencies, hours)),
    },
    {
      method: "GET",
      path: "measures",
      right: "read",
      handle: async (_, dependencies) => answerWith(await readMeasures(dependencies)),
    },
  ];
}

const UNKNOWN_RUN = "The ledger has no coordination and no run of this id.";

async function readRuns(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  return answerWith(await listRunsPage(await reader(), request));
}

async function readRun({ param }: PageRequest, { reader, clock }: PageDependencies): Promise<JsonAnswer> {
  const detail = await readRunDetail(await reader(), param("id") as CoordinationId, clock.now());
  return detail ? answerWith(detail) : refuse("not_found", UNKNOWN_RUN);
}

async function readEvents(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  const page = await listEventsPage(await reader(), request.param("id") as CoordinationId, request);
  return page ? answerWith(page) : refuse("not_found", UNKNOWN_RUN);
}

async function readResult({ param }: PageRequest, { reader: open }: PageDependencies): Promise<JsonAnswer> {
  const reader = await open();
  const view = await readCoordination(reader, param("id") as CoordinationId);
  const step = view?.steps.find(({ stepId }) => stepId === param("stepId"));
  const result = step && (await readStepResult(reader, step));
  return result ? answerWith(result) : refuse("not_found", "There is no such step, or it has no result.");
}

function readOpenWanted(request: PageRequest): OpenWanted {
  const isOpen = readChoice(request, "which", ["open", "all"]) !== "all";
  const { questionsDefault, questionsMax: max } = PAGE_BOUNDS;
  const limit = readNumber(request, "limit", { min: 1, max }) ?? (isOpen ? max : questionsDefault);
  return { isOpen, limit };
}

async function readQuestions(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  const wanted = readOpenWanted(request);
  return answerWith(await listQuestions(await reader(), wanted, request.session.rights));
}

async function readQuestion(
  { param, session }: PageRequest,
  { reader }: PageDependencies,
): Promise<JsonAnswer> {
  const question = await readQuestionDetail(await reader(), param("id"), session.rights);
  return question ? answerWith(question) : refuse("not_found", "There is no such question.");
}

async function readConflicts(request: PageRequest, { reader }: PageDependencies): Promise<JsonAnswer> {
  return answerWith(await listConflicts(await reader(), readOpenWanted(request)));
}

async function readClaims(_: PageRequest, { reader, clock }: PageDependencies): Promise<JsonAnswer> {
  return answerWith(await listHeldClaims(await reader(), clock.now()));
}
