/**
 * Owns: which places of the operator's configuration switch coordination on and off, and changing them through the host.
 * Does not own: what the plugin's own part of it means (`contracts/config.ts`).
 */
import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  parseConfigWithPack,
  parseLedgerConfig,
  parsePluginConfig,
  type Phase1Config,
} from "../../../agents/coordination/contracts/config/config.ts";
import type { LedgerConfig } from "../../../agents/coordination/contracts/config/ledger-config.ts";
import { InvalidConfigError } from "../../../agents/coordination/contracts/config/parse-config.ts";
import { leaveOutSecrets } from "../../../agents/coordination/contracts/config/secret-settings.ts";
import { listRuledPacks } from "../../../agents/coordination/contracts/config/written-settings.ts";
import { CoordinationError, isCoordinationError } from "../../../agents/coordination/contracts/errors.ts";
import { describeProblems } from "../../../agents/coordination/contracts/validation.ts";
import { formatCanonicalJson } from "../../../agents/coordination/std/canonical-json.ts";
import { isRecord, type UnknownRecord } from "../../../agents/coordination/std/is-record.ts";

const PLUGIN_ID = "coordination";
const ENTRY = `plugins.entries.${PLUGIN_ID}`;
const ACCESS = `${ENTRY}.hooks.allowConversationAccess`;

/** Where the plugin's own settings are. */
export const PHASE1 = `${ENTRY}.config.coordination.phase1`;

/** One place of the configuration; `from` is `null` where nothing stood, and `to` where nothing is to stand. */
export interface ConfigChange {
  /** Keys joined by dots; no key on these paths has one. */
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
}

export interface EnableOptions {
  /** Absent: as it is. */
  readonly strict?: boolean;
  /** Absent: as it is. */
  readonly agents?: readonly string[] | "all";
}

export interface OperatorConfig {
  /** The configuration as the host has read it. Absent outside of the host: to read it there loads the whole host. */
  readonly known?: object;
  /** False where it surely names no ledger, which is looked for without reading it. Absent where it is known. */
  readonly mayNameLedger?: (stateDir: string) => Promise<boolean>;
  /** `undefined` where the configuration cannot be read from here. @throws CoordinationError `CONFIG_INVALID` for a slip in its syntax */
  read(): Promise<ReadConfig | undefined>;
  /**
   * Applies what `plan` says of the newest configuration, and returns it.
   *
   * @throws CoordinationError `CONFIG_NOT_WRITABLE`, `CONFIG_INVALID`
   */
  change(plan: (config: unknown) => readonly ConfigChange[]): Promise<ChangedConfig>;
}

export interface ReadConfig {
  readonly config: unknown;
  readonly path?: string;
  /** There is no such file: the configuration is empty. */
  readonly isMissing?: boolean;
}

export interface ChangedConfig {
  readonly changed: readonly ConfigChange[];
  readonly path: string;
}

/** The switches of this plugin in the configuration. */
export interface CoordinationSwitches {
  /** The plugin's own part, or why it is not valid. */
  readonly phase1: Phase1Config | CoordinationError;
  readonly pluginEnabled: boolean;
  readonly conversationAccess: boolean;
  /** Why the host would not load the plugin whatever its entry says. */
  readonly excluded?: string;
}

export function readCoordinationSwitches(config: unknown): CoordinationSwitches {
  const excluded = findPluginExclusion(config);
  return {
    phase1: parsePhase1(config),
    pluginEnabled: readConfigValueAt(config, `${ENTRY}.enabled`) === true,
    conversationAccess: readConfigValueAt(config, ACCESS) === true,
    ...(excluded !== undefined && { excluded }),
  };
}

/** Returns where the gateway's ledger is, whatever else its configuration says. @throws CoordinationError `CONFIG_INVALID` */
export function readLedgerConfig(config: unknown): LedgerConfig {
  return parseLedgerConfig(readConfigValueAt(config, `${PHASE1}.ledger`));
}

