/** Owns: a process that has no file left to open while git is asked. Says in one line of JSON how git answered. */
import { closeSync, openSync } from "node:fs";
import { systemClock } from "../../src/infra/clock/system-clock.ts";
import { createGitWorktrees } from "../../src/infra/git/git-worktrees.ts";

const worktrees = createGitWorktrees({ root: "/nowhere", clock: systemClock });
const files = openAll();
const answers: (string | undefined)[] = [];
// Each time one more file can be opened: a pipe of a few may be made.
for (let left = 0; left < 8; left += 1) {
  answers.push(await worktrees.findObstacle(process.cwd()));
  for (const file of files.splice(0, 1)) closeSync(file);
}
for (const file of files) closeSync(file);
answers.push(await worktrees.findObstacle(process.cwd()));
process.stdout.write(JSON.stringify(answers.map((answer) => answer ?? "none")));

function openAll(): number[] {
  const opened: number[] = [];
  try {
    for (;;) opened.push(openSync("/dev/null", "r"));
  } catch {
    return opened;
  }
}
