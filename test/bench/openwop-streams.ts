/**
 * The cost of open event streams for the OpenWOP host: 1,000 runs that wait for a person, one stream of server-sent events on each,
 * all clients in a process of their own. Memory is what the host's process holds after collections of garbage. Then all runs
 * are cancelled, and every stream must tell of it and end.
 */
import { createTempFolder } from "../support/temp-ledger.ts";
import { findFreePort } from "../support/gateway.ts";
import { findMedian, round, type BenchOptions, type BenchRow } from "./bench-row.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { startHost } from "./openwop-servers.ts";
import { openStreams, type Streams } from "./openwop-stream-clients.ts";
import { readResidentMb } from "./resident-mb.ts";

interface Sample {
  readonly megabytes: number;
  readonly peakMegabytes: number;
  readonly openMs: number;
  readonly toldMs: number;
}

export async function measure({ quick }: BenchOptions): Promise<BenchRow[]> {
  const streams = quick ? 100 : 1_000;
  const samples: Sample[] = [];
  for (let index = 0; index < (quick ? 1 : 3); index += 1) samples.push(await sample(streams));
  const findMedianOf = (figure: (sample: Sample) => number): number => round(findMedian(samples.map(figure)));
  return [
    {
      name: `OpenWOP: memory of ${streams.toLocaleString("en")} open event streams`,
      compares:
        "resident memory of the host, after collections, with as many waiting runs and one stream on each, " +
        `over the same host with the runs alone; ${samples.length} hosts; every stream got the last event`,
      value: findMedianOf(({ megabytes }) => megabytes),
      unit: "MB",
      target: { is: "at most", value: 150 },
      detail: {
        kilobytesPerStream: round((1_000 * findMedian(samples.map(({ megabytes }) => megabytes))) / streams),
        beforeCollectionMb: findMedianOf(({ peakMegabytes }) => peakMegabytes),
        openedInMs: findMedianOf(({ openMs }) => openMs),
        allToldInMs: findMedianOf(({ toldMs }) => toldMs),
      },
    },
  ];
}

async function sample(count: number): Promise<Sample> {
  using folder = createTempFolder();
  const inspector = await findFreePort();
  const inspected = [`--inspect=127.0.0.1:${inspector}`];
  const host = await startHost(folder.file("ledger.sqlite"), folder, inspected);
  let streams: Streams | undefined;
  try {
    streams = await openStreams(host.baseUrl, count);
    await collectGarbage(inspector);
    const before = readResidentMb(host.pid);
    const openMs = await streams.open();
    const peak = readResidentMb(host.pid);
    await collectGarbage(inspector);
    const after = readResidentMb(host.pid);
    const toldMs = await streams.endAll();
    return { megabytes: after - before, peakMegabytes: peak - before, openMs, toldMs };
  } finally {
    streams?.stop();
    await host.stop();
  }
}
