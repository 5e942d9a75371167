/** Owns: turning what an author registers into what is stored, or a TypeError that says what is wrong. */
import { HOOK_BUDGETS_MS, HOOK_KINDS, HOOK_LIMITS, type HookKind } from "./hook-limits.ts";
import { HOOKS_VERSION, type HookEntry, type StoredHook } from "./hook-registry.ts";
import type { CoordinationHooks, CoordinationHooksApi, HookSettings } from "./hook-types.ts";

/** Creates the error for a problem of a registration. */
type ErrorFactory = (problem: string) => TypeError;

/** As far as a caller without types may be wrong about it. */
type UncheckedFields = Readonly<Record<string, unknown>>;

const PLUGIN_ID = /^[a-z0-9][a-z0-9._@/-]*$/;

/**
 * Returns the registry's frozen entry for the hooks that a plugin hands over, with `options` for the settings that a
 * hook lacks and the budgets cut to their maxima. @throws TypeError
 */
export function readRegistration(
  { id, logger }: CoordinationHooksApi,
  hooks: CoordinationHooks,
  options: HookSettings,
): HookEntry {
  if (!isPluginId(id))
    throw new TypeError(
      `a plugin with hooks has an id of at most ${HOOK_LIMITS.pluginIdCharsMax} of a-z 0-9 . _ @ / -, the first a letter or a digit, and this one is ${String(id)}`,
    );
  const createTypeError: ErrorFactory = (problem) =>
    new TypeError(`the hooks of the plugin ${id}: ${problem}`);
  if (!isObject(hooks)) throw createTypeError("they are no object");
  const unknown = Object.keys(hooks).find((name) => !HOOK_KINDS.some((kind) => kind === name));
  if (unknown !== undefined) throw createTypeError(`there is no hook ${unknown}`);
  const { priority, budgetMs, ...rest }: UncheckedFields = { ...options };
  assertSettingsKnown(rest, createTypeError);
  const usual = readSettings({ priority, budgetMs }, createTypeError);
  const kinds = HOOK_KINDS.filter((kind) => hooks[kind] !== undefined);
  const stored = kinds.map((kind) => {
    const hook = readRegisteredHook(hooks, kind, (problem) => createTypeError(`${kind}: ${problem}`));
    const budgetMs = hook.budgetMs ?? usual.budgetMs;
    const bounded = budgetMs !== undefined && { budgetMs: Math.min(budgetMs, HOOK_BUDGETS_MS[kind].most) };
    return [kind, Object.freeze({ priority: 0, ...usual, ...hook, ...bounded })] as const;
  });
  return Object.freeze({
    version: HOOKS_VERSION,
    pluginId: id,
    kinds: Object.freeze(kinds),
    hooks: Object.freeze(Object.fromEntries(stored)),
    report: (message: string) => logger.error(message),
  });
}

type ReadHook = Omit<StoredHook, "priority"> & { readonly priority?: number };

function readRegisteredHook(hooks: CoordinationHooks, kind: HookKind, wrong: ErrorFactory): ReadHook {
  const registered: unknown = hooks[kind];
  if (typeof registered === "function")
    return { run: (...args): unknown => Reflect.apply(registered, hooks, args) };
  if (!isObject(registered)) throw wrong("it is neither a function nor an object with one");
  const { run, priority, budgetMs, agents, ...rest } = registered;
  if (typeof run !== "function") throw wrong("`run` is no function");
  assertSettingsKnown(rest, wrong);
  if (agents !== undefined && (kind !== "verify" || !isListOfAgents(agents)))
    throw wrong("`agents` is a list of agent ids, and of `verify` only");
  return {
    run: (...args): unknown => Reflect.apply(run, registered, args),
    ...readSettings({ priority, budgetMs }, wrong),
    ...(agents !== undefined && { agents: Object.freeze([...agents]) }),
  };
}

function assertSettingsKnown(rest: UncheckedFields, wrong: ErrorFactory): void {
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw wrong(`there is no setting ${unknown}`);
}

function readSettings(
  { priority, budgetMs }: UncheckedFields,
  wrong: ErrorFactory,
): { readonly priority?: number; readonly budgetMs?: number } {
  if (priority !== undefined && !isWithin(priority, -HOOK_LIMITS.priorityMax, HOOK_LIMITS.priorityMax))
    throw wrong(`\`priority\` is a number from -${HOOK_LIMITS.priorityMax} to ${HOOK_LIMITS.priorityMax}`);
  if (budgetMs !== undefined && !isWithin(budgetMs, 1, Number.MAX_SAFE_INTEGER))
    throw wrong("`budgetMs` is a number of milliseconds, at least 1");
  return { ...(priority !== undefined && { priority }), ...(budgetMs !== undefined && { budgetMs }) };
}

function isPluginId(id: unknown): id is string {
  return typeof id === "string" && id.length <= HOOK_LIMITS.pluginIdCharsMax && PLUGIN_ID.test(id);
}

function isListOfAgents(agents: unknown): agents is readonly string[] {
  if (!Array.isArray(agents) || agents.length === 0 || agents.length > HOOK_LIMITS.agentsMax) return false;
  return agents.every(
    (id) => typeof id === "string" && id.length > 0 && id.length <= HOOK_LIMITS.agentIdCharsMax,
  );
}

function isObject(value: unknown): value is UncheckedFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && value >= least && value <= most;
}