/** True when spawns are coordinated under this configuration. */
export function isCoordinating({ phase1, pluginEnabled, excluded }: CoordinationSwitches): boolean {
  return !isCoordinationError(phase1) && phase1.enabled && pluginEnabled && excluded === undefined;
}

function parsePhase1(config: unknown): Phase1Config | CoordinationError {
  return parseOrReturnError(() => parsePluginConfig(readConfigValueAt(config, `${ENTRY}.config`)));
}

function parseOrReturnError(read: () => Phase1Config): Phase1Config | CoordinationError {
  try {
    return read();
  } catch (error) {
    if (isCoordinationError(error)) return error;
    throw error;
  }
}

function findPluginExclusion(config: unknown): string | undefined {
  if (readConfigValueAt(config, "plugins.enabled") === false) return "plugins.enabled is false";
  if (readListAt(config, "plugins.deny").includes(PLUGIN_ID)) return `plugins.deny has "${PLUGIN_ID}"`;
  return isMissingInAllowlist(readListAt(config, "plugins.allow"))
    ? `plugins.allow lacks "${PLUGIN_ID}"`
    : undefined;
}

function isMissingInAllowlist(allow: readonly unknown[]): boolean {
  return allow.length > 0 && !allow.includes(PLUGIN_ID);
}

export function listEnableChanges(config: unknown, { strict, agents }: EnableOptions): ConfigChange[] {
  const allow = readListAt(config, "plugins.allow");
  const wanted: [string, unknown][] = [
    [`${ENTRY}.enabled`, true],
    [ACCESS, true],
    [`${PHASE1}.enabled`, true],
  ];
  if (strict !== undefined) wanted.push([`${PHASE1}.strict`, strict || null]);
  if (agents) wanted.push([`${PHASE1}.agents`, agents === "all" ? null : agents]);
  if (isMissingInAllowlist(allow)) wanted.push(["plugins.allow", [...allow, PLUGIN_ID]]);
  return listNeededChanges(config, wanted);
}

export function listDisableChanges(config: unknown): ConfigChange[] {
  const path = `${PHASE1}.enabled`;
  return readConfigValueAt(config, path) === true ? [{ path, from: true, to: false }] : [];
}

/** A variable that the host did not find here. The gateway's environment may have it. */
const UNRESOLVED = /\$\{[A-Z_][A-Z0-9_]*\}/u;

/**
 * Returns the changes as they are. @throws CoordinationError `CONFIG_INVALID` where the plugin would refuse the
 * configuration that they make
 */
export function assertChangesValid(config: unknown, changes: ConfigChange[]): ConfigChange[] {
  const after = applyChangesToCopy(config, changes);
  const phase1 = parsePhase1(after);
  if (!isCoordinationError(phase1)) return changes;
  if (!hasUnresolvedVariable(after)) throw phase1;
  return assertNoNewProblem(config, changes);
}

/**
 * Returns the changes as they are. The configuration may be as wrong as before, as where a variable is not known here
 * or a pack cannot hold. @throws CoordinationError `CONFIG_INVALID` where the plugin would refuse it for a reason that
 * there was not before
 */
export function assertNoNewProblem(config: unknown, changes: ConfigChange[]): ConfigChange[] {
  const before = listConfigProblems(config).map(({ text }) => removeRuleIndex(text));
  for (const { text, error } of listConfigProblems(applyChangesToCopy(config, changes))) {
    const at = before.indexOf(removeRuleIndex(text));
    if (at === -1) throw error;
    before.splice(at, 1);
  }
  return changes;
}

function removeRuleIndex(text: string): string {
  return text.replaceAll(/(?<=policies\.rules\[)\d+(?=\])/gu, "");
}

function applyChangesToCopy(config: unknown, changes: readonly ConfigChange[]): object {
  const copy = structuredClone(config ?? {});
  applyConfigChanges(copy, changes);
  return copy;
}

interface ConfigProblem {
  readonly text: string;
  readonly error: CoordinationError;
}

