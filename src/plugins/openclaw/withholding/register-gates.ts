/** Owns: which of the host's seams hold results back (docs/openclaw.md says why these). Their code is loaded with the first run. */
import { createOnceLoader } from "../../../agents/coordination/std/load-once.ts";
import { loadDiagnostics, type HookContext, type HookEvent, type OpenClawPluginApi } from "../host/sdk.ts";
import type { GateHandlers } from "./gate-handlers.ts";
import type { SpanOf, TextTransforms } from "./text-transforms.ts";

const HOST_TIMEOUT_MS = 10_000;

/**
 * Registers the host hooks and text transforms that hold children's results back. `handlers` is given how to tell in
 * whose model call the caller is.
 */
export function registerGates(
  api: OpenClawPluginApi,
  handlers: (spanOf: SpanOf) => Promise<GateHandlers>,
): void {
  const seam = createTransformSeam();
  const loadHandlers = async (): Promise<GateHandlers> => {
    const spanOf = await seam.load();
    return (seam.handlers ??= await handlers(spanOf));
  };
  // Runs that a reload found under way go on without a hook before them.
  if (KEY in globalThis) void loadHandlers().catch(() => undefined);
  api.registerTextTransforms({
    output: [{ from: seam.pattern("fromModel"), to: "" }],
    input: [{ from: seam.pattern("toModel"), to: "" }],
  });
  api.on("before_agent_run", async (_, ctx) => (await loadHandlers()).beforeRun(ctx), {
    timeoutMs: HOST_TIMEOUT_MS,
  });
  api.on("model_call_started", (_, ctx) => seam.handlers?.modelCallStarted(ctx));
  api.on(
    "before_message_write",
    (event: HookEvent<"before_message_write">, ctx: HookContext<"before_message_write">) =>
      seam.handlers?.beforeMessageWrite(event, ctx),
  );
}

const KEY = Symbol.for("openclaw-coordination.text-transforms");
/** The global object, where all instances of the plugin find the text transforms. */
type TransformsHolder = { [KEY]?: TextTransforms };

/** Patterns for the host that become effective once the code behind them is loaded. */
interface TransformSeam {
  handlers?: GateHandlers;
  load(): Promise<SpanOf>;
  /** A pattern that leaves every text as it is until the code behind it is loaded. */
  pattern(which: keyof TextTransforms): RegExp;
}

function createTransformSeam(): TransformSeam {
  let transforms: TextTransforms | undefined;
  const load = createOnceLoader(async (): Promise<SpanOf> => {
    const [
      { createDiagnosticTraceContextFromActiveScope: active },
      { createTextTransforms: textTransforms },
    ] = await Promise.all([loadDiagnostics(), import("./text-transforms.ts")]);
    const spanOf: SpanOf = () => active().parentSpanId;
    transforms = textTransforms(spanOf);
    (globalThis as TransformsHolder)[KEY] = transforms;
    return spanOf;
  });
  const seam: TransformSeam = {
    load,
    pattern: (which) => {
      const pattern = /(?!)/u;
      const replace = (text: string): string => {
        // In the middle of a reload those of the instance before.
        const existing = transforms ?? (globalThis as TransformsHolder)[KEY];
        return existing ? text.replace(existing[which], "") : text;
      };
      Object.defineProperty(pattern, Symbol.replace, { value: replace });
      return pattern;
    },
  };
  // The instance that transforms is not the one that hears of runs: it must not wait for one.
  void seam.load().catch(() => undefined);
  return seam;
}
