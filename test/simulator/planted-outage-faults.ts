/** Owns: faults that show where clocks of machines differ, and where nothing can be written for long. */
import type { PlantedFault } from "./planted-fault.ts";

const RUNTIME = "src/agents/coordination/runtime";

export const OUTAGE_FAULTS: readonly PlantedFault[] = [
  {
    name: "clock-behind-the-log-is-refused",
    file: `${RUNTIME}/log/run-log.ts`,
    find: "  const now = clock.now();\n",
    replace:
      "  const now = clock.now();\n" +
      '  if (before.kind === "open" && before.changedAtMs > now + 10_000) throw new Error("the clock is behind");\n',
    breaks: "a gateway whose clock is behind another one's cannot go on with its coordinations",
  },
  {
    name: "second-failure-pauses-for-a-day",
    file: `${RUNTIME}/effects/dispatcher.ts`,
    find: "  memory.pauseEnds.set(runId, addMs(clock.now(), settings.sweepMs));\n",
    replace:
      "  const pauseMs = memory.pauseEnds.has(runId) ? 86_400_000 : settings.sweepMs;\n" +
      "  memory.pauseEnds.set(runId, addMs(clock.now(), pauseMs));\n",
    breaks: "a coordination is left alone for ever after the ledger failed twice in a row",
  },
];
