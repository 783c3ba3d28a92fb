package confirm

// operand reads a token that is a value or a name; in a target it may be its name.
func (c *Check) operand() {
	f := c.top()
	if f.part == inTarget && c.isTarget(f) {
		f.name, f.lo, f.hi, f.named = c.sign, c.lo, c.hi, true
	}
	f.ended, f.head = true, false
}

// isTarget reports whether the current token of a target is its name or alias: not
// the word behind OR.
func (c *Check) isTarget(f *frame) bool {
	return c.sign != signNumber && c.sign != signInput && c.before(0) != kwOr &&
		(!f.named || c.isLabel() || c.dialect.BareAlias.Is())
}

// word reads a word: as what begins another part, where it can only be that.
func (c *Check) word(ofPiece bool) bool {
	f, s := c.top(), c.sign
	f.head = f.head && (s == kwWith || s == kwRecursive || s == kwExplain || s == kwAnalyze)
	begins := f.part == atStart
	switch {
	case s == signWord && f.part != atThen:
		c.operand()
	case s == kwWith && begins: // or a name
		f.with, f.ended = true, true
	case s == kwSelect && begins:
		f.part, f.ended = inSelect, false
	case s == kwGroup && c.before(0) == kwWithin && c.follows('('), s == kwOn && c.before(0) == kwDistinct:
	case f.with && begins && (s == kwUsing || s == kwFrom || s == kwOn): // of CYCLE, or names
	case begins && c.beginsWrite(f):
		f.verb, f.part = s, inTarget
		f.tables.lo = c.hi
	case c.mysqlWord(f):
	case f.part == inTarget:
		return c.target(f)
	case f.part == atThen:
		return c.arm(f)
	case s == kwFrom && c.before(0) == kwDistinct && (c.before(1) == kwIs || c.before(1) == kwNot):
		f.ended = false
	case c.clause(f):
	default:
		return c.expression(f, ofPiece)
	}
	return true
}

// beginsWrite reports whether the current word is a verb that begins a statement,
// which may stand behind WITH, and isn't the name of something.
func (c *Check) beginsWrite(f *frame) bool {
	switch c.sign {
	case kwUpdate, kwDelete, kwInsert, kwMerge, kwReplace:
	default:
		return false
	}
	switch c.following() {
	case '(':
		if c.sign != kwUpdate || !c.dialect.Joins.Is() { // UPDATE (tables) SET
			return false
		}
	case ',', kwAs:
		return false
	}
	switch c.before(0) {
	case 0, '(', ';', ')', kwExplain, kwAnalyze:
		return true
	}
	return f.with
}

// target reads a word behind a verb: up to SET, USING and the like it is a name.
func (c *Check) target(f *frame) bool {
	switch c.sign {
	case kwSet:
		f.part, f.ended, f.cases = inSet, false, 0
		return f.writes(kwUpdate) && f.named
	case kwAs:
		return true
	case kwValues:
		if c.dialect.Joins.Is() && (f.verb == kwUpdate || f.verb == kwDelete) { // the alias value
			c.operand()
			return true
		}
		f.part = inValues
		return true
	case kwSelect, kwWith:
		f.part, f.ended = inSelect, false
		return true
	}
	switch {
	case (c.sign == kwInto || c.sign == kwFrom || c.sign == kwOr) && !f.named:
	case c.sign == kwOnly:
	case c.sign == kwInsertOption && f.writes(kwInsert) && f.named:
	case c.clause(f):
	default:
		c.operand()
	}
	return true
}

// clause reads a word that can only begin another part of the statement.
func (c *Check) clause(f *frame) bool {
	p, ok := c.begun(f)
	if !ok {
		return false
	}
	if p == inArm || c.sign == kwOn { // another arm, or another conflict
		f.arm = 0
	}
	if f.cases > 0 { // none can stand inside of a CASE
		f.cases = 0
		f.verb, f.arm = 0, 0 // so that nothing behind it is confirmed
	}
	if p == inTables {
		c.joinsTables(f)
	} else if f.tables.hi == 0 {
		f.tables.hi = c.lo
	}
	f.part, f.ended, f.or = p, false, false
	return true
}

// begun returns the part that the current word begins, if it begins one.
func (c *Check) begun(f *frame) (p part, ok bool) {
	switch c.sign {
	case kwWhere:
		if f.verb == kwInsert && f.arm != kwUpdate && c.before(0) == ')' && c.before(1) == kwConflict {
			return inRest, true // of the conflict's index
		}
		return inWhere, true
	case kwFrom, kwUsing, kwJoin:
		return inTables, true
	case kwTail, kwHaving, kwOrder, kwGroup, kwInto:
		return inRest, true
	case kwSelect:
		return inSelect, !f.ended
	case kwValues:
		return inValues, !f.ended && c.follows('(') && !(f.part == inSet && f.arm == kwUpdate) // VALUES(column)
	case kwOn:
		if c.follows(kwConflict) || c.follows(kwConstraint) || c.follows(kwDuplicate, kwKey) {
			return inRest, true
		}
		return inTables, true
	case kwDo:
		return atThen, f.verb == kwInsert && f.part == inRest && (c.follows(kwUpdate) || c.follows(kwNothing))
	case kwWhen:
		return inArm, f.verb == kwMerge && f.cases == 0 && (c.follows(kwMatched) || c.follows(kwNot, kwMatched))
	case kwThen:
		return atThen, f.verb == kwMerge && f.cases == 0 && f.part == inArm
	}
	return 0, false
}

// arm reads the word behind THEN or DO.
func (c *Check) arm(f *frame) bool {
	switch c.sign {
	case kwUpdate, kwInsert:
		f.arm, f.part = c.sign, inTarget
	case kwDelete:
		f.arm, f.part = c.sign, inRest
	case kwNothing:
		f.part = inRest
	case kwDo:
	default:
		return false
	}
	return true
}

// expression reads a word of an expression, and keeps count of its CASE.
func (c *Check) expression(f *frame, ofPiece bool) bool {
	conditional := f.part == inSet || f.part == inWhere // where a CASE has to be complete
	switch {
	case c.sign == kwCase && !f.ended:
		f.cases++
		return true
	case (c.sign == kwWhen || c.sign == kwThen || c.sign == kwElse) && (f.ended || c.before(0) == kwCase):
		f.ended = false
		return f.cases > 0 || !conditional
	case c.sign == kwEnd && f.ended:
		if f.cases == 0 {
			return !conditional
		}
		f.cases--
		return true
	case c.sign == kwNot || c.sign == kwDistinct || c.sign == kwAll:
		return true
	case c.sign == kwZone && c.before(1) != kwAt: // of a type
	case (c.sign == kwAnd || c.sign == kwOr || c.sign == kwIs || c.sign == kwInfix || c.sign == kwOperator ||
		c.sign == kwZone) && f.ended:
		f.or = f.or || f.cases == 0 && !ofPiece && c.sign == kwOr
		f.ended = false
		return true
	case c.sign == kwBy && (c.before(0) == kwOrder || c.before(0) == kwGroup),
		c.sign == kwPrefix, c.sign == kwOnly:
		return true
	}
	f.ended = true
	return true
}
