/** Owns: writing log lines as JSON, with pino, to stderr or where they are wanted. */
import { pino, type DestinationStream, type LevelWithSilent } from "pino";
import type { LogFields, Logger } from "../../agents/coordination/ports/logger.ts";

/** Creates a logger that writes lines of JSON to stderr, or to `destination`. */
export function createPinoLogger(options: {
  readonly level: LevelWithSilent;
  readonly destination?: DestinationStream;
}): Logger {
  const logger = pino(
    {
      level: options.level,
      base: { name: "coordination" },
      formatters: { level: (label) => ({ level: label }) },
    },
    options.destination ?? pino.destination({ dest: 2, sync: true }),
  );
  const logAt = (level: "debug" | "info" | "warn" | "error") => (fields: LogFields, message: string) => {
    logger[level](fields, message);
  };
  return { debug: logAt("debug"), info: logAt("info"), warn: logAt("warn"), error: logAt("error") };
}
