/** All attacks, played with the flag off and then with the flag on, side by side where they do not meet. */
import * as agents from "./attacks-agents.ts";
import * as people from "./attacks-people.ts";
import { openAttacked, type Arm, type AttackStage } from "./attacks-stage.ts";
import { turnFlagOrRestart } from "./turn-flag.ts";

/** The results of all attacks, played once. */
export interface PlayedAttacks {
  readonly doubted: people.DoubtedChild;
  readonly methods: readonly string[];
  readonly addresses: readonly people.Reply[];
  readonly rebound: readonly people.Reply[];
  /** The status of an answer that is rightly signed, to a question that there is not. */
  readonly signed: number;
  readonly answered: string;
  readonly link: string;
}

export interface PlayedTwice {
  readonly off: Arm;
  readonly on: Arm;
  readonly played: Record<Arm["name"], PlayedAttacks>;
  readonly notices: readonly string[];
  readonly close: () => Promise<void>;
}

export async function playTwice(): Promise<PlayedTwice> {
  const attacked = await openAttacked();
  try {
    return await playArms(attacked);
  } catch (error) {
    await attacked.close();
    throw error;
  }
}

async function playArms({ stage, phase1, notices, close }: AttackStage): Promise<PlayedTwice> {
  const off: Arm = { stage, name: "off" };
  const on: Arm = { stage, name: "on" };
  const plain = await playAll(off);
  await turnFlagOrRestart(stage, { enabled: true, phase1 });
  return { off, on, notices, close, played: { off: plain, on: await playAll(on) } };
}

async function playAll(arm: Arm): Promise<PlayedAttacks> {
  agents.prepareFolder(arm);
  const body = people.writeAnswer(`${people.VAULT}:escalation-9`);
  const [doubted] = await Promise.all([
    people.playDoubted(arm),
    people.playAsking(arm).then(() => people.playStranger(arm)),
    agents.playReader(arm),
    agents.playFolder(arm),
    agents.playContested(arm),
    agents.playForged(arm),
    agents.playStorm(arm),
    agents.playCancelled(arm),
    agents.playLateWrite(arm),
  ]);
  return {
    doubted,
    methods: await people.callWithoutToken(arm),
    addresses: await people.tryAddresses(arm),
    rebound: await people.tryRebound(arm),
    signed: await people.post(arm, body, people.sign(body)),
    answered: await people.askOperator(arm, "coordination.answer", {
      questionId: people.FIRST,
      answer: "no",
    }),
    link: await people.askOperator(arm, "coordination.page.link", {}),
  };
}