function listConfigProblems(config: unknown): ConfigProblem[] {
  const value = readConfigValueAt(config, `${ENTRY}.config`);
  const underPacks = listRuledPacks(value).map((pack) =>
    parseOrReturnError(() => parseConfigWithPack(value, pack)),
  );
  const problems = [parsePhase1(config), ...underPacks].flatMap((phase1) =>
    isCoordinationError(phase1) ? splitConfigError(phase1) : [],
  );
  const texts = problems.map(({ text }) => text);
  return problems.filter(({ text }, index) => texts.indexOf(text) === index);
}

function splitConfigError(error: CoordinationError): ConfigProblem[] {
  if (!(error instanceof InvalidConfigError)) return [{ text: error.message, error }];
  return error.problems.map((problem) => ({ text: describeProblems([problem]), error }));
}

/** True where the plugin's part of the configuration names a variable whose value the gateway may have and this process has not. */
export function hasUnresolvedVariable(config: unknown): boolean {
  return UNRESOLVED.test(JSON.stringify(readConfigValueAt(config, ENTRY) ?? {}));
}

/** Returns the hash by which a gateway tells which configuration it coordinates by; of its secrets only which there are. */
export function hashConfig(phase1: Phase1Config): string {
  return hash("sha256", formatCanonicalJson(leaveOutSecrets(phase1)));
}

/** Returns the configuration below `coordination.phase1` as it is written, without defaults. */
export function readWrittenPhase1(config: unknown): UnknownRecord {
  const phase1 = readConfigValueAt(config, PHASE1);
  return isRecord(phase1) ? phase1 : {};
}

/** Lists the changes that give places of the configuration the wanted values; `null` removes what is there. */
export function listNeededChanges(config: unknown, wanted: readonly [string, unknown][]): ConfigChange[] {
  return wanted
    .map(([path, to]) => ({ path, from: readConfigValueAt(config, path) ?? null, to }))
    .filter(({ from, to }) => JSON.stringify(from) !== JSON.stringify(to));
}

/** Lists what `enable` does not change by itself, because another intention stands there. */
export function listWarningsAfterEnable(config: unknown): string[] {
  const warnings: string[] = [];
  if (readConfigValueAt(config, "plugins.enabled") === false)
    warnings.push("plugins.enabled is false: no plugin is loaded until you set it to true.");
  if (readListAt(config, "plugins.deny").includes(PLUGIN_ID))
    warnings.push(`plugins.deny has "${PLUGIN_ID}": remove it there, or the plugin stays off.`);
  return warnings;
}

/** Lists what `disable` leaves as it is, because it may have been there before `enable`. */
export function listWarningsAfterDisable(config: unknown): string[] {
  if (readConfigValueAt(config, ACCESS) !== true) return [];
  return [
    `${ACCESS} stays true: the plugin may still read conversations. \`openclaw config unset ${ACCESS}\` takes that back.`,
  ];
}

/**
 * Changes `draft` in place; `null` removes what is there. @throws CoordinationError `CONFIG_INVALID` when something
 * other than an object stands on the way to a place
 */
export function applyConfigChanges(draft: object, changes: readonly ConfigChange[]): void {
  for (const { path, to } of changes) setValueAt(draft, path, to);
}

/** Sets a value in place and creates the objects on the way that are missing; `null` removes the key. */
function setValueAt(draft: object, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop() ?? path;
  let parent = draft as Record<string, unknown>;
  for (const key of keys) {
    const child = (parent[key] ??= {});
    if (typeof child !== "object" || Array.isArray(child))
      throw new CoordinationError("CONFIG_INVALID", `${key} of ${path} is not an object`);
    parent = child as Record<string, unknown>;
  }
  if (value === null) Reflect.deleteProperty(parent, last);
  else parent[last] = value;
}

