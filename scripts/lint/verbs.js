/** The verbs that a function's name may begin with: base forms only. Add one where a clear name needs it. */
const VERBS = `
abandon abort accept access acknowledge acquire act add adjust admit adopt advance align announce answer append apply approve
arbitrate arm ask assert assess assign assume attach attest authenticate authorize await award
back begin bind block bound branch break build bundle
calculate call cancel capitalize carry catch chain change charge check choose claim clamp classify clean clear clone close collect
combine commit compare compile complete compose compute concat concatenate conclude configure confirm connect consider consume
contain continue convert copy correct count cover create cut
deactivate decide declare decode decrypt dedupe defer define delay delegate delete deliver demand deny derive describe
destroy detect determine diff disable discard discover dispatch display distribute divide do draft drain draw drive drop
echo edit emit enable encode end enqueue ensure enter enumerate equal escalate escape establish estimate evaluate evict
evolve examine exchange exclude execute exit expand expect expire explain export extend extract
fade fail fetch fill filter find finish fit flatten flush fold follow forbid forge forget fork format forward freeze
gather generate get give grant group grow guard
halt hand handle harvest hash hide hold
identify ignore import include indent index infer inform inject insert inspect install interpret interrupt invoke isolate
issue join judge keep kill
label lay learn leave lift limit link list listen load locate lock log look lower
make map mark mask match measure merge migrate mint mirror move
name narrow negotiate normalize note notify number
observe omit open operate order overlay overwrite own
pack pad page paint pair parse partition pass pause perform persist pick pin place plan point poll prefer prepare present preserve
prettify preview print probe proceed process produce project propose prove provide publish pull pump purge push put
qualify query quote
race raise rank reach react read rebuild recall receive recognize recompute reconcile record recover redact redirect reduce
refer refold refresh refuse register reject relate relay release reload remember remove rename render renew repair repeat
replace replay reply report represent request require reserve reset resolve respond restart restore restrict resume retain
retarget retry return reuse reverse revert revise revoke rewrite ring round route rule run
salvage sample sanitize satisfy save say scan schedule score seal search see select send separate serialize serve set settle
share shift shorten show shut sign simulate skip slice sort spawn spend splice split spread stabilize stamp start state step stop store
stream strip submit subscribe substitute subtract suggest sum summarize supply support suspend swap sweep switch synchronize
tag tail take tally tell terminate test throttle throw tidy time toggle touch trace track transform translate traverse treat
trim trip truncate trust try turn
unblock undo unfold unlink unlock unwrap update upgrade upsert use
validate verify view visit vote
wait wake walk warn watch weigh widen wire withdraw withhold work wrap write yield
`;

/** A predicate says what is true; a factory, a conversion and an event handler have words of their own. */
const OTHERS = "is has can should must may needs are was allows as to from on with without";

/** Every word that the name of a function may begin with. */
export const FIRST_WORDS = new Set(`${VERBS} ${OTHERS}`.split(/\s+/u).filter(Boolean));
