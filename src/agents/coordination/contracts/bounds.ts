/**
 * Owns: every limit on coordinations: what is accepted of plans, spawns, results, questions and settings, and how much is
 * recorded of each. Does not own: the limits on workflow runs (`workflows/workflow-bounds.ts`).
 */

/**
 * Every limit on what the coordination layer accepts or stores, by name.
 *
 * Sizes are in UTF-16 code units for text and in items for arrays, unless the name says otherwise.
 */
export const BOUNDS = {
  idCharsMax: 128,
  /** An event id is `coordinationId:sequence` and may have 128 characters, in OpenWOP too. */
  coordinationIdCharsMax: 112,
  idempotencyKeyCharsMax: 384,
  traceRefCharsMax: 512,
  sha256Chars: 64,
  timestampCharsMax: 32,
  problemPathCharsMax: 200,
  sessionKeyCharsMax: 512,
  /** OpenWOP allows 256 characters for `agent:` and the id. */
  agentIdCharsMax: 250,
  nameCharsMax: 64,
  /** A commit of git, by SHA-256. */
  commitIdCharsMax: 64,
  /** A provider and a model. */
  modelNameCharsMax: 256,
  errorMessageCharsMax: 300,
  objectiveCharsMax: 2_000,
  taskCharsMax: 200_000,
  resourceCharsMax: 1_024,
  problemsMax: 8,
  claimsMax: 256,
  /** Resources that one tool call may change. */
  resourcesPerCallMax: 256,
  /** Not released yet, expired ones included. */
  claimsPerStepMax: 5_000,
  /** Over all patterns of a list: a model may have written them, and each is tried on every contested resource. */
  policyCharsMax: 8_192,
  conflictsPerCoordinationMax: 10_000,
  versionCharsMax: 128,
  /** The content of a larger file is not read: its size and times stand for its version, and it is never merged. */
  mergeBytesMax: 5_000_000,
  /** Kept of the files of one call for later merges. */
  mergeBytesPerCallMax: 16_000_000,
  /** The host waits for an approval no longer. */
  reviewMsMax: 600_000,
  /** The host's own limit for the hook is longer by what is left for the ruling. */
  waitMsMax: 8_000,
  /** Names under which the operator's page is reached, and characters of one: DNS allows no more. */
  pageHostsMax: 20,
  pageHostCharsMax: 255,
  leaseMsMin: 1_000,
  watchedToolsMax: 64,
  planStepsMax: 10_000,
  dependenciesMax: 1_000,
  resourcesPerStepMax: 64,
  policyOverridesMax: 256,
  policyPacksMax: 32,
  /** A pack extends one that extends another: so many in all. */
  policyChainMax: 8,
  telemetryHeadersMax: 32,
  retryBudgetMax: 100,
  stepsPerCoordinationMax: 10_000,
  gatewayLeaseMsMax: 600_000,
  ledgerKeepDaysMax: 36_500,
  durationMsMax: 31 * 24 * 3_600_000,
  envelopeCharsMax: 16_384,
  envelopeDepthMax: 8,
  planCharsMax: 8_000_000,
  planDepthMax: 32,
  valueNodesMax: 200_000,
  arrayItemsMax: 10_000,
  objectKeysMax: 1_000,
  eventCharsMax: 262_144,
  eventDepthMax: 16,
  validationProblemsMax: 20,
  planProblemsMax: 100,
  /** Plans that children of plans submit, one in the other. */
  planNestingMax: 5,
  /** Over all steps; what `valueNodesMax` leaves room for. */
  planDependenciesMax: 200_000,
  inputDepthMax: 16,
  inputValuesMax: 10_000,
  bindingsPerStepMax: 1_000,
  bindingSegmentsMax: 16,
  outputSchemaDepthMax: 16,
  outputSchemaValuesMax: 5_000,
  patternCharsMax: 1_000,
  /** Schemas within a schema: turning them into code takes time that grows faster than their number. */
  outputSchemaSchemasMax: 1_000,
  /** Over all patterns of one schema: turning them into automata takes time and memory. */
  outputSchemaPatternCharsMax: 4_000,
  /** The same with repetitions written out, in parts; a part takes 80 bytes. */
  outputSchemaPatternSizeMax: 50_000,
  /** A pattern with its repetitions written out, in parts. */
  patternSizeMax: 5_000,
  /** Alternatives of one `anyOf` or `oneOf`, and patterns of one `patternProperties`. */
  outputSchemaChoicesMax: 256,
  /** Levels of all schemas that a `$ref` leads to, added up. */
  outputSchemaReferenceLevelsMax: 150,
  backoffMsMax: 3_600_000,
  planFileBytesMax: 16_000_000,
  /** Reading YAML takes ten times as long as reading JSON. */
  planYamlBytesMax: 2_000_000,
  yamlAliasesMax: 100,
  /** The outputs of one attempt, as JSON. */
  outputCharsMax: 200_000,
  replyCharsMax: 200_000,
  /** The end of a reply that had to be cut: an agent states its confidence there. */
  replyEndChars: 16_000,
  outputDepthMax: 32,
  /** The input of one step with its bindings filled in, as JSON. */
  filledInputCharsMax: 400_000,
  /** The message to an owner at the end of its plan; more can be asked for. */
  deliveryCharsMax: 16_000,
  budgetMax: Number.MAX_SAFE_INTEGER,
  /** In millionths it is still a safe integer. */
  budgetCostUsdMax: 1_000_000_000,
  lateOutcomesPerStepMax: 16,
  reportsPerAttemptMax: 16,
  /** One line of progress, in characters as people count them. */
  progressCharsMax: 200,
  /** Changes of what really runs that are recorded of one attempt, and differences from what was asked. */
  observationsPerAttemptMax: 32,
  differencesPerAttemptMax: 16,
  configCharsMax: 1_000_000,
  /** A JSON Schema of a check lies eight levels deep in it. */
  configDepthMax: 24,
  acpAgentsMax: 64,
  acpArgumentsMax: 64,
  laneConcurrencyMax: 10_000,
  laneQueueMax: 10_000,
  /** Steps that one append admits or skips: a longer one would hold up the host's event loop. */
  stepsPerAppendMax: 250,
  checksPerStepMax: 16,
  /** Checks of the step, of its agent and of plugins together. */
  checksPerResultMax: 96,
  criteriaMax: 64,
  rubricCharsMax: 4_000,
  revisionsMax: 10,
  /** Attempts of a step that ended because its provider refused calls, and do not count as retries. */
  refusedAttemptsMax: 5,
  /** The retry of an attempt that timed out waits so long for its agent to be stopped: runners end it by then. */
  stopAgentMsMax: 5_000,
  /** A longer `retry-after` of a provider is cut to this. */
  retryAfterMsMax: 600_000,
  successCriteriaMax: 64,
  /** The question and the answer of people, as text. */
  questionCharsMax: 4_000,
  answerCharsMax: 200_000,
  optionsMax: 16,
  /** Telling people of one question. */
  noticesMax: 16,
  /** Open questions of one coordination; more are refused. */
  openQuestionsMax: 2_000,
  /** Answers to one question that are recorded though they did not count. */
  refusedAnswersMax: 32,
  /** Texts of one attempt; the newest counts, and with one more the result is lost. */
  withheldTextsMax: 64,
  /** The least that an operator may choose for a parent to be shown of one result. */
  parentCharsMin: 2_000,
  parentCharsMax: 1_000_000,
  /** Per step: texts that its parent is shown a part of, and messages that did not go to a chat. */
  shortenedTextsMax: 64,
  suppressedMessagesMax: 64,
  webhooksMax: 32,
  verifiersMax: 64,
  /** Entries of a list of tools that may or may not be called. */
  privilegeToolsMax: 128,
  /** Recorded refusals of one step; further calls are refused without a record. */
  privilegeRefusalsMax: 32,
  /** Sessions between a child and the owner that its privileges are looked up from. */
  privilegeDepthMax: 64,
  /** Files of one worktree that are merged back, or named as not mergeable. */
  worktreeFilesMax: 250,
  openWopTokensMax: 64,
  openWopFoldersMax: 16,
  openWopOriginsMax: 64,
  /** The name of an MCP server. */
  openWopServerCharsMax: 64,
  openWopSendersMax: 256,
  /** Different models of one run. */
  modelsPerRunMax: 8,
  /** Runs of one coordination whose usage is recorded, each by every process that counted it. */
  usageRunsMax: 50_000,
  /** Agents with a part of the budget. */
  budgetAgentsMax: 64,
  /** Recorded stops of one coordination; further sessions are stopped without a record. */
  budgetStopsMax: 1_000,
} as const;
