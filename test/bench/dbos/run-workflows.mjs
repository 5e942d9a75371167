/**
 * `node run-workflows.mjs '{"url":...,"schema":...,"atOnce":16,"workflows":1000,"warmups":64}'`: runs durable workflows of two steps,
 * so many at once, each awaited to its end, and prints one JSON line with the figures.
 */
const NOT_INSTALLED = 3;
const POOL_SIZE = 20;

const found = await import("@dbos-inc/dbos-sdk").catch(() => undefined);
if (!found) {
  process.stderr.write("DBOS is not installed. Run: npm ci --ignore-scripts --prefix test/bench/dbos\n");
  process.exit(NOT_INSTALLED);
}
const { DBOS } = found;
const { url, schema, atOnce, workflows, warmups } = JSON.parse(process.argv[2] ?? "{}");

const runTwoSteps = DBOS.registerWorkflow(
  async () => {
    await DBOS.runStep(async () => 1, { name: "first" });
    await DBOS.runStep(async () => 2, { name: "second" });
    return 3;
  },
  { name: "two-steps" },
);
DBOS.setConfig({
  name: "bench",
  systemDatabaseUrl: url,
  systemDatabaseSchemaName: schema,
  systemDatabasePoolSize: POOL_SIZE,
  logLevel: "error",
});
await DBOS.launch();
await runAll(warmups);
const cpuBefore = process.cpuUsage();
const begun = performance.now();
const times = await runAll(workflows);
const elapsedMs = performance.now() - begun;
const { user, system } = process.cpuUsage(cpuBefore);
times.sort((a, b) => a - b);
process.stdout.write(
  `${JSON.stringify({
    perSecond: (1_000 * times.length) / elapsedMs,
    p50Ms: times[Math.floor(times.length / 2)],
    cpuMicros: (user + system) / times.length,
  })}\n`,
);
await DBOS.shutdown();
process.exit(0);

async function runAll(count) {
  let left = count;
  const times = [];
  const runNext = async () => {
    while (left > 0) {
      left -= 1;
      const start = performance.now();
      await runTwoSteps();
      times.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, runNext));
  return times;
}
