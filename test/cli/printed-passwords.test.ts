import { Command, type Option } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { addCoordinationCommands } from "../../src/plugins/cli/add-commands.ts";
import type { CliHost } from "../../src/plugins/cli/terminal/cli-host.ts";
import { maskPasswords } from "../../src/plugins/cli/terminal/printable.ts";
import { addServeCommand } from "../../src/plugins/cli/workflows/serve-command.ts";
import { createTempFolder, type TempFolder } from "../support/temp-ledger.ts";
import { recordLedger, RESEARCH } from "./recorded-ledger.ts";
import { PLAIN, runCli } from "./run-cli.ts";

const PASSWORD = "s3cret-word";
/** Nobody listens there. */
const ADDRESS = `postgres://operator:${PASSWORD}@127.0.0.1:1/coordination`;

const MORE = { serve: () => Promise.resolve(addServeCommand) };
/** Without a token it would look at nothing else. */
const SERVED = ["--token=sixteen-characters", "--port=0"];

/** One way of typing the address into a command. */
interface TypedAddress {
  readonly typed: string;
  readonly args: readonly string[];
}

/** Lists the commands that do something, each by its words. */
function listLeaves(command: Command, words: readonly string[] = []): [words: readonly string[], Command][] {
  return command.commands.flatMap((inner): [readonly string[], Command][] => [
    [[...words, inner.name()], inner],
    ...listLeaves(inner, [...words, inner.name()]),
  ]);
}

/** Lists the ways of typing the address into a command: in place of each argument and of each option's value. */
function listTypedAddresses([words, command]: [readonly string[], Command]): TypedAddress[] {
  const needed = command.registeredArguments.filter(({ required }) => required).map(() => "co-1f0c");
  const takesLedger = command.options.some(({ long }) => long === "--ledger");
  const name = words.join(" ");
  const fillOption = ({ long, required }: Option): TypedAddress[] =>
    required && long ? [{ typed: `${name} ${long}`, args: [...words, ...needed, `${long}=${ADDRESS}`] }] : [];
  const fillArgument = (_: unknown, index: number): TypedAddress => ({
    typed: `${name}, argument ${index + 1}`,
    args: [...words, ...needed.with(index, ADDRESS)],
  });
  const ways = [
    ...command.options.flatMap(fillOption),
    ...needed.map(fillArgument),
    { typed: `${name}, after all arguments`, args: [...words, ...needed, ADDRESS, ADDRESS, ADDRESS] },
  ];
  const beside = ways.map(({ typed, args }) => ({
    typed: `${typed}, beside --ledger`,
    args: [...args, `--ledger=${ADDRESS}`],
  }));
  return takesLedger ? [...ways, ...beside] : ways;
}

/** These two serve until they are stopped, where nothing is wrong. */
const isServing = ({ args: [word], typed }: TypedAddress): boolean =>
  (word === "mcp" || word === "serve") && !typed.includes("--ledger");

async function listWays(): Promise<TypedAddress[]> {
  const program = new Command();
  const host = {
    program: "x",
    args: [],
    stderr: { terminal: PLAIN },
    stdout: { terminal: PLAIN },
  } as unknown as CliHost;
  await addCoordinationCommands(program, host, { more: MORE });
  const leaves = listLeaves(program);
  return leaves.flatMap(listTypedAddresses).filter((way) => !isServing(way));
}

let folder: TempFolder;

beforeAll(async () => {
  folder = createTempFolder();
  await recordLedger(folder.file("coordination/ledger.sqlite"), [RESEARCH]);
});

afterAll(() => {
  folder[Symbol.dispose]();
});

test.each([
  ["postgres://a:b@c/d is not there", "postgres://a:***@c/d is not there"],
  ['got "postgresql://a:b/c@d:e@f:5432/g"; see h', 'got "postgresql://a:***@f:5432/g"; see h'],
  ["/srv/postgres:/a:b@c/d: no file", "/srv/postgres:/a:***@c/d: no file"],
  ["postgres://a@c:5432/d?x=1&password=b&y=2", "postgres://a@c:5432/d?x=1&password=***&y=2"],
  ["postgres://a@c:5432/d and e:f@g", "postgres://a@c:5432/d and e:f@g"],
  ["postgres://op@corp:s3cret@host/data", "postgres://op@corp:***@host/data"],
  ["http://127.0.0.1:4873/@scope/name", "http://127.0.0.1:4873/@scope/name"],
  ["http://[::1]:4873/@scope/name", "http://[::1]:4873/@scope/name"],
  ["http://[2001:db8::1]/@scope", "http://[2001:db8::1]/@scope"],
  ["postgres://a:b@[::1]:5432/d", "postgres://a:***@[::1]:5432/d"],
  ["https://host:8443?to=a@b", "https://host:8443?to=a@b"],
  ["C:/Users/a:b@c", "C:/Users/a:b@c"],
])("conceals the passwords in %s", (message, concealed) => {
  expect(maskPasswords(message)).toBe(concealed);
});

test.each(["a.", "ab-", "ab://a:", "ab://a", "ab://[::"])(
  "looks through a long text of %s in less than a second",
  (repeated) => {
    const text = repeated.repeat(60_000);
    const measureMs = (): number => {
      const beganMs = performance.now();
      maskPasswords(text);
      return performance.now() - beganMs;
    };
    expect(Math.min(measureMs(), measureMs())).toBeLessThan(1_000);
  },
);

describe("the password of an address that is typed into a command", async () => {
  const ways = await listWays();

  test("is tried in all commands", () => {
    const words = new Set(ways.map(({ args: [word] }) => word));
    expect(words.size).toBeGreaterThan(25);
    expect(ways.length).toBeGreaterThan(150);
  });

  test.each(ways)("is not printed: $typed", async ({ args }) => {
    const [first = "", ...rest] = args;
    for (const more of [[], ["--json"]]) {
      const typed = [first, ...(first === "serve" ? SERVED : []), ...rest, ...more];
      const { stdout, stderr } = await runCli(typed, { stateDir: folder.path, more: MORE });
      expect(stdout + stderr).not.toContain(PASSWORD);
    }
  });
});
