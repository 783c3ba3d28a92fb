package read

import "github.com/sqlfence/sqlfence/rewrite/internal/advise"

// merge reads PostgreSQL's MERGE after its first word.
//
//	MERGE INTO [ONLY] name [*] [[AS] alias] USING source ON condition
//	WHEN [NOT] MATCHED [BY {SOURCE | TARGET}] [AND condition] THEN
//	{UPDATE SET ... | DELETE | INSERT ... | DO NOTHING} ... [RETURNING ...]
func (t walker) merge() {
	head := Write{Verb: Merge, At: int32(t.i - 1)}
	if !t.accept("into") {
		t.unreadable(int(head.At))
		return
	}
	w := t.target(&head, "using")
	switch {
	case w == nil:
	case !t.isWord(t.tok(), "using"):
		t.unreadable(int(w.At))
	default:
		_ = t.merges(w)
		t.finish(w)
	}
}

func (t walker) merges(w *Write) bool {
	if t.until("when") == t.stop {
		return t.fail(advise.ExpectedWhen, t.i)
	}
	first := len(t.arms)
	var always [3]bool // the kinds with an arm without a condition
	for t.accept("when") {
		a := Arm{At: int32(t.i - 1)}
		ok := t.arm(&a, &always)
		t.arms = append(t.arms, a)
		w.Arms = t.arms[first:len(t.arms):len(t.arms)]
		if !ok {
			return false
		}
	}
	if t.returning(w) {
		t.i = t.stop
	}
	return t.ends()
}

// arm reads one arm, starting after WHEN.
//
// PostgreSQL refuses an unreachable arm, which follows an arm of the same kind without a condition. A guard's condition
// would hide this error, so this method refuses the arm.
func (t walker) arm(a *Arm, always *[3]bool) bool {
	if t.accept("not") {
		a.Kind = NotMatched
	}
	if !t.accept("matched") {
		return t.fail(advise.ExpectedMatched, t.i)
	}
	if t.accept("by") {
		if t.isWord(t.tok(), "source") {
			a.Kind = NotMatchedBySource
		}
		t.step(1) // SOURCE or TARGET
	}
	if always[a.Kind] {
		return t.fail(advise.NeverReached, int(a.At))
	}
	always[a.Kind] = !t.isWord(t.tok(), "and")
	at := t.i
	if t.accept("and") {
		lo := t.i
		hi := t.until("then")
		if lo == hi {
			return t.fail(advise.ExpectedCondition, lo)
		}
		a.When.Range = rangeOf(lo, hi)
	}
	a.When.At = int32(at)
	if !t.accept("then") {
		return t.fail(advise.ExpectedThen, t.i)
	}
	return t.armAction(a)
}

func (t walker) armAction(a *Arm) bool {
	switch {
	case t.accept("do", "nothing"):
		return true
	case t.accept("delete"):
		t.claim(t.i - 1)
		a.Action = Delete
		return true
	case t.accept("update", "set"):
		t.claim(t.i - 2)
		a.Action = Update
		return t.assignments(&a.Set, "when", "returning")
	case t.accept("insert"):
		t.claim(t.i - 1)
		a.Action = Insert
		return t.columnList(&a.Insertion) && t.mergedRow(&a.Insertion)
	}
	return t.fail(advise.ExpectedArmAction, t.i)
}
