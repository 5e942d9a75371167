/** The verbs that a function's name may begin with: base forms only. Add one where a clear name needs it. */
const VERBS = `
abandon abort accept access acknowledge acquire act add adjust admit adopt advance align allow alternate announce
answer append apply approve arbitrate arm arrive ask assert assess assign assume attach attempt attest authenticate
authorize await award
back begin bind block boot borrow bound branch break build bundle
calculate call cancel capitalize carry catch chain change charge check choose claim clamp classify clean clear clone
close collect combine commit compare compile complete compose compute concat concatenate conclude configure confirm
connect consider consume contain contend continue convert coordinate copy correct count cover crash create cut
damage deactivate decide declare decode decrypt dedupe defer define delay delegate delete deliver demand deny derive
describe destroy detect determine die diff disable discard discover dispatch display dispose distribute divide do
draft drain draw drive drop
echo edit emit empty enable encode end enqueue ensure enter enumerate equal escalate escape establish estimate evaluate
evict evolve examine exchange exclude execute exit expand expect expire explain export extend extract
fade fail fetch fill filter find finish fit flatten flip flush fold follow forbid forge forget fork format forward
freeze
gate gather generate get give go grant group grow guard
halt hand handle hang harvest hash hear hide hold
identify ignore import include indent index infer inform inject insert inspect install interpret interrupt introduce
invoke isolate issue
join judge
keep kill
label lay learn leave lend lift limit link list listen live load locate lock log look lower
make map mark mask match measure meet merge migrate mint mirror move
name narrow negotiate nest normalize note notify number
observe offer omit open operate order overlay overwrite own
pack pad page paint pan pair parse part partition pass pause perform persist pick pin place plan play point poll post
prefer prepare present preserve prettify preview print probe proceed process produce program project propose prove prune
provide publish pull pump purge push put
qualify query quote
race raise rank reach react read reboot rebuild recall receive recognize recompute reconcile record recover redact
redirect reduce refer refold refresh refuse register rehash reject relate relay release reload remember remove rename
render renew renumber reopen repair repeat replace reread replay reply report represent request require reserve reset resolve
respond restart restore restrict resume retain retarget retry return reuse reverse revert review revise revive revoke
rewrite ring round route rule run
salvage sample sanitize satisfy save say scan schedule score script seal search see select send separate serialize
serve set settle share shift shorten show shrink shut sign signal simulate skip slice slow sort spawn spend splice
split spoil spread stabilize stamp start state step stop store stream strip submit subscribe substitute subtract
suggest sum summarize supply support suspend swap sweep switch synchronize
tag tail take tally tamper teach tell terminate test throttle throw tidy time toggle touch trace track transform
translate traverse treat trim trip truncate trust try turn
unblock undo unfold unlink unlock unwrap update upgrade upsert use
validate verify view visit vote
wait wake walk warn watch weigh widen wire withdraw withhold work wrap write
yield
zoom
`;

/** A predicate says what is true; a factory, a conversion and an event handler have words of their own. */
const OTHERS = "is has can should must may needs are was allows as to from on with without";

/** Every word that the name of a function may begin with. */
export const FIRST_WORDS = new Set(`${VERBS} ${OTHERS}`.split(/\s+/u).filter(Boolean));
