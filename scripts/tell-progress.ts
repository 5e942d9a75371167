/** Says that long work goes on, so that nobody takes it for hanging. */

/** Silence longer than this makes people wonder, in milliseconds. */
const EVERY_MS = 5_000;

/** Does the work and says every five seconds for how long it has gone on: "still packing the plugin (10 s)". */
export async function tellProgress<T>(
  activity: string,
  work: () => Promise<T>,
  say: (line: string) => void,
): Promise<T> {
  const startedAt = performance.now();
  const timer = setInterval(() => {
    say(`still ${activity} (${((performance.now() - startedAt) / 1_000).toFixed(0)} s)`);
  }, EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