/** Returns what stands at a place of the configuration. */
export function readConfigValueAt(config: unknown, path: string): unknown {
  let value = config;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function readListAt(config: unknown, path: string): readonly unknown[] {
  const value = readConfigValueAt(config, path);
  return Array.isArray(value) ? value : [];
}

/**
 * Creates access to the configuration of the OpenClaw that can be imported from here. `known` is what the host has
 * read already, so that reading it costs nothing.
 */
export function createOperatorConfig(knownConfig?: object): OperatorConfig {
  if (!knownConfig) return { mayNameLedger, read: readConfigFromHost, change: changeConfigThroughHost };
  return { known: knownConfig, read: () => addConfigPath(knownConfig), change: changeConfigThroughHost };
}

/** A key may be written with escapes, and stand in another file. */
const LEDGER_KEY = /ledger|\$include|\\/u;

async function mayNameLedger(stateDir: string): Promise<boolean> {
  try {
    return LEDGER_KEY.test(await readFile(await findConfigPath(stateDir), "utf8"));
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ENOENT");
  }
}

async function findConfigPath(stateDir: string): Promise<string> {
  const paths = await loadSdk()
    .then((sdk) => sdk.loadStatePaths())
    .catch(() => undefined);
  if (paths) return paths.resolveConfigPath(process.env);
  return process.env["OPENCLAW_CONFIG_PATH"]?.trim() || join(stateDir, "openclaw.json");
}

async function addConfigPath(config: object): Promise<ReadConfig> {
  const { loadStatePaths } = await loadSdk();
  return { config, path: (await loadStatePaths()).resolveConfigPath(process.env) };
}

async function readConfigFromHost(): Promise<ReadConfig | undefined> {
  const mutation = await loadMutation().catch(() => undefined);
  if (!mutation) return undefined;
  const { snapshot } = await mutation.readConfigFileSnapshotForWrite({
    skipPluginValidation: true,
    observe: false,
  });
  assertConfigParsed(snapshot);
  return { config: snapshot.sourceConfig, path: snapshot.path, isMissing: !snapshot.exists };
}

/** A configuration file as the host has read it, as far as it is looked at here. */
interface FileSnapshot {
  readonly path: string;
  readonly exists: boolean;
  /** `null` where it could not be read. */
  readonly raw: string | null;
  readonly parsed: unknown;
  readonly valid: boolean;
  readonly issues: readonly { readonly message: string }[];
}

/** Its advice is about the file as a whole, not about the plugin's part of it. */
class UnparsedConfigError extends CoordinationError {
  override get advice(): string {
    return "Correct the syntax of the file by hand; until then nothing is changed in it.";
  }
}

/**
 * Throws where the host could not parse the file: it takes that for an empty one, and would overwrite all of it. A
 * file in which nothing stands has nothing to lose.
 */
function assertConfigParsed({ path, exists, raw, parsed, valid, issues }: FileSnapshot): void {
  const isUnparsed = exists && !valid && isRecord(parsed) && Object.keys(parsed).length === 0;
  if (!isUnparsed || raw?.trim() === "") return;
  const [issue] = issues;
  throw new UnparsedConfigError(
    "CONFIG_INVALID",
    `${path}: ${issue?.message ?? "the configuration cannot be read"}`,
  );
}

async function changeConfigThroughHost(
  plan: (config: unknown) => readonly ConfigChange[],
): Promise<ChangedConfig> {
  try {
    const { mutateConfigFile } = await loadMutation();
    const { path, result } = await mutateConfigFile({
      mutate: (draft, { snapshot }) => {
        assertConfigParsed(snapshot);
        const changed = plan(draft);
        applyConfigChanges(draft, changed);
        return changed;
      },
      afterWrite: { mode: "auto" },
    });
    return { changed: result ?? [], path };
  } catch (cause) {
    if (isCoordinationError(cause)) throw cause;
    throw new CoordinationError("CONFIG_NOT_WRITABLE", describeWriteFailure(cause), { cause });
  }
}

function describeWriteFailure(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const isMissing = "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";
  return isMissing ? "the openclaw package is not installed here" : cause.message;
}

async function loadMutation() {
  return (await loadSdk()).loadConfigMutation();
}

/** Imports the SDK at its first use, because the command line also runs where OpenClaw is not installed. */
function loadSdk() {
  return import("./sdk.ts");
}
