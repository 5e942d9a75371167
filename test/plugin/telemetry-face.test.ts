/** Owns: that an exporter of spans that cannot start is told of, and ends nothing else. */
import { expect, it, vi } from "vitest";
import { parsePluginConfig } from "../../src/agents/coordination/contracts/config/config.ts";
import { createTelemetryFace } from "../../src/plugins/openclaw/runtime-access/create-telemetry-face.ts";
import { waitFor } from "../support/wait-for.ts";

vi.mock("../../src/plugins/compose-telemetry.ts", () => ({
  startTelemetry: () => {
    throw new Error("no exporter");
  },
}));

it("is said once, and the runtime closes as usual", async () => {
  const complaints: unknown[] = [];
  const ignore = (): void => undefined;
  const face = createTelemetryFace({
    settings: parsePluginConfig({}).telemetry,
    logger: { debug: ignore, info: ignore, warn: ignore, error: (fields) => complaints.push(fields) },
    place: "/nowhere/ledger.sqlite",
    coordinator: () => Promise.reject(new Error("there is none")),
  });
  await waitFor(() => complaints.length > 0, { what: "the complaint" });
  expect(complaints).toEqual([{ error: expect.stringContaining("no exporter") as string }]);
  await face.close();
});
