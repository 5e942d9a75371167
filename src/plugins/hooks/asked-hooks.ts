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

/** The highest priority first, equals by the ids of their plugins. */
export function listHooks(kind: HookKind, nowMs: number): readonly AskedHook[] {
  const slots = findHookSlots();
  if (!slots || slots.size === 0) return [];
  return [...slots.values()]
    .flatMap((slot) => createAskedHook(slot, kind, nowMs) ?? [])
    .toSorted((a, b) => priorityOf(b) - priorityOf(a) || (a.plugin < b.plugin ? -1 : 1));
}

/** Finds the hook of a plugin; `undefined` when it has none now. */
export function findHook(plugin: string, kind: HookKind, nowMs: number): AskedHook | undefined {
  const slot = findHookSlots()?.get(plugin);
  return slot && createAskedHook(slot, kind, nowMs);
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

/** The same hook once its plugin has been loaded again (K3); still away where it is not in time, `undefined` where it is gone. */
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
    if (current) return findAskedHook(current, kind);
    if (!slot?.left) return undefined;
  }
  return missing;
}

function createAskedHook({ entries, left }: HookSlot, kind: HookKind, nowMs: number): AskedHook | undefined {
  const current = entries.at(-1);
  if (current) return findAskedHook(current, kind);
  if (!left) return undefined;
  const { reloadMs, gatesClosedMs } = HOOK_LIMITS;
  // A clock that was put back counts as one that went on.
  const awayMs = Math.abs(nowMs - left.atMs);
  if (awayMs >= gatesClosedMs) return undefined;
  const waitMs = GATES.has(kind) ? reloadMs : gatesClosedMs;
  const before = findAskedHook(left.entry, kind);
  return before && { ...before, backByMs: awayMs < waitMs ? left.atMs + waitMs : nowMs };
}

function findAskedHook(entry: HookEntry, kind: HookKind): AskedHook | undefined {
  if (!isEntry(entry) || !entry.kinds.includes(kind)) return undefined;
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
function isEntry(entry: Partial<HookEntry> | undefined): boolean {
  return typeof entry?.pluginId === "string" && Array.isArray(entry.kinds);
}

function priorityOf({ hook }: AskedHook): number {
  return hook?.priority ?? 0;
}
