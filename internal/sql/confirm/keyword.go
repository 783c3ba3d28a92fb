package confirm

import "maps"

// The signs of the words that mean something to the check. Those that mean the same to
// it share one.
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
	kwDuplicate
	kwElse
	kwEnd
	kwExists
	kwExplain
	kwFrom
	kwGroup
	kwInsert
	kwInto
	kwIs
	kwJoin
	kwKey
	kwMatched
	kwMerge
	kwNot
	kwNothing
	kwOn
	kwOnly
	kwOperator
	kwOr
	kwOrder
	kwPartition
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
	kwHaving       // like kwTail
	kwIndexHint    // before INDEX
	kwInsertOption // between an INSERT's columns and its rows
	kwMatchedBy    // SOURCE and TARGET
	kwModifier     // between a verb and its target
	kwPrefix       // before an operand
	kwQuick        // a modifier, or a name
	kwTail         // it begins what follows a WHERE
	kwTailOrName   // the same, or it is a name
)

// Words are what words of a dialect's own mean.
type Words map[string]sign

// What they may mean.
const (
	Duplicate  = kwDuplicate
	Exists     = kwExists
	Having     = kwHaving
	IndexHint  = kwIndexHint // before INDEX
	Infix      = kwInfix     // an operator between two operands
	Join       = kwJoin
	Key        = kwKey
	Modifier   = kwModifier // between a verb and its target
	Only       = kwOnly
	Or         = kwOr
	Partition  = kwPartition
	Prefix     = kwPrefix     // before an operand
	Quick      = kwQuick      // a modifier, or a name
	TailWord   = kwTail       // it begins what follows a WHERE
	TailOrName = kwTailOrName // the same, or it is a name
	ValuesWord = kwValues
)

// commonWords are those of every dialect.
var commonWords = map[string]sign{
	"all": kwAll, "and": kwAnd, "as": kwAs, "at": kwAt, "by": kwBy, "case": kwCase, "conflict": kwConflict,
	"constraint": kwConstraint, "delete": kwDelete, "distinct": kwDistinct, "do": kwDo, "else": kwElse,
	"end": kwEnd, "explain": kwExplain, "from": kwFrom, "group": kwGroup,
	"insert": kwInsert, "into": kwInto, "is": kwIs, "join": kwJoin, "matched": kwMatched, "merge": kwMerge,
	"not": kwNot, "nothing": kwNothing, "on": kwOn, "operator": kwOperator, "or": kwOr, "order": kwOrder,
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
	"except": kwTail, "having": kwTail, "intersect": kwTail, "limit": kwTail, "returning": kwTail,
	"union": kwTail,
}

// keywords are words by their length and first letter.
type keywords [maxKeyword + 1][26][]signedWord

type signedWord struct {
	word string
	sign sign
}

// maxKeyword is the length of the longest keyword.
const maxKeyword = len("straight_join")

// newKeywords returns the common words and those of one dialect, which may give one another
// sign.
func newKeywords(own Words) (k keywords) {
	all := maps.Clone(commonWords)
	maps.Copy(all, own)
	for word, sign := range all {
		some := &k[len(word)][word[0]-'a']
		*some = append(*some, signedWord{word, sign})
	}
	return k
}

// sign returns the sign of a word.
func (k *keywords) sign(word string) sign {
	first := lowerByte(word[0]) - 'a'
	if len(word) > maxKeyword || first >= 26 {
		return signWord
	}
	for _, known := range k[len(word)][first] {
		if isFolded(word, known.word) {
			return known.sign
		}
	}
	return signWord
}

// isFolded reports whether a word is a name once its ASCII letters are in lower case.
func isFolded(word, name string) bool {
	if len(word) != len(name) {
		return false
	}
	for i := 0; i < len(word); i++ {
		if lowerByte(word[i]) != name[i] {
			return false
		}
	}
	return true
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}
