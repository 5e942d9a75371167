/** Owns: the port that takes the lines of the plugin's log, which never hold a prompt, a task or a result. */

/** Ids, counts and codes only; never a prompt, a task or a result. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Where the shell says what it does. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}
