/** Owns: writing the plugin's log lines into the log of the OpenClaw host. */
import type { Logger } from "../../../agents/coordination/ports/logger.ts";
import { createDebugLogger } from "../../compose.ts";
import type { OpenClawPluginApi } from "./sdk.ts";

type HostLogger = OpenClawPluginApi["logger"];

/** Creates a logger that writes structured lines into the host's log, at the host's levels. */
export function createHostLogger(host: HostLogger): Logger {
  return createDebugLogger({
    write: (line) => {
      const text = line.trimEnd();
      switch (readLineLevel(text)) {
        case "error":
          host.error(text);
          return;
        case "warn":
          host.warn(text);
          return;
        case "info":
          host.info(text);
          return;
        default:
          host.debug?.(text);
      }
    },
  });
}

function readLineLevel(line: string): string | undefined {
  return /"level":"(\w+)"/u.exec(line)?.[1];
}
