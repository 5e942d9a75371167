/** Waits before each file until the plugin is installed (`packed-plugin.ts`). */
import { existsSync, readFileSync } from "node:fs";
import { inject } from "vitest";
import { waitFor } from "../support/wait-for.ts";

const INSTALL_MS_MAX = 300_000;

const file = inject("installedFile");
await waitFor(() => existsSync(file), { what: "the plugin to be installed", timeoutMs: INSTALL_MS_MAX });
const problem = readFileSync(file, "utf8");
if (problem !== "") throw new Error(`the plugin could not be installed: ${problem}`);
