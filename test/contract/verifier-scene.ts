/** Owns: a verifier with real programs and files, a scripted model, and what is asked of it. */
import { mkdirSync, readdirSync } from "node:fs";
import { vi } from "vitest";
import type { AgentId, EpochMs } from "../../src/agents/coordination/contracts/ids.ts";
import { operatorCheckSchema } from "../../src/agents/coordination/contracts/verification.ts";
import type { LogFields } from "../../src/agents/coordination/ports/logger.ts";
import type { ModelClient, ModelRequest } from "../../src/agents/coordination/ports/model-client.ts";
import type {
  CheckAnswer,
  CheckRequest,
  VerifiedResult,
} from "../../src/agents/coordination/ports/verifier.ts";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createAjvOutputContract } from "../../src/infra/json-schema/ajv-output-contract.ts";
import { createVerifier, type VerifierDependencies } from "../../src/infra/verify/create-verifier.ts";
import { createTempFolder } from "../support/temp-ledger.ts";

export const KEY = "check-1";
/** Enough for any check that ends by itself. */
const ENOUGH_MS = 60_000;

export interface CheckSetting {
  readonly result?: Readonly<Record<string, unknown>>;
  readonly key?: string;
  /** From now. */
  readonly withinMs?: number;
  readonly signal?: AbortSignal;
}

export interface Scene extends Disposable {
  readonly workspace: string;
  readonly logged: { readonly fields: LogFields; readonly message: string }[];
  /** The path of something beside the workspace. */
  outside(name: string): string;
  /** Files that checks have left behind in the folder for temporary files. */
  leftBehind(): readonly string[];
  check(check: object, request?: CheckSetting): Promise<CheckAnswer>;
}

/** The agent whose model criticises where a check names none, and whether an agent may criticise itself. */
type Critics = Partial<Pick<CheckRequest, "critic" | "allowSelf">>;

export function createVerifierScene({
  critic,
  allowSelf = false,
  ...change
}: Partial<VerifierDependencies> & Critics = {}): Scene {
  const folder = createTempFolder();
  const workspace = folder.file("workspace");
  const temporary = folder.file("tmp");
  for (const path of [workspace, temporary]) mkdirSync(path);
  vi.stubEnv("TMPDIR", temporary);
  const logged: Scene["logged"] = [];
  const log = (fields: LogFields, message: string): void => void logged.push({ fields, message });
  const dependencies: VerifierDependencies = {
    contract: () => Promise.resolve(createAjvOutputContract()),
    workspaceOf: () => workspace,
    clock: systemClock,
    logger: { debug: log, info: log, warn: log, error: log },
    ...change,
  };
  const verifier = createVerifier(dependencies);
  return {
    workspace,
    logged,
    outside: (name) => folder.file(name),
    leftBehind: () => readdirSync(temporary),
    check: (check, { result = {}, key = KEY, withinMs = ENOUGH_MS, signal } = {}) =>
      verifier.check({
        key,
        allowSelf,
        ...(critic && { critic }),
        check: operatorCheckSchema.parse(check),
        result: { ...RESULT, ...result } as VerifiedResult,
        deadlineAtMs: (dependencies.clock.now() + withinMs) as EpochMs,
        signal: signal ?? new AbortController().signal,
      }),
    [Symbol.dispose]: () => {
      vi.unstubAllEnvs();
      folder[Symbol.dispose]();
    },
  };
}

const RESULT = {
  coordinationId: "co-1",
  stepId: "build",
  attempt: 2,
  target: "co-1:7",
  agentId: "coder",
  text: "all tests passed",
};

export function createVerdict(kind: "pass" | "fail" | "revise", key: string = KEY): CheckAnswer {
  return { kind: "verdict", verdict: kind, criteria: [key], agentId: `check:${key}` };
}

/** Matches an answer without a verdict. */
export function matchNoVerdict(because: string): object {
  return { kind: "none", because };
}

export interface ScriptedCritic extends ModelClient {
  readonly requests: ModelRequest[];
}

/** Answers one after the other, and the last one for ever; an Error is thrown. */
export function createScriptedCritic(...answers: readonly (string | object)[]): ScriptedCritic {
  const requests: ModelRequest[] = [];
  return {
    requests,
    complete: (request) => {
      const answer = answers[Math.min(requests.length, answers.length - 1)] ?? "";
      requests.push(request);
      if (answer instanceof Error) return Promise.reject(answer);
      return Promise.resolve({
        text: typeof answer === "string" ? answer : JSON.stringify(answer),
        model: "scripted",
      });
    },
  };
}

export const CRITIC = "judge" as AgentId;
