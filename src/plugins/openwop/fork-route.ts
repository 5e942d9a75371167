/**
 * Owns: refusing to fork runs. From level 2 on, a host that cannot give a fork the memory of its time must say exactly that
 * (RFC 0039, MAE-3); forking itself belongs to level 4, and is not advertised.
 */
import { z } from "zod";
import { refuse } from "./error-map.ts";
import { route, type Answer, type Ask, type Route, type RouteParts } from "./route.ts";
import { anySchema } from "./schemas.ts";

const forkBody = z.strictObject({
  mode: z.enum(["replay", "branch"]),
  fromSeq: z.int().min(0).default(0),
  runOptionsOverlay: z.record(z.string(), z.unknown()).optional(),
});

export const forkRoute: Route = route({
  ...{ method: "POST", path: "/v1/runs/{runId}:fork", operationId: "forkRun", auth: "bearer" },
  ...{ summary: "Refuses to fork a run: its memory is not served as of an event.", status: 201 },
  ...{ refusals: [404, 422, 503], body: forkBody, answer: anySchema },
  when: ({ memory, executionModel }) => memory && executionModel.version >= 2,
  handle: refuseFork,
});

async function refuseFork(ask: Ask<z.output<typeof forkBody>>, { host }: RouteParts): Promise<Answer> {
  const { mode, fromSeq, runOptionsOverlay } = ask.body;
  const runId = ask.param("runId");
  const before = await host.events(ask.caller, runId, { from: Math.max(0, fromSeq - 1), limit: 1 });
  if (before.kind === "refused") return before;
  if (mode === "replay" && runOptionsOverlay)
    return refuse(
      "validation_error",
      "A replay takes the options of its source: `runOptionsOverlay` is for branches.",
    );
  if (before.value.events.length === 0)
    return refuse("invalid_from_seq", "`fromSeq` lies behind the end of the run.", { fromSeq });
  return refuse(
    "replay_memory_snapshot_unavailable",
    "This host does not serve memory as of an event, so it forks no runs.",
    {
      ...{ fromSeq, sourceRunId: runId },
      reason: "event_log_unavailable",
    },
  );
}
