/** Owns: a connection between a browser and a server that can be cut and mended. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface Cable extends AsyncDisposable {
  readonly port: number;
  /** Cuts what is connected, and refuses what comes. */
  pull(): void;
  /** Into the server at the port, or into the one before. */
  plugIn(port?: number): void;
}

/** Listens on a loopback port and passes everything on to another one. */
export async function startCable(firstPort: number): Promise<Cable> {
  const sockets = new Set<Socket>();
  let targetPort = firstPort;
  let isPulled = false;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // A cut connection is what this is for.
    socket.on("error", () => undefined);
  };
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((near) => {
    if (isPulled) {
      near.destroy();
      return;
    }
    const far = connect(targetPort, "127.0.0.1");
    keep(near);
    keep(far);
    near.pipe(far).pipe(near);
    // Where nobody listens behind it, a client hears of it at once.
    far.on("close", () => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    pull: () => {
      isPulled = true;
      cut();
    },
    plugIn: (port = targetPort) => {
      targetPort = port;
      isPulled = false;
    },
    [Symbol.asyncDispose]: async () => {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
