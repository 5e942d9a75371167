/** Owns: a state folder for each test of a file, and the handlers of gateways in it, which are stopped after the test. */
import { afterEach, beforeEach } from "vitest";
import type { HookHandlers } from "../../src/plugins/openclaw/hook-handlers.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";

export interface StateFolder {
  /** The folder of the test that runs. */
  readonly path: string;
  /** Has the handlers stopped after the test, before the folder is deleted. */
  readonly stopLater: (handlers: HookHandlers) => void;
}

/** Gives each test of the file a folder. `cleanUp` runs once its handlers are stopped. */
export function useStateFolder(cleanUp: () => void = () => undefined): StateFolder {
  let folder: TempFolder;
  let stopping: HookHandlers[];
  beforeEach(() => {
    folder = createTempFolder();
    stopping = [];
  });
  afterEach(async () => {
    for (const handlers of stopping) await handlers.stop();
    cleanUp();
    folder[Symbol.dispose]();
  });
  return {
    get path() {
      return folder.path;
    },
    stopLater: (handlers) => void stopping.push(handlers),
  };
}
