/** Owns: commands that pass as harmless because an operator declared the program without outputs, and write. */
import { describe, expect, it } from "vitest";
import { readToolCall } from "../../src/plugins/openclaw/writes/read-tool-call.ts";
import { parseConflicts } from "../plugin/writes-calls.ts";

const HARMLESS = [
  ..."git find sort curl pytest npx sed awk tsc eslint rg python node go xmllint env timeout xargs sh yq openssl".split(
    " ",
  ),
  ..."prettier vitest wget perl cargo less ls cat dd gcc shuf tree fd tar uniq iconv php lua".split(" "),
];

const config = parseConflicts({
  commands: HARMLESS.map((program) => ({ command: `${program} *`, outputs: [] })),
});

async function readCommand(command: string) {
  const reading = await readToolCall({
    tool: "exec",
    params: { command },
    folder: "/w",
    config,
    extractors: () => [],
  });
  return {
    written: (reading?.targets ?? []).map(({ at }) => ("path" in at ? at.path : at.resource)),
    isUndetermined: reading?.undetermined?.because === "undeclared",
  };
}

describe("a declared command that its arguments make write", () => {
  it.each([
    ["git log --output=x", "x"],
    ["git diff --output x", "x"],
    ["git format-patch -o patches HEAD~1", "patches"],
    ["git archive -oout.tar HEAD", "out.tar"],
    ["find . -fprint list.txt", "list.txt"],
    ["sort -o b.txt a.txt", "b.txt"],
    ["sort --output=b.txt a.txt", "b.txt"],
    ["curl -o page.html https://example.com", "page.html"],
    ["curl -sSLo page.html https://example.com", undefined],
    ["curl https://example.com --output 'a page.html'", "a page.html"],
    ["curl -D head.txt https://example.com", "head.txt"],
    ["wget -O page.html https://example.com", "page.html"],
    ["pytest --junitxml=report.xml", "report.xml"],
    ["pytest --junit-xml report.xml", "report.xml"],
    ["python -m pytest --junitxml=report.xml", undefined],
    ["vitest run --outputFile=report.json", "report.json"],
    ["tsc --outDir dist", "dist"],
    ["tsc --outFile all.js", "all.js"],
    ["tsc --generateCpuProfile cpu.json", "cpu.json"],
    ["tsc --generateTrace traces", "traces"],
    ["node --test --test-reporter-destination=src/a.ts", "src/a.ts"],
    ["node --redirect-warnings=src/a.ts a.js", "src/a.ts"],
    ["node --heap-prof-dir=src a.js", "src"],
    ["node --diagnostic-dir src a.js", "src"],
    ["node --cpu-prof-dir=src a.js", "src"],
    ["node --report-dir=src a.js", "src"],
    ["rg --trace-destination=src/a.ts x", "src/a.ts"],
    ["eslint . -o report.txt", "report.txt"],
    ["go test -coverprofile=c.out ./...", "c.out"],
    ["go build -o tool ./cmd", "tool"],
    ["xmllint --format a.xml --output b.xml", "b.xml"],
    ["openssl genrsa -out key.pem 2048", "key.pem"],
    ["openssl req --keyout key.pem", "key.pem"],
    ["git log --outpu=x", "x"],
    ["git log --ou x", "x"],
    ["sort --o=b.txt a.txt", "b.txt"],
    ["go test --coverprofile=c.out ./...", "c.out"],
    ["dd if=a.txt of=b.txt", "b.txt"],
    ["gcc a.c -o tool", "tool"],
    ["shuf -o b.txt a.txt", "b.txt"],
    ["tree -o list.txt", "list.txt"],
    ["iconv -f latin1 -o b.txt a.txt", "b.txt"],
    ["curl --libcurl a.c https://example.com", "a.c"],
    ["curl --hsts sites.txt https://example.com", "sites.txt"],
  ])("is ruled on as a write of the file that it names: %s", async (command, file) => {
    const { written, isUndetermined } = await readCommand(command);
    if (file === undefined) expect(isUndetermined).toBe(true);
    else expect(written).toEqual([file]);
  });

  it.each([
    "find . -name '*.tmp' -delete",
    "find . -exec rm {} +",
    "find . -name x -execdir touch y ;",
    "sed -i s/a/b/ notes.md",
    "sed -i.bak s/a/b/ notes.md",
    "sed -n 'w out.txt' notes.md",
    "sed --in-place s/a/b/ notes.md",
    "awk -i inplace '{print}' notes.md",
    "awk '{print > \"out.txt\"}' notes.md",
    "awk 'BEGIN{system(\"rm x\")}'",
    "git -c core.pager='sh -c \"touch x\"' log",
    "curl -O https://example.com/a.tar",
    "curl --remote-name https://example.com/a.tar",
    'sort -o "$TARGET" a.txt',
    "git log $FLAGS",
    "eslint --fix .",
    "prettier --write .",
    "vitest run -u",
    "npx rimraf src",
    "env rm notes.md",
    "timeout 5 rm notes.md",
    "xargs rm",
    "sh -c 'echo x'",
    "python -c 'open(1)'",
    "node -e 'fs.rmSync(1)'",
    "perl -pi -e s/a/b/ notes.md",
    "yq -i .a=1 x.yaml",
    "rg --pre ./run x",
    "ls `touch x`",
    "cat notes.md | tee other.md",
    "cat notes.md && rm notes.md",
    "cat <(touch x)",
    "go test -exec ./run ./...",
    "cargo test --target-dir /tmp/x",
    "go test --toolexec ./run ./...",
    "git log {--output=x,-1}",
    "git log {,}--output=x",
    "git log -{p,-output=x}",
    "git log HEAD${IFS}--output=x",
    "git log --out${NOTHING}put=x",
    "sed --in-pl s/a/b/ notes.md",
    "sed s/a/b/wx notes.md",
    "sed 's/.*/touch x/ge' notes.md",
    "sed 's|.*|touch x|;s/a/b/e' notes.md",
    "sed '1wx' notes.md",
    "awk -f run.awk notes.md",
    "fd -x rm",
    "fd -X rm",
    "tar -tf a.tar --to-command=sh",
    "tar --to-com sh -tf a.tar",
    "tar -tf a.tar -I ./run",
    "tar -tf a.tar -F ./run",
    "tar -tvf a.tar --index-file",
    "git grep -Orm x",
    "git grep -nOrm x",
    "git grep --open-files-in-pager=rm x",
    "git --config-env=core.pager=EDITOR log",
    "sed 's#a\\#b#c#w pwned' notes.md",
    "sed '/x/wpwned' notes.md",
    "sed '/x/,$wpwned' notes.md",
    "sed '\\,x,w pwned' notes.md",
    "sed '/x/{s/a/b/;wpwned' notes.md",
    "sed 's/a/b/;s/c/d/w pwned' notes.md",
    "sed 's/[/]/#/w pwned' notes.md",
    "sed 's/[]/]/#/w pwned' notes.md",
    "sed 's w e wx' notes.md",
    "sed -n -e p -e wpwned notes.md",
    "sed -newpwned notes.md",
    "sed --expr=1wpwned notes.md",
    "sed 'a\\\ntext' -e 1e notes.md",
    "sed -l 5 -- 1e notes.md",
    'sed "s/a/b/$FLAGS" notes.md',
    "php -r 'unlink(1);'",
    "lua -e 'os.remove(1)'",
    "node --heap-prof a.js",
    "node --report-on-signal a.js",
    "rg --generate-index x",
  ])("may change what nobody named: %s", async (command) => {
    expect((await readCommand(command)).isUndetermined).toBe(true);
  });

  it.each([
    "git log --oneline -5",
    "git status --short",
    "git diff HEAD~1 -- src",
    "find . -name '*.ts' -type f",
    "sort -rn a.txt",
    "sort -u a.txt",
    "ls -lao src",
    "cat notes.md 2>&1",
    "rg -n 'write' src",
    "sed -n 1,5p notes.md",
    "awk '{print $1}' notes.md",
    "pytest -q tests",
    "pytest -x --lf",
    "tsc --noEmit",
    "eslint src",
    "curl -sS https://example.com",
    "vitest run src",
    "prettier --check .",
    "go vet ./...",
    "curl -o /dev/null https://example.com",
    "sort -o - a.txt",
    "sed -n s/word/end/p notes.md",
    "sed s/word/end/g write.md",
    "sed -n '/write/p' notes.md",
    "rg 'foo$' src",
    'rg "a $NAME" src',
    "cat {a,b}.txt",
    "git show HEAD^{tree}",
    "tar -tf a.tar",
    "dd if=a.txt",
    "node --test --test-reporter=spec src/a.test.ts",
    "node --trace-warnings a.js",
    "git log -STODO",
    "sed 's/a/b/g' write.md",
    "sed -n '1,5p' /src/write.md",
    "sed -nE -e '/a/,/b/p' -e '$=' error.log",
    "sed -e 's#/a\\#b#/c#' -e 's/d/w e/2g' -e y/abc/wef/ notes.md",
    "sed -e '1!G' -e h -e '$!d' notes.md",
    "sed -e '/^$/d' -e '/w x/{p}' -e 5q notes.md",
    "sed '2i\\  write' notes.md",
    "sed -l 5 -e :a -e N -e '$!ba' -e 's/[[:space:]]*$//' -- write.md",
  ])("changes nothing where no argument does: %s", async (command) => {
    expect(await readCommand(command)).toEqual({ written: [], isUndetermined: false });
  });

  it("is what the operator wrote out in full", async () => {
    const exact = parseConflicts({ commands: [{ command: "git log --output=x", outputs: ["x"] }] });
    const call = { tool: "exec", params: { command: "git log --output=x" }, folder: "/w", config: exact };
    const reading = await readToolCall({ ...call, extractors: () => [] });
    expect(reading?.targets).toHaveLength(1);
    expect(reading?.undetermined).toBeUndefined();
  });
});
