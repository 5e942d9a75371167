/**
 * Owns: who is asked, in which order. Entries that other copies of the package stored are read again here, since they may be of a version
 * that is not known: such a plugin takes part in the gates that it names, and fails in them.
 */
import type { EpochMs } from "../../agents/coordination/contracts/ids.ts";
import type { Clock } from "../../agents/coordination/ports/clock.ts";
import { HOOK_BUDGETS_MS, HOOK_LIMITS, type HookKind } from "./hook-limits.ts";
import {
  HOOKS_VERSION,
  findHookSlots,
  type HookEntry,
  type HookSlot,
  type StoredHook,
} from "./hook-registry.ts";

/** One hook of one plugin. */
export interface AskedHook {
  readonly plugin: string;
  readonly kind: HookKind;
  readonly budgetMs: number;
  readonly entry: HookEntry;
  /** Absent where it cannot be read, or has ended and may be registered again. */
  readonly hook?: StoredHook;
  /** Its plugin is being loaded again: until when it is waited for, which may be over. */
  readonly backByMs?: number;
}

/**
 * Lists the registered hooks of a kind, one for each plugin, the highest priority first and then by plugin id; a hook
 * whose plugin is being loaded again is listed as being away.
 */
export function listHooks(kind: HookKind, nowMs: number): readonly AskedHook[] {
  const slots = findHookSlots();
  if (!slots || slots.size === 0) return [];
  return [...slots.values()]
    .flatMap((slot) => findHookInSlot(slot, kind, nowMs) ?? [])
    .toSorted((a, b) => readPriority(b) - readPriority(a) || (a.plugin < b.plugin ? -1 : 1));
}

/**
 * Finds the hook of that kind of a plugin; marked as being away while the plugin is loaded again, and `undefined`
 * where it has none now.
 */
export function findHook(plugin: string, kind: HookKind, nowMs: number): AskedHook | undefined {
  const slot = findHookSlots()?.get(plugin);
  return slot && findHookInSlot(slot, kind, nowMs);
}

/** These fail closed soon. Whoever tells the others something waits until their plugin counts as gone. */
const GATES: ReadonlySet<HookKind> = new Set(["arbitrate", "verify", "decide"]);

/** How often it is looked whether a hook is back: gates are waited for by agents, the others for up to minutes. */
const GATE_POLL_MS = 25;
const POLL_MS = 500;

/** How long a hook that is away is waited for. */
interface HookWait {
  readonly clock: Clock;
  /** Also before the plugin counts as being away for too long. */
  readonly deadlineAtMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Returns the hook at once where it is there; while its plugin is being loaded again (K3), waits for it and returns
 * the new hook, the same one, still away, where it is not back in time, or `undefined` where it is gone.
 */
export async function awaitHookBack(
  missing: AskedHook,
  { clock, deadlineAtMs = Number.MAX_SAFE_INTEGER, signal }: HookWait,
): Promise<AskedHook | undefined> {
  const { plugin, kind, backByMs } = missing;
  if (backByMs === undefined) return missing;
  const untilMs = Math.min(backByMs, deadlineAtMs);
  const canWait = (): boolean => clock.now() < untilMs && !signal?.aborted;
  const pollMs = GATES.has(kind) ? GATE_POLL_MS : POLL_MS;
  while (canWait()) {
    const wakeAtMs = Math.min(clock.now() + pollMs, untilMs) as EpochMs;
    await new Promise<void>((resolve) => clock.wakeAt(wakeAtMs, resolve));
    const slot = findHookSlots()?.get(plugin);
    const current = slot?.entries.at(-1);
    if (current) return readAskedHook(current, kind);
    if (!slot?.left) return undefined;
  }
  return missing;
}

/**
 * Finds the newest hook of a plugin. One whose plugin was unloaded is away until it is back, and gone after a while.
 */
function findHookInSlot({ entries, left }: HookSlot, kind: HookKind, nowMs: number): AskedHook | undefined {
  const current = entries.at(-1);
  if (current) return readAskedHook(current, kind);
  if (!left) return undefined;
  const { reloadMs, gatesClosedMs } = HOOK_LIMITS;
  // A clock that was put back counts as one that went on.
  const awayMs = Math.abs(nowMs - left.atMs);
  if (awayMs >= gatesClosedMs) return undefined;
  const waitMs = GATES.has(kind) ? reloadMs : gatesClosedMs;
  const before = readAskedHook(left.entry, kind);
  return before && { ...before, backByMs: awayMs < waitMs ? left.atMs + waitMs : nowMs };
}

/** Reads a hook of an entry; `undefined` where it has none of that kind. One of an unknown version cannot be asked. */
function readAskedHook(entry: HookEntry, kind: HookKind): AskedHook | undefined {
  if (!isStoredEntry(entry) || !entry.kinds.includes(kind)) return undefined;
  const { usual, most } = HOOK_BUDGETS_MS[kind];
  const stored = entry.version === HOOKS_VERSION ? readStoredHooks(entry)[kind] : undefined;
  const hook = typeof stored?.run === "function" ? stored : undefined;
  const budgetMs = Math.min(hook?.budgetMs ?? usual, most);
  return { plugin: entry.pluginId, kind, budgetMs, entry, ...(hook && { hook }) };
}

function readStoredHooks({ hooks }: Partial<HookEntry>): Readonly<Record<string, StoredHook | undefined>> {
  return hooks ?? {};
}

/** Anybody may write on `globalThis`; what names no plugin and no kinds was not written by this package. */
function isStoredEntry(entry: Partial<HookEntry> | undefined): boolean {
  return typeof entry?.pluginId === "string" && Array.isArray(entry.kinds);
}

function readPriority({ hook }: AskedHook): number {
  return hook?.priority ?? 0;
}
