package rewrite

// The signs of the words that mean something to the second look. Those that mean the
// same to it share one.
const (
	kwAll sign = 0x80 + iota
	kwAnalyze
	kwAnd
	kwAs
	kwAt
	kwBy
	kwCase
	kwConflict
	kwConstraint
	kwDelete
	kwDistinct
	kwDo
	kwElse
	kwEnd
	kwExplain
	kwFrom
	kwGroup
	kwIndexed
	kwInsert
	kwInto
	kwIs
	kwJoin
	kwMatched
	kwMerge
	kwNot
	kwNothing
	kwOn
	kwOnly
	kwOperator
	kwOr
	kwOrder
	kwRecursive
	kwReplace
	kwRow
	kwSelect
	kwSet
	kwThen
	kwUpdate
	kwUsing
	kwValues
	kwWhen
	kwWhere
	kwWith
	kwWithin
	kwZone

	kwInfix        // an operator between two operands
	kwInsertOption // between an INSERT's columns and its rows
	kwMatchedBy    // SOURCE and TARGET
	kwPostgresTail // kwTail in PostgreSQL alone
	kwPrefix       // PostgreSQL: before an operand
	kwTail         // it begins what follows a WHERE
)

type signedWord struct {
	word string
	sign sign
}

// keywords are those words, by their length and first letter.
var keywords = func() (by [maxKeyword + 1][26][]signedWord) {
	for word, sign := range map[string]sign{
		"all": kwAll, "and": kwAnd, "as": kwAs, "at": kwAt, "by": kwBy, "case": kwCase, "conflict": kwConflict,
		"constraint": kwConstraint, "delete": kwDelete, "distinct": kwDistinct, "do": kwDo, "else": kwElse,
		"end": kwEnd, "explain": kwExplain, "from": kwFrom, "group": kwGroup, "indexed": kwIndexed,
		"insert": kwInsert, "into": kwInto, "is": kwIs, "join": kwJoin, "matched": kwMatched, "merge": kwMerge,
		"not": kwNot, "nothing": kwNothing, "on": kwOn, "only": kwOnly, "operator": kwOperator, "or": kwOr, "order": kwOrder,
		"recursive": kwRecursive, "replace": kwReplace, "row": kwRow, "select": kwSelect, "set": kwSet, "then": kwThen,
		"update": kwUpdate, "using": kwUsing, "values": kwValues, "when": kwWhen, "where": kwWhere,
		"with": kwWith, "within": kwWithin, "zone": kwZone,

		"analyze": kwAnalyze, "analyse": kwAnalyze, "verbose": kwAnalyze,
		"between": kwInfix, "collate": kwInfix, "escape": kwInfix, "glob": kwInfix, "ilike": kwInfix,
		"in": kwInfix, "like": kwInfix, "match": kwInfix, "overlaps": kwInfix,
		"regexp": kwInfix, "to": kwInfix,
		"default": kwInsertOption, "overriding": kwInsertOption, "system": kwInsertOption,
		"user": kwInsertOption, "value": kwInsertOption,
		"source": kwMatchedBy, "target": kwMatchedBy,
		"fetch": kwPostgresTail, "for": kwPostgresTail, "offset": kwPostgresTail, "window": kwPostgresTail,
		"asymmetric": kwPrefix, "lateral": kwPrefix, "symmetric": kwPrefix,
		"except": kwTail, "having": kwTail, "intersect": kwTail, "limit": kwTail, "returning": kwTail,
		"union": kwTail,
	} {
		some := &by[len(word)][word[0]-'a']
		*some = append(*some, signedWord{word, sign})
	}
	return by
}()

// maxKeyword is the length of the longest keyword.
const maxKeyword = len("constraint")

// keyword returns the sign of a word.
func keyword(word string) sign {
	first := lowerByte(word[0]) - 'a'
	if len(word) > maxKeyword || first >= 26 {
		return signWord
	}
	for _, k := range keywords[len(word)][first] {
		if equalFold(word, k.word) {
			return k.sign
		}
	}
	return signWord
}
