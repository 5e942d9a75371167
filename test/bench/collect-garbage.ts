/**
 * Makes a Node process that was started with `--inspect` collect its garbage, so that what is measured is what it holds
 * and not what its collector has not come to yet (in a gateway that is some 200 MB either way).
 */
const COLLECTIONS = 3;

export async function collectGarbage(inspectorPort: number): Promise<void> {
  const listed = await fetch(`http://127.0.0.1:${inspectorPort}/json/list`);
  const [target] = (await listed.json()) as { webSocketDebuggerUrl: string }[];
  if (!target) throw new Error("the process has no inspector");
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await awaitEvent(socket, "open");
  for (let id = 1; id <= COLLECTIONS; id += 1) {
    socket.send(JSON.stringify({ id, method: "HeapProfiler.collectGarbage" }));
    await awaitEvent(socket, "message");
  }
  socket.close();
}

function awaitEvent(socket: WebSocket, event: "open" | "message"): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.addEventListener(event, () => resolve(), { once: true });
    socket.addEventListener("error", () => reject(new Error("the inspector does not answer")), {
      once: true,
    });
  });
}
